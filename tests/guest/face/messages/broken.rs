//! Connections whose device or whose peer is gone.

use std::io;
use std::thread;

use rdmacm::core::CmAddr;
use rdmacm::{Cause, Connector, Listener, MessageOptions};
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

/// What is told of a device's removal: that, or, from a peer that let go of the
/// same device sooner, its goodbye.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Gone,
    Parted,
}

pub(crate) fn told(error: rdmacm::Error) -> Told {
    assert!(error.is_ended(), "{error}");
    let told = match error.cause() {
        Cause::Verbs(error) if error.is_gone() => Told::Gone,
        // The device's end was read first.
        Cause::Ended(ending) if ending.failure().is_some() => Told::Gone,
        Cause::Ended(_) => Told::Parted,
        other => panic!("{other:?}"),
    };
    let kind = match told {
        Told::Gone => io::ErrorKind::NotConnected,
        Told::Parted => io::ErrorKind::ConnectionReset,
    };
    assert_eq!(io::Error::from(error).kind(), kind);
    told
}

fn whoever_waits_hears_of_the_devices_removal(site: &Site) {
    let link = Link::new(site);
    let Pair { client, server } = pair_on(&link, MessageOptions::new());
    thread::scope(|scope| {
        // Each lets go of the device when it has heard.
        let passive = scope.spawn(move || server.receive().unwrap_err());
        let active = scope.spawn(move || {
            let errors = thread::scope(|scope| {
                let waiting = [(); 2].map(|()| scope.spawn(|| client.receive().unwrap_err()));
                waiting.map(|thread| thread.join().unwrap())
            });
            told(client.send(b"anyone?").unwrap_err());
            assert!(client.close(SECOND).is_ok());
            errors
        });
        link.remove_device();
        let [one, other] = active.join().unwrap();
        let told = [one, other, passive.join().unwrap()].map(told);
        assert!(told.contains(&Told::Gone), "{told:?}");
    });
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
            // Each lets go of the device when it has heard.
            let hears = async |connection: rdmacm::tokio::Connection| {
                connection.receive().await.unwrap_err()
            };
            let removing = async {
                let device = link.device.clone();
                let removal = move || run(&format!("rdma link del {device}"));
                tokio::task::spawn_blocking(removal).await.unwrap();
            };
            let (one, other, ()) = tokio::join!(hears(client), hears(server), removing);
            let told = [one, other].map(told);
            assert!(told.contains(&Told::Gone), "{told:?}");
        });
        link.is_removed();
    }
}

fn a_sign_of_life_finds_a_silent_peer(site: &Site) {
    assert_eq!(site.soft, Soft::Rxe);
    let link = Link::new(site);
    let options = MessageOptions::new().keep_alive(SECOND / 5);
    let listener = Listener::options().messages(options).ack_timeout(15);
    let listener = listener.bind(link.address).unwrap();
    let connector = Connector::to(listener.local_addr()).ack_timeout(15);
    let connector = connector.deadline(PATIENCE).messages(options);
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
