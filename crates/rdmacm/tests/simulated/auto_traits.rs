//! What may be shared by threads, and which futures may be spawned.

use std::fmt::Debug;

use rdmacm::core::{Deadline, IdHandle};
use rdmacm::tokio as mode;
use rdmacm::verbs::{Buffer, RemoteMemory};
use rdmacm::{Error, Message, ReuniteError, StopGroup, StopHandle, TransferError};

use crate::queue_pair::NumberedQp;

fn is_shared<T: Debug + Send + Sync + 'static>() {}

fn is_spawned<T: Send>(_: &T) {}

#[test]
fn all_types_are_send_and_sync() {
    macro_rules! all_of {
        ($mode:path) => {{
            use $mode as mode;
            is_shared::<mode::Node>();
            is_shared::<mode::NodeOptions>();
            is_shared::<mode::Connector>();
            is_shared::<mode::Resolved>();
            is_shared::<mode::Listener>();
            is_shared::<mode::Incoming>();
            is_shared::<mode::CmConnection<NumberedQp>>();
            is_shared::<mode::Connection>();
            is_shared::<mode::SendHalf>();
            is_shared::<mode::ReceiveHalf>();
            is_shared::<mode::Transfer<'static, Buffer>>();
            is_shared::<mode::Endpoint>();
            is_shared::<mode::ListeningEndpoint>();
            is_shared::<mode::RdmaStream>();
            is_shared::<mode::RdmaListener>();
            is_shared::<mode::OwnedReadHalf>();
            is_shared::<mode::OwnedWriteHalf>();
            is_shared::<mode::DatagramSocket>();
            is_shared::<mode::RdmaDatagram>();
        }};
    }
    all_of!(rdmacm);
    all_of!(rdmacm::tokio);
    is_shared::<Error>();
    is_shared::<Message>();
    is_shared::<TransferError<Buffer>>();
    is_shared::<ReuniteError<rdmacm::SendHalf, rdmacm::ReceiveHalf>>();
    is_shared::<StopGroup>();
    is_shared::<StopHandle>();
    is_shared::<IdHandle>();
}

/// What is compiled is enough.
#[expect(dead_code, reason = "its types are what is tested")]
fn all_futures_are_send(
    (node, connector, listener): (&mode::Node, &mode::Connector, &mode::Listener),
    (connection, buffer, memory): (&mode::Connection, Buffer, RemoteMemory),
    (stream, streams): (&mode::RdmaStream, &mode::RdmaListener),
    socket: &mode::RdmaDatagram,
) {
    is_spawned(&connector.clone().connect());
    is_spawned(&connector.clone().resolve());
    is_spawned(&listener.accept(Deadline::Never));
    is_spawned(&listener.incoming().next());
    is_spawned(&connection.send(b""));
    is_spawned(&connection.receive());
    is_spawned(&connection.flush());
    is_spawned(&connection.closed(Deadline::Never));
    is_spawned(&connection.close(Deadline::Never));
    is_spawned(&connection.read(buffer, memory));
    is_spawned(&stream.peek(&mut []));
    is_spawned(&stream.readable());
    is_spawned(&streams.accept());
    is_spawned(&streams.incoming().next());
    is_spawned(&socket.send_to(b"", ([0; 4], 0).into()));
    is_spawned(&socket.recv_from(&mut []));
    is_spawned(&node.drive());
}
