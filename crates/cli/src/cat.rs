//! `rdmacm cat`.

use std::fs::File;
use std::io::{self, IsTerminal, stdin};
use std::net::SocketAddr;
use std::pin::pin;

use nix::unistd::dup2_stdout;
use rdmacm::tokio::{Connector, Listener, RdmaListener, RdmaStream};
use rdmacm::{CLOSE_DEADLINE, StreamOptions};

use crate::args::{CatArgs, Role, usage_error};
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::refusal::unconnected;
use crate::runtime;
use crate::serve::check_devices;
use crate::terminal;
use transfer::{Direction, Transfer};

mod transfer;

pub(crate) fn run(args: &CatArgs) -> Outcome {
    if let Some(contradiction) = args.contradiction() {
        usage_error(&contradiction);
    }
    runtime::run(async |interrupt| connect_and_copy(args, interrupt).await)
        .unwrap_or_else(Outcome::of_error)
}

async fn connect_and_copy(args: &CatArgs, interrupt: Interrupt) -> Outcome {
    let transfer = Transfer::new();
    let copied = async {
        let stream = match args.role() {
            Role::Client(node) => connect(args, node).await?,
            Role::Server(address) => accept(address).await?,
        };
        copy(stream, &transfer)
            .await
            .map_err(|error| transfer.failed(&error))
    };
    let copied = tokio::select! {
        copied = copied => copied,
        () = interrupt.wait() => Err(transfer.failed(&"interrupted")),
    };
    Outcome {
        output: String::new(),
        success: copied.is_ok(),
        error_text: copied.err(),
    }
}

async fn connect(args: &CatArgs, node: &str) -> Result<RdmaStream, String> {
    let connector = Connector::new((node, args.port.to_string())).deadline(args.timeout.0);
    let connected = connector.connect_stream(StreamOptions::new()).await;
    connected.map_err(|error| unconnected(&error).to_string())
}

/// Accepts one stream. From then on the kernel rejects further peers.
async fn accept(address: SocketAddr) -> Result<RdmaStream, String> {
    let listener = Listener::bind(address).map_err(|error| error.to_string())?;
    check_devices(&listener)?;
    terminal::print_notice(&format!("listening on {}", listener.local_addr()));
    let listener = RdmaListener::new(listener, StreamOptions::new());
    let (stream, peer) = listener.accept().await.map_err(|error| error.to_string())?;
    terminal::print_notice(&format!("{peer}: connected"));
    Ok(stream)
}

/// Closes standard output, so that its reader learns of the end while this side still sends.
/// Something takes its number, which no other file may get.
fn end_output() -> io::Result<()> {
    Ok(dup2_stdout(File::options().write(true).open("/dev/null")?)?)
}

/// Copies standard input to the peer, and what the peer sends to standard output, until both
/// have ended.
async fn copy(stream: RdmaStream, transfer: &Transfer) -> io::Result<()> {
    let (mut from_peer, mut to_peer) = stream.into_split();
    let output = async {
        let output = tokio::io::stdout();
        transfer
            .copy(Direction::Received, &mut from_peer, output)
            .await?;
        end_output()
    };
    let input = transfer.copy(Direction::Sent, tokio::io::stdin(), &mut to_peer);
    // What the peer has sent arrives also if it takes no more.
    if stdin().is_terminal() {
        let mut output = pin!(output);
        tokio::select! {
            // Nobody would type an end of input to a peer that has nothing more to say.
            received = &mut output => received?,
            sent = input => {
                output.await?;
                sent?;
            }
        }
    } else {
        let (sent, ()) = tokio::try_join!(async { Ok(input.await) }, output)?;
        sent?;
    }
    match from_peer.reunite(to_peer) {
        Ok(stream) => stream.close(CLOSE_DEADLINE).await,
        Err(_) => Err(io::Error::other("the halves are of different streams")),
    }
}
