//! An echo server on tokio that shuts down in order, and its client, in one process:
//! `echo_async 10.1.0.7:7471`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::time::Duration;

use rdmacm::CLOSE_DEADLINE;
use rdmacm::core::Deadline;
use rdmacm::tokio::{Connection, Connector, Listener, Node};
use tokio::task::JoinSet;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).ok_or("usage: echo_async ADDRESS")?;
    let node = Node::open()?;
    let listener = Listener::options().with_node(&node).bind(&*address)?;
    let (server, stop) = (listener.local_addr(), listener.stop_handle());
    let serving = tokio::spawn(serve(listener));
    let connector = Connector::new(server).with_node(&node);
    let connection = connector.deadline(Duration::from_secs(5)).connect().await?;
    for message in ["one", "two", "three"] {
        connection.send(message.as_bytes()).await?;
        let reply = connection.receive().await?.ok_or("the server has closed")?;
        println!("{}", String::from_utf8_lossy(&reply));
    }
    connection.close(CLOSE_DEADLINE).await?;
    // No more clients; those that are connected finish.
    stop.stop();
    println!("{} clients", serving.await??);
    Ok(())
}

async fn serve(listener: Listener) -> rdmacm::Result<usize> {
    let mut clients = JoinSet::new();
    let mut count = 0;
    loop {
        let incoming = match listener.accept(Deadline::Never).await {
            Ok(incoming) => incoming,
            Err(error) if error.is_stopped() => break,
            Err(error) if error.ends_listener() => return Err(error),
            Err(_) => continue,
        };
        count += 1;
        clients.spawn(async move { echo(incoming.accept().await?).await });
    }
    while let Some(client) = clients.join_next().await {
        println!("{client:?}");
    }
    Ok(count)
}

async fn echo(connection: Connection) -> rdmacm::Result<()> {
    while let Some(message) = connection.receive().await? {
        connection.send(&message).await?;
    }
    Ok(())
}
