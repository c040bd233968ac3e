//! An echo server with a thread for each client, and its client.
//!
//! `echo serve 10.1.0.7:7471` serves until its standard input ends, `echo send
//! 10.1.0.7:7471 hello` sends a message and prints the reply.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::io::{Read as _, stdin};
use std::thread;
use std::time::Duration;

use rdmacm::{CLOSE_DEADLINE, Connector, Incoming, Listener};

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

fn main() -> Result {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [mode, address] if mode == "serve" => serve(address),
        [mode, address, message] if mode == "send" => send(address, message),
        _ => Err("usage: echo serve ADDRESS | echo send ADDRESS MESSAGE".into()),
    }
}

fn serve(address: &str) -> Result {
    let listener = Listener::bind(address)?;
    println!("listening on {}", listener.local_addr());
    let stop = listener.stop_handle();
    thread::spawn(move || {
        // The end of the input stops the listener.
        let _ = stdin().read_to_end(&mut Vec::new());
        stop.stop();
    });
    thread::scope(|scope| {
        for incoming in listener.incoming() {
            // The failure of one client does not end the server.
            scope.spawn(|| println!("{:?}", incoming.and_then(echo)));
        }
    });
    Ok(())
}

fn echo(incoming: Incoming) -> rdmacm::Result<()> {
    let connection = incoming.accept()?;
    while let Some(message) = connection.receive()? {
        connection.send(&message)?;
    }
    Ok(())
}

fn send(address: &str, message: &str) -> Result {
    let connection = Connector::new(address).connect()?;
    connection.set_deadline(Duration::from_secs(5));
    connection.send(message.as_bytes())?;
    let reply = connection.receive()?.ok_or("the server has closed")?;
    println!("{}", String::from_utf8_lossy(&reply));
    Ok(connection.close(CLOSE_DEADLINE)?)
}
