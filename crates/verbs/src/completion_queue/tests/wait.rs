//! Waiting for completions, and notifications.

use std::io::Write;
use std::time::{Duration, Instant};

use super::*;

#[test]
fn waiting_needs_a_channel_without_other_queues() {
    let context = Stub::new(false).open();
    let without = context.create_completion_queue(1).unwrap();
    refused(without.own_channel(), "without a completion channel");
    refused(without.arm(false), "without a completion channel");
    refused(without.next(Duration::ZERO), "without a completion channel");
    let (channel, _far) = channel(&context);
    let options = CompletionQueue::options(1).channel(&channel);
    let [one, two] = [(); 2].map(|()| options.create(&context).unwrap());
    refused(one.own_channel(), "has other queues too");
    drop(two);
    assert!(one.own_channel().is_ok());
}

#[test]
fn a_notification_has_the_token_of_its_queue() {
    let context = Stub::new(false).open();
    let (channel, mut far) = channel(&context);
    assert_eq!(channel.try_next(), Ok(None));
    assert_eq!(channel.next(Duration::ZERO), Ok(None));
    let queue = CompletionQueue::options(1).channel(&channel);
    let queue = queue.create(&context).unwrap();
    for taken in [
        CompletionChannel::try_next,
        |channel: &CompletionChannel| channel.next(None),
    ] {
        let handle = queue.token().handle();
        far.write_all(&handle.to_ne_bytes()).unwrap();
        assert_eq!(taken(&channel), Ok(Some(queue.token())));
    }
    assert_eq!(channel.try_next(), Ok(None));
}

#[test]
fn arming_is_a_command_to_the_device() {
    let device = Stub::new(false);
    let context = device.open();
    let (channel, _far) = channel(&context);
    let queue = CompletionQueue::options(1).channel(&channel);
    let queue = queue.create(&context).unwrap();
    device.command_bytes();
    queue.arm(true).unwrap();
    assert_ne!(device.command_bytes(), 0);
}

#[test]
fn waiting_takes_a_completion_and_ends_at_its_deadline() {
    let device = Stub::new(false);
    let context = device.open();
    let (channel, mut far) = channel(&context);
    let queue = CompletionQueue::options(4).channel(&channel);
    let queue = queue.create(&context).unwrap();
    let options = QueuePair::options(QpType::RC).caps(CAPS).send_cq(&queue);
    let queue_pair = options.create(&context).unwrap();
    let soon = || Instant::now() + Duration::from_millis(2);
    assert!(queue.next(soon()).unwrap().is_none());
    let complete = || {
        let work = send(&queue_pair);
        let last = *device.sends().last().unwrap();
        device.complete(last, WcStatus::SUCCESS, WcOpcode::SEND);
        work
    };
    let work = complete();
    assert_eq!(queue.next(soon()).unwrap().unwrap().work, work);
    // A notification whose completion was polled.
    let handle = queue.token().handle();
    far.write_all(&handle.to_ne_bytes()).unwrap();
    assert!(queue.next(soon()).unwrap().is_none());
    assert_eq!(channel.try_next(), Ok(None), "it was taken");
    let waited = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| queue.next(None));
        let work = complete();
        far.write_all(&handle.to_ne_bytes()).unwrap();
        (waiter.join().unwrap().unwrap().unwrap().work, work)
    });
    assert_eq!(waited.0, waited.1);
}

#[test]
fn a_wait_takes_no_notification_of_a_queue_that_was_added_meanwhile() {
    let device = Stub::new(false);
    let context = device.open();
    let (channel, mut far) = channel(&context);
    let options = CompletionQueue::options(4).channel(&channel);
    let queue = options.create(&context).unwrap();
    device.command_bytes();
    std::thread::scope(|scope| {
        let until = Instant::now() + Duration::from_secs(10);
        let waiter = scope.spawn(move || queue.next(until));
        // Until it is armed, just before the wait.
        while device.command_bytes() == 0 && Instant::now() < until {
            std::thread::yield_now();
        }
        let added = options.create(&context).unwrap();
        let handle = added.token().handle();
        far.write_all(&handle.to_ne_bytes()).unwrap();
        refused(waiter.join().unwrap(), "has other queues too");
        assert_eq!(channel.try_next(), Ok(Some(added.token())));
    });
}

#[test]
fn a_queue_that_could_not_be_armed_is_armed_by_the_next_wait() {
    let device = Stub::new(false);
    let context = device.open();
    let (channel, _far) = channel(&context);
    let queue = CompletionQueue::options(4).channel(&channel);
    let queue = queue.create(&context).unwrap();
    let soon = || Instant::now() + Duration::from_millis(1);
    device.refuse(true);
    assert!(queue.next(soon()).is_err());
    device.refuse(false);
    device.command_bytes();
    assert!(queue.next(soon()).unwrap().is_none());
    assert_ne!(device.command_bytes(), 0);
}

#[test]
fn a_queue_is_armed_again_if_another_thread_takes_from_its_channel_meanwhile() {
    let device = Stub::new(false);
    let context = device.open();
    let (channel, _far) = channel(&context);
    let queue = CompletionQueue::options(4).channel(&channel);
    let queue = queue.create(&context).unwrap();
    device.take_when_armed(&channel);
    for _ in 0..2 {
        device.command_bytes();
        assert!(queue.next(Duration::ZERO).unwrap().is_none());
        assert_ne!(device.command_bytes(), 0);
    }
}

/// The notification of the queue before is none of its own.
#[test]
fn the_next_queue_of_a_channel_is_armed() {
    let device = Stub::new(false);
    let context = device.open();
    let (channel, _far) = channel(&context);
    let soon = || Instant::now() + Duration::from_millis(1);
    for _ in 0..2 {
        let options = CompletionQueue::options(4).channel(&channel);
        let queue = options.create(&context).unwrap();
        device.command_bytes();
        assert!(queue.next(soon()).unwrap().is_none());
        assert_ne!(device.command_bytes(), 0);
    }
}

#[test]
fn closing_the_context_ends_a_wait() {
    let device = Stub::new(false);
    let context = device.open();
    let (channel, _far) = channel(&context);
    let queue = CompletionQueue::options(4).channel(&channel);
    let queue = queue.create(&context).unwrap();
    let options = QueuePair::options(QpType::RC).caps(CAPS).send_cq(&queue);
    let queue_pair = options.create(&context).unwrap();
    let work = send(&queue_pair);
    let ended = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| queue.next(None));
        context.close();
        waiter.join().unwrap()
    });
    // Outstanding requests are returned first.
    let completion = ended.unwrap().unwrap();
    assert_eq!(completion.work, work);
    assert!(completion.result().is_err());
    assert!(queue.next(None).unwrap_err().is_context_closed());
}

#[test]
fn waiting_polls_before_it_sleeps() {
    let device = Stub::new(false);
    let context = device.open();
    let (channel, _far) = channel(&context);
    let queue = CompletionQueue::options(4).channel(&channel);
    let queue = queue.polls_before_sleep(u32::MAX).create(&context).unwrap();
    let options = QueuePair::options(QpType::RC).caps(CAPS).send_cq(&queue);
    let queue_pair = options.create(&context).unwrap();
    let work = send(&queue_pair);
    device.command_bytes();
    let completion = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| queue.next(None));
        device.complete(device.sends()[0], WcStatus::SUCCESS, WcOpcode::SEND);
        waiter.join().unwrap().unwrap().unwrap()
    });
    assert_eq!(device.command_bytes(), 0, "it was not armed");
    assert_eq!(completion.work, work);
}

#[test]
fn polls_before_a_sleep_end_at_the_deadline() {
    let device = Stub::new(false);
    let context = device.open();
    let (channel, _far) = channel(&context);
    let queue = CompletionQueue::options(4).channel(&channel);
    let queue = queue.polls_before_sleep(u32::MAX).create(&context).unwrap();
    let begun = Instant::now();
    for deadline in [Duration::ZERO, Duration::from_millis(1)] {
        assert!(queue.next(deadline).unwrap().is_none());
        assert!(queue.next(begun).unwrap().is_none());
    }
    // So many polls take longer.
    assert!(begun.elapsed() < Duration::from_secs(10));
}
