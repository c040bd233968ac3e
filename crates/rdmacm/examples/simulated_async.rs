//! A test of an echo server on tokio between simulated hosts: one client is rejected, one
//! is slow, and one is lost. It needs no device, and it does not wait for time to pass.

use std::{error::Error, sync::Arc, time::Duration};

use rdmacm::MessageOptions;
use rdmacm::core::Deadline;
use rdmacm::tokio::{Connector, Incoming, Listener, Node};
use rdmacm_sim::{Adapter, Fabric, Host};

fn node(host: &Host) -> Result<Node, Box<dyn Error>> {
    let options = Node::options().channel(host.channel_options()?);
    Ok(options.device_source(Arc::new(host.clone())).open()?)
}

/// The server under test.
async fn echo(incoming: Incoming) -> rdmacm::Result<()> {
    if incoming.private_data().starts_with(b"guest") {
        return incoming.reject(b"members only");
    }
    let options = MessageOptions::new().keep_alive(Duration::from_secs(1));
    let connection = incoming.accept_messages(options).await?;
    while let Some(message) = connection.receive().await? {
        connection.send(&message).await?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    let fabric = Fabric::new();
    let server = fabric.host([Adapter::roce("rxe0").address([10, 0, 0, 1])]);
    let client = fabric.host([Adapter::roce("rxe0").address([10, 0, 0, 2])]);
    let address = "10.0.0.1:7471";
    let options = Listener::options().with_node(&node(&server)?);
    let listener = options.bind(address)?;
    let serving = tokio::spawn(async move {
        let serve = async || echo(listener.accept(Deadline::Never).await?).await;
        [serve().await, serve().await, serve().await]
    });
    let node = node(&client)?;
    let connector = || Connector::new(address).with_node(&node);

    let guest = connector().private_data(b"guest")?.connect().await;
    let reason = guest.map_err(|error| error.private_data().to_vec());
    assert!(reason.is_err_and(|text| text.starts_with(b"members only")));

    client.set_delay(Duration::from_secs(1));
    let slow = connector().connect().await?;
    slow.send(b"slow").await?;
    assert_eq!(slow.receive().await?.as_deref(), Some(&b"slow"[..]));
    slow.close(rdmacm::CLOSE_DEADLINE).await?;

    let _lost = connector().connect().await?;
    client.set_responding(false);
    assert!(matches!(serving.await?, [Ok(()), Ok(()), Err(_)]));
    Ok(())
}
