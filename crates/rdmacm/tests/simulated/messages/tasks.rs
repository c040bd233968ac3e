//! The same on tokio, whose paused clock and that of the fabric move together.

use std::future::poll_fn;

use rdmacm::core::{Deadline, EventKind};
use rdmacm::tokio::{Connection, Connector, Listener, Node};
use rdmacm::{CLOSE_DEADLINE, Cause, MessageOptions};
use rdmacm_sim::{Fabric, Host, VerbsObjects};
use tokio::runtime::Handle;

use super::SECOND;
use crate::hosts::{PORT, channel};
use crate::tasks::{SpawnBlocking, Turns};

/// Two hosts, and a node of each on this runtime.
pub(super) struct Tasks {
    pub(super) fabric: Fabric,
    pub(super) client: Host,
    pub(super) server: Host,
    pub(super) client_node: Node,
    pub(super) listener: Listener,
}

impl Tasks {
    pub(super) fn roce() -> Self {
        Self::new(Fabric::roce(["client", "server"]))
    }

    fn iwarp() -> Self {
        Self::new(Fabric::iwarp(["client", "server"]))
    }

    fn new(fabric: Fabric) -> Self {
        let fabric = fabric.seed(7);
        let [client, server] = ["client", "server"].map(|name| fabric.find_host(name).unwrap());
        let [client_node, server_node] = [&client, &server].map(|host| {
            let executor = std::sync::Arc::new(SpawnBlocking(Handle::current()));
            let options = Node::options().channel(channel(host)).executor(executor);
            let options = options.device_source(std::sync::Arc::new(host.clone()));
            options.open().unwrap()
        });
        let address = (server.address().unwrap(), PORT);
        let options = Listener::options().with_node(&server_node);
        Self {
            listener: options.bind(address).unwrap(),
            fabric,
            client,
            server,
            client_node,
        }
    }

    pub(super) fn connector(&self) -> Connector {
        let address = (self.server.address().unwrap(), PORT);
        Connector::new(address).with_node(&self.client_node)
    }

    pub(super) async fn connect(&self) -> (Connection, Connection) {
        self.connect_with(MessageOptions::new()).await
    }

    pub(super) async fn connect_with(&self, options: MessageOptions) -> (Connection, Connection) {
        let accepting = async {
            let incoming = self.listener.accept(Deadline::Never).await.unwrap();
            incoming.accept_messages(options.clone()).await.unwrap()
        };
        let connecting = self.connector().connect_messages(options.clone());
        let (near, far) = tokio::join!(connecting, accepting);
        (near.unwrap(), far)
    }

    /// Only the listener is left.
    #[track_caller]
    pub(super) fn assert_clean(&self) {
        let ids = [&self.client, &self.server].map(Host::id_count);
        assert_eq!(ids, [0, 1]);
        let objects = [&self.client, &self.server].map(Host::verbs_objects);
        assert_eq!(objects, [VerbsObjects::default(); 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn messages_are_exchanged_over_roce() {
    exchange(Tasks::roce()).await;
}

#[tokio::test(start_paused = true)]
async fn messages_are_exchanged_over_iwarp() {
    exchange(Tasks::iwarp()).await;
}

async fn exchange(tasks: Tasks) {
    let (near, far) = tasks.connect().await;
    let echo = tokio::spawn(async move {
        while let Some(message) = far.receive().await.unwrap() {
            far.send(&message).await.unwrap();
        }
    });
    for number in 0..100_u8 {
        near.send(&[number; 17]).await.unwrap();
        assert_eq!(near.receive().await.unwrap().unwrap()[..], [number; 17]);
    }
    near.close(CLOSE_DEADLINE).await.unwrap();
    echo.await.unwrap();
    drop(near);
    tasks.assert_clean();
}

#[tokio::test(start_paused = true)]
async fn a_deadline_of_an_hour_passes_at_once() {
    let tasks = Tasks::roce();
    let (near, _far) = tasks.connect().await;
    near.set_deadline(3600 * SECOND);
    let error = near.receive().await.unwrap_err();
    assert!(matches!(error.cause(), Cause::Deadline), "{error}");
    assert_eq!(error.elapsed(), 3600 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn polls_are_woken() {
    let tasks = Tasks::roce();
    let (near, far) = tasks.connect_with(MessageOptions::new().sends(1)).await;
    tasks.fabric.set_delay(SECOND);
    let sending = async {
        for number in 0..5_u8 {
            poll_fn(|context| near.poll_send(context, &[number]))
                .await
                .unwrap();
        }
    };
    let receiving = async {
        for number in 0..5_u8 {
            let message = poll_fn(|context| far.poll_receive(context)).await;
            assert_eq!(message.unwrap().unwrap()[..], [number]);
        }
    };
    tokio::join!(sending, receiving);
}

#[tokio::test(start_paused = true)]
async fn a_lost_peer_is_noticed_by_keep_alives() {
    let tasks = Tasks::roce();
    let (near, _far) = tasks
        .connect_with(MessageOptions::new().keep_alive(SECOND))
        .await;
    tasks.server.set_responding(false);
    let error = near.receive().await.unwrap_err();
    assert!(matches!(error.cause(), Cause::Request(_)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn closing_wakes_all_tasks_of_this_side() {
    let tasks = Tasks::roce();
    let (near, far) = tasks.connect().await;
    let peer = tokio::spawn(async move { far.receive().await.unwrap().is_none() });
    let closing = async {
        tokio::task::yield_now().await;
        near.close(CLOSE_DEADLINE).await.unwrap();
    };
    let (first, second, reason, ()) =
        tokio::join!(near.receive(), near.receive(), near.closed(None), closing);
    assert!(first.unwrap().is_none() && second.unwrap().is_none());
    assert!(reason.unwrap().is_orderly());
    assert!(peer.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn halves_send_and_receive_on_their_own() {
    let tasks = Tasks::roce();
    let (near, far) = tasks.connect().await;
    let echo = tokio::spawn(async move {
        while let Some(message) = far.receive().await.unwrap() {
            far.send(&message).await.unwrap();
        }
    });
    let (send, receive) = near.into_split();
    let receiving = tokio::spawn(async move {
        for number in 0..50_u8 {
            assert_eq!(receive.receive().await.unwrap().unwrap()[..], [number; 70]);
        }
        receive
    });
    for number in 0..50_u8 {
        send.send(&[number; 70]).await.unwrap();
    }
    let near = send.reunite(receiving.await.unwrap()).unwrap();
    near.close(CLOSE_DEADLINE).await.unwrap();
    echo.await.unwrap();
    drop(near);
    tasks.assert_clean();
}

#[tokio::test(start_paused = true)]
async fn removing_the_own_device_ends_all_tasks() {
    let tasks = Tasks::roce();
    let (near, far) = tasks.connect().await;
    let removing = async {
        tokio::task::yield_now().await;
        tasks.client.remove_device("rxe0");
    };
    let (first, second, reason, ()) =
        tokio::join!(near.receive(), near.receive(), near.closed(None), removing);
    for received in [first, second] {
        let error = received.unwrap_err();
        assert!(error.is_closed(), "{error}");
    }
    assert_eq!(reason.unwrap().kind(), EventKind::DeviceRemoval);
    near.send(b"to nobody").await.unwrap_err();
    near.close(CLOSE_DEADLINE).await.unwrap();
    drop((near, far));
}

/// The clock of a fabric that is created later is behind that of the runtime.
#[tokio::test(start_paused = true)]
async fn a_fabric_may_be_created_at_any_time() {
    for _ in 0..3 {
        tokio::time::sleep(60 * SECOND).await;
        let tasks = Tasks::roce();
        let (near, far) = tasks.connect().await;
        tasks.fabric.set_delay(SECOND);
        near.set_deadline(5 * SECOND);
        near.send(b"in time").await.unwrap();
        near.flush().await.unwrap();
        assert_eq!(far.receive().await.unwrap().unwrap()[..], *b"in time");
        // Nor does it matter that nobody waits for the fabric while the runtime's clock moves.
        tokio::time::sleep(60 * SECOND).await;
        far.set_deadline(5 * SECOND);
        far.send(b"in time too").await.unwrap();
        far.flush().await.unwrap();
        assert_eq!(near.receive().await.unwrap().unwrap()[..], *b"in time too");
    }
}

/// Messages that have arrived are received without waiting, but other tasks run in between.
#[tokio::test(start_paused = true)]
async fn a_receiver_that_never_waits_lets_others_run() {
    const MESSAGES: u32 = 500;
    let tasks = Tasks::roce();
    let options = MessageOptions::new().size(8).receives(MESSAGES);
    let (client, server) = tasks.connect_with(options.sends(MESSAGES)).await;
    for _ in 0..MESSAGES {
        client.send(b"x").await.unwrap();
    }
    client.flush().await.unwrap();
    let turns = Turns::default();
    let other = turns.count();
    for _ in 0..MESSAGES {
        server.receive().await.unwrap().unwrap();
    }
    assert!(turns.so_far() > 1, "the other task has run");
    other.abort();
}
