//! `rdmacm cat`.

use std::fs::File;
use std::future::{Future, pending};
use std::io::{self, IsTerminal, stdin};
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::pin::pin;

use nix::unistd::{close, dup2_stdout};
use rdmacm::tokio::{Connector, Listener, OwnedReadHalf, OwnedWriteHalf, RdmaListener, RdmaStream};
use rdmacm::{CLOSE_DEADLINE, Cause};

use crate::args::{CatArgs, Role, usage_error};
use crate::connect_error::connect_error;
use crate::interrupt::Interrupt;
use crate::keep_alive::stream_options;
use crate::outcome::Outcome;
use crate::runtime;
use crate::serve::{check_devices, notice_and_pause, stay_after_lost_socket};
use crate::terminal;
use transfer::{CopyError, Direction, Transfer};

mod transfer;

pub(crate) fn run(args: &CatArgs) -> Outcome {
    if let Some(contradiction) = args.contradiction() {
        usage_error(&contradiction);
    }
    if let Err(error) = crate::check_stdout() {
        return Outcome::of_error(io::Error::other(format!("standard output: {error}")));
    }
    runtime::run(async |interrupt| connect_and_copy(args, interrupt).await)
        .unwrap_or_else(Outcome::of_error)
}

async fn connect_and_copy(args: &CatArgs, interrupt: Interrupt) -> Outcome {
    let transfer = Transfer::new();
    let mut lost_socket = None;
    let connected = unless_interrupted(&transfer, &interrupt, async {
        match args.role() {
            Role::Client(node) => connect(args, node).await,
            Role::Server(address) => accept(address, &mut lost_socket).await,
        }
    });
    let copied = match connected.await {
        Ok(stream) => copy(stream, &transfer, &interrupt).await,
        Err(failure) => Err(failure),
    };
    let copied = match lost_socket {
        None => copied,
        Some(loss) => {
            let failure = copied.as_ref().err().map(String::as_str);
            stay_after_lost_socket(failure, &interrupt).await;
            copied.and(Err(loss))
        }
    };
    Outcome {
        output: String::new(),
        success: copied.is_ok(),
        error_text: copied.err(),
    }
}

async fn unless_interrupted<T>(
    transfer: &Transfer,
    interrupt: &Interrupt,
    work: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    tokio::select! {
        done = work => done,
        () = interrupt.wait() => Err(transfer.failed(&"interrupted")),
    }
}

async fn connect(args: &CatArgs, node: &str) -> Result<RdmaStream, String> {
    let connector = Connector::new((node, args.port.to_string())).deadline(args.timeout.0);
    let connected = connector.connect_stream(stream_options()).await;
    connected.map_err(|error| connect_error(&error).to_string())
}

/// Accepts one stream. From then on the kernel rejects further peers. Reports a socket of the
/// listener that siw has closed meanwhile.
async fn accept(
    address: SocketAddr,
    lost_socket: &mut Option<String>,
) -> Result<RdmaStream, String> {
    let listener = Listener::bind(address).map_err(|error| error.to_string())?;
    check_devices(&listener)?;
    terminal::print_notice(&format!("listening on {}", listener.local_addr()));
    let is_wildcard = listener.local_addr().is_unspecified();
    let listener = RdmaListener::new(listener, stream_options());
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                terminal::print_notice(&format!("{peer}: connected"));
                return Ok(stream);
            }
            Err(error) if has_lost_socket(&error) => {
                terminal::print_notice(&error.to_string());
                *lost_socket = Some(error.to_string());
                if !is_wildcard {
                    pending::<()>().await;
                }
            }
            Err(error) if inner(&error).is_some_and(|error| !error.ends_listener()) => {
                notice_and_pause(&error).await;
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn has_lost_socket(error: &io::Error) -> bool {
    let cause = inner(error).map(rdmacm::Error::cause);
    matches!(cause, Some(Cause::ListenerSocketClosed { .. }))
}

/// The library's error in one of a stream.
fn inner(error: &io::Error) -> Option<&rdmacm::Error> {
    error.get_ref()?.downcast_ref()
}

/// Closes standard output, so that its reader learns of the end while this side still sends.
/// Something takes its number, which no other file may get.
fn end_output() -> io::Result<()> {
    // Some file systems report at a close that they could not write. `dup2` does not say so.
    close(io::stdout().as_fd().try_clone_to_owned()?)?;
    Ok(dup2_stdout(File::options().write(true).open("/dev/null")?)?)
}

/// Copies until both directions have ended, and closes the stream. If that fails, the peer does
/// not find the end of the stream: it must not take what it has for all there is.
async fn copy(
    stream: RdmaStream,
    transfer: &Transfer,
    interrupt: &Interrupt,
) -> Result<(), String> {
    let (mut from_peer, mut to_peer) = stream.into_split();
    let copied = unless_interrupted(transfer, interrupt, async {
        let copied = copy_both(transfer, &mut from_peer, &mut to_peer).await;
        copied.map_err(|error| transfer.failed(&error))
    });
    if let Err(failure) = copied.await {
        to_peer.abort();
        return Err(failure);
    }
    let Ok(stream) = from_peer.reunite(to_peer) else {
        return Err("the halves are of different streams".to_owned());
    };
    unless_interrupted(transfer, interrupt, async {
        let closed = stream.close(CLOSE_DEADLINE).await;
        closed.map_err(|error| transfer.failed(&error))
    })
    .await
}

/// Copies standard input to the peer, and what the peer sends to standard output, until both
/// have ended.
async fn copy_both(
    transfer: &Transfer,
    from_peer: &mut OwnedReadHalf,
    to_peer: &mut OwnedWriteHalf,
) -> io::Result<()> {
    let output = async {
        let output = tokio::io::stdout();
        transfer
            .copy(Direction::Received, from_peer, output)
            .await?;
        end_output()
    };
    let input = async {
        let input = tokio::io::stdin();
        match transfer.copy(Direction::Sent, input, to_peer).await {
            // What the peer has sent arrives also if it takes no more.
            Err(CopyError::Write(error)) => Ok(Err(error)),
            Err(CopyError::Read(error)) => Err(error),
            Ok(()) => Ok(Ok(())),
        }
    };
    if !stdin().is_terminal() {
        let (sent, ()) = tokio::try_join!(input, output)?;
        return sent;
    }
    let mut output = pin!(output);
    tokio::select! {
        // The input first: a line that was read is missed if the end is looked at before it.
        biased;
        sent = input => {
            let sent = sent?;
            output.await?;
            sent
        }
        // Nobody would type an end of input to a peer that has nothing more to say.
        received = &mut output => {
            received?;
            transfer.check_that_all_is_sent()
        }
    }
}
