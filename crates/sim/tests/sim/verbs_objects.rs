//! Objects of verbs that programs destroy.

use rdmacm_core::QpType;
use rdmacm_sim::{Fabric, Host, VerbsObjects};
use rdmacm_verbs::{
    CommandNumber, Context, QueuePair, RemoteAccessRegion, SendOperation, SendRequest, SrqOptions,
    WcStatus,
};

use crate::SECOND;
use crate::connected::{Connected, REMOTE, open, poll, status};
use crate::forked::CHILDREN;

fn host() -> Host {
    Fabric::roce(["host"]).find_host("host").unwrap()
}

/// A queue pair with a domain, completion queues and a shared receive queue of its own, and memory
/// of that domain.
fn objects(context: &Context) -> (QueuePair, RemoteAccessRegion) {
    let domain = context.create_protection_domain().unwrap();
    let requests = SrqOptions {
        max_wr: 1,
        max_sge: 1,
    };
    let requests = requests.create(&domain).unwrap();
    let options = QueuePair::options(QpType::RC).shared_receive_queue(&requests);
    let queue_pair = options.create(context).unwrap();
    let region = domain.expose(8, REMOTE).unwrap();
    (queue_pair, region)
}

fn context_alone() -> VerbsObjects {
    let mut objects = VerbsObjects::default();
    objects.contexts = 1;
    objects
}

const DESTROYING: [CommandNumber; 5] = [
    CommandNumber::DEREG_MR,
    CommandNumber::DESTROY_QP,
    CommandNumber::DESTROY_CQ,
    CommandNumber::DESTROY_SRQ,
    CommandNumber::DEALLOC_PD,
];

#[test]
fn a_command_that_destroys_takes_effect_before_it_fails_with_eio() {
    for command in DESTROYING {
        let host = host();
        let context = open(&host);
        host.fail_next(command, usize::MAX, libc::EIO);
        drop(objects(&context));
        assert_eq!(host.verbs_objects(), context_alone(), "{command:?}");
    }
}

#[test]
fn a_command_that_destroys_has_no_effect_if_it_fails_otherwise() {
    for command in DESTROYING {
        let host = host();
        let context = open(&host);
        host.fail_next(command, usize::MAX, libc::EACCES);
        drop(objects(&context));
        assert_ne!(host.verbs_objects(), context_alone(), "{command:?}");
    }
}

/// `EIO` says that the memory may be freed.
#[test]
fn memory_that_was_deregistered_with_eio_is_not_accessed() {
    let pair = Connected::new();
    let region = pair.far.protection_domain().expose(8, REMOTE).unwrap();
    let remote = region.remote();
    pair.there.fail_next(CommandNumber::DEREG_MR, 1, libc::EIO);
    drop(region);
    assert_eq!(pair.there.verbs_objects().memory_regions, 0);
    pair.start(SendOperation::Write(remote), &[1; 8]);
    assert_eq!(status(&pair.sent()), WcStatus::REM_ACCESS_ERR);
}

#[test]
fn a_queue_pair_that_was_destroyed_with_eio_receives_nothing() {
    let pair = Connected::new();
    pair.post_receive();
    let Connected {
        fabric,
        there,
        near,
        far,
        ..
    } = pair;
    there.fail_next(CommandNumber::DESTROY_QP, 1, libc::EIO);
    let (_, returned) = far.destroy().remove(0);
    let memory = near.protection_domain().register(*b"late").unwrap();
    let message = SendRequest::new(SendOperation::Send, memory);
    near.post_send(message).unwrap();
    fabric.advance(SECOND);
    let returned = returned.into_buffer().unwrap();
    assert_eq!(returned[..], [0; 64]);
    let sent = poll(near.send_cq()).unwrap();
    assert_eq!(status(&sent), WcStatus::RETRY_EXC_ERR);
}

#[test]
fn completion_channels_are_counted_until_their_descriptors_are_closed() {
    let _no_children = CHILDREN.read();
    let host = host();
    let context = open(&host);
    let channels = || host.verbs_objects().completion_channels;
    let create = || {
        let options = QueuePair::options(QpType::RC).with_completion_channels();
        options.create(&context).unwrap()
    };
    let kept = create();
    let each = channels();
    assert_ne!(each, 0);
    for _ in 0..3 {
        let queue_pair = create();
        assert_eq!(channels(), 2 * each);
        drop(queue_pair);
        assert_eq!(channels(), each);
    }
    drop(kept);
    assert_eq!(channels(), 0);
}
