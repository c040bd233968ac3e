//! Connections whose device or whose peer is gone.

use std::thread;

use rdmacm::core::CmAddr;
use rdmacm::{Cause, Connector, Listener, MessageOptions};
use rdmacm_core::ConnParam;
use rdmacm_tests::{PATIENCE, SECOND, Site, Soft};
use rdmacm_verbs::WcStatus;

use super::Pair;
use crate::face::asynchronous::{on_one_thread, on_threads};
use crate::link::{Link, run};

crate::cases!("face::messages::broken":
    whoever_waits_hears_of_the_devices_removal,
    tasks_hear_of_the_devices_removal,
);

crate::cases!("face::messages::broken" as ON_ROCE:
    a_sign_of_life_finds_a_silent_peer,
);

/// Both sides of a connection on a device of its own.
fn pair_on(link: &Link, options: MessageOptions) -> Pair {
    let listener = Listener::options().messages(options);
    let listener = listener.bind(link.address).unwrap();
    let connector = Connector::to(listener.local_addr()).deadline(PATIENCE);
    thread::scope(|scope| {
        let client = scope.spawn(|| connector.messages(options).connect().unwrap());
        let server = listener.accept(PATIENCE).unwrap().accept().unwrap();
        Pair {
            client: client.join().unwrap(),
            server,
        }
    })
}

fn is_gone(error: &rdmacm::Error) -> bool {
    match error.cause() {
        Cause::Verbs(error) => error.is_gone(),
        // The device's end was read first.
        Cause::Ended(ending) => ending.failure().is_some(),
        _ => false,
    }
}

fn whoever_waits_hears_of_the_devices_removal(site: &Site) {
    let link = Link::new(site);
    let Pair { client, server } = pair_on(&link, MessageOptions::new());
    thread::scope(|scope| {
        let waiting = [
            scope.spawn(|| client.receive().unwrap_err()),
            scope.spawn(|| client.receive().unwrap_err()),
            scope.spawn(|| server.receive().unwrap_err()),
        ];
        link.remove_device();
        for one in waiting {
            let error = one.join().unwrap();
            assert!(is_gone(&error), "{error}");
        }
    });
    let error = client.send(b"anyone?").unwrap_err();
    assert!(is_gone(&error), "{error}");
    drop(server);
    assert!(client.close(SECOND).is_ok());
}

fn tasks_hear_of_the_devices_removal(site: &Site) {
    for runtime in [on_threads(), on_one_thread()] {
        let link = Link::new(site);
        let address: CmAddr = link.address;
        runtime.block_on(async {
            let listener = rdmacm::tokio::Listener::bind(address).unwrap();
            let connector = rdmacm::tokio::Connector::to(listener.local_addr());
            let client = tokio::spawn(connector.deadline(PATIENCE).connect());
            let server = listener.accept(PATIENCE).await.unwrap();
            let server = server.accept().await.unwrap();
            let client = client.await.unwrap().unwrap();
            let removing = async {
                let device = link.device.clone();
                let removal = move || run(&format!("rdma link del {device}"));
                tokio::task::spawn_blocking(removal).await.unwrap();
            };
            let (one, other, ()) = tokio::join!(client.receive(), server.receive(), removing);
            for error in [one.unwrap_err(), other.unwrap_err()] {
                assert!(is_gone(&error), "{error}");
            }
        });
        link.is_removed();
    }
}

fn a_sign_of_life_finds_a_silent_peer(site: &Site) {
    assert_eq!(site.soft, Soft::Rxe);
    let link = Link::new(site);
    let options = MessageOptions::new().keep_alive(SECOND / 5);
    let listener = Listener::options().messages(options).ack_timeout(10);
    let listener = listener.bind(link.address).unwrap();
    // Seven would be for ever.
    let param = ConnParam::new().retry_count(3);
    let connector = Connector::to(listener.local_addr()).ack_timeout(10);
    let connector = connector.param(param).deadline(PATIENCE).messages(options);
    let pair = thread::scope(|scope| {
        let client = scope.spawn(|| connector.connect().unwrap());
        let server = listener.accept(PATIENCE).unwrap().accept().unwrap();
        (client.join().unwrap(), server)
    });
    let (client, server) = pair;
    client.set_deadline(PATIENCE);
    server.set_deadline(SECOND);
    // As long as there is a way they are not noticed.
    assert!(server.receive().unwrap_err().is_timeout());
    // The peer's device answers no more, and nobody says so.
    server.id().with(server.queue_pair()).fail().unwrap();
    let error = client.receive().unwrap_err();
    match error.cause() {
        Cause::Completion(error) => assert_eq!(error.status, WcStatus::RETRY_EXC_ERR),
        other => panic!("{other:?}"),
    }
}
