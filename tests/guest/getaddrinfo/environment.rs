//! The environment of the questions: an `/etc` and a name server.

use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;

use crate::addrinfo::private_etc::PrivateEtc;
use crate::rdma_core::RdmaCore;

/// The name server's program.
pub(super) const NAME_SERVER: &str = "/usr/sbin/dnsmasq";
/// The address of the name server that is second in the list.
const SECOND_ADDRESS: &str = "127.0.0.56";
/// An address without a server.
const DEAD_ADDRESS: &str = "127.0.0.55";

/// The name server's address, and that of the server to which it forwards. Comparisons
/// run at the same time, each with servers of its own.
fn servers(judge: RdmaCore) -> [&'static str; 2] {
    match judge {
        RdmaCore::System => ["127.0.0.53", "127.0.0.54"],
        RdmaCore::Newest => ["127.0.1.53", "127.0.1.54"],
    }
}

/// Addresses of both devices, of no device, and without a route, so that the system has
/// addresses to sort. None of them is a silent neighbour.
const HOSTS: &str = "\
127.0.0.1 localhost
::1 localhost
10.71.1.1 rxe rxe-alias
fd71:1::1 rxe6
10.71.2.1 siw
10.71.1.1 both
fd71:1::1 both
fd71:2::1 turned
10.71.2.1 turned
203.0.113.9 many
10.71.3.1 many
10.71.2.1 many
2001:db8::9 many
fd71:2::1 many
10.71.1.1 many
203.0.113.10 far
198.51.100.10 far
127.0.0.1 looped
10.71.1.1 Mixed-Case
";

/// The same service on both transports or on one; names and aliases.
const SERVICES: &str = "\
storage 7471/tcp
storage 7472/udp
streams 7473/tcp
datagrams 7474/udp
same 7475/tcp either
same 7475/udp either
another 7476/tcp streams-alias
3com-tsmux 106/tcp
sctp-only 7477/sctp
";

/// The name server's own records.
const ZONE: &str = "\
no-resolv
no-hosts
no-round-robin
cache-size=0
user=root
pid-file
bind-interfaces
addn-hosts=/etc/zone-hosts
local=/test/
address=/#/
local=/corp.test/
cname=alias.test,four.test
cname=second.test,alias.test
cname=chain.test,second.test
cname=both-alias.test,both.test
cname=far-alias.test,elsewhere.upstream.test
txt-record=text.test,no address
";
const ZONE_HOSTS: &str = "\
10.71.1.1 four.test
fd71:1::1 six.test
10.71.1.1 both.test
fd71:1::1 both.test
203.0.113.1 many.test
10.71.2.1 many.test
10.71.1.1 many.test
198.51.100.1 many.test
2001:db8::1 many.test
fd71:2::1 many.test
fd71:1::1 many.test
fe80::1 link-local.test
127.0.0.1 loopback.test
0.0.0.0 wildcard.test
::ffff:10.71.1.1 mapped.test
10.71.1.1 short.corp.test
10.71.1.1 under_score.test
";
/// More addresses than fit into a datagram.
const CROWD: u8 = 60;

/// Runs `questions` in this environment, on a thread of its own with child processes.
pub(super) fn run(judge: RdmaCore, questions: impl FnOnce() + Send) {
    let [address, upstream] = servers(judge);
    let socket = UdpSocket::bind((upstream, 53)).unwrap();
    thread::spawn(move || serve(&socket));
    let resolver =
        format!("nameserver {address}\noptions timeout:5 attempts:1\nsearch corp.test\n");
    let zone = format!("{ZONE}server=/upstream.test/{upstream}\n");
    etc(&resolver, &zone).run(|| {
        let _server = NameServer::start(address);
        questions();
    });
}

/// Like [`run`], but the first of two name servers never answers and the C library's
/// own timeout applies.
pub(super) fn run_behind_a_dead_server(questions: impl FnOnce() + Send) {
    let _dead = UdpSocket::bind((DEAD_ADDRESS, 53)).unwrap();
    let resolver = format!("nameserver {DEAD_ADDRESS}\nnameserver {SECOND_ADDRESS}\n");
    etc(&resolver, ZONE).run(|| {
        let _server = NameServer::start(SECOND_ADDRESS);
        questions();
    });
}

fn etc(resolver: &str, zone: &str) -> PrivateEtc {
    let crowd = (1..=CROWD).map(|host| format!("198.51.100.{host} crowd.test\n"));
    let zone_hosts = ZONE_HOSTS.to_owned() + &crowd.collect::<String>();
    PrivateEtc::new()
        .keeping("libibverbs.d")
        .file("nsswitch.conf", "hosts: files dns\nservices: files\n")
        .file("resolv.conf", resolver)
        .file("hosts", HOSTS)
        .file("services", SERVICES)
        .file("passwd", "root:x:0:0:root:/root:/bin/sh\n")
        .file("group", "root:x:0:\n")
        .file("zone", zone)
        .file("zone-hosts", &zone_hosts)
}

/// The name server, which is killed when dropped.
struct NameServer {
    process: Child,
    /// Kept open, so that the name server can write to it.
    _log: BufReader<ChildStderr>,
}

impl NameServer {
    /// Returns when it listens.
    fn start(address: &str) -> Self {
        let mut process = Command::new(NAME_SERVER)
            .args(["--keep-in-foreground", "--log-facility=-"])
            .args(["--conf-file=/etc/zone", "--listen-address", address])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(process.stderr.take().unwrap());
        let mut output = String::new();
        while !output.contains("started") {
            let read = log.read_line(&mut output).unwrap();
            assert_ne!(read, 0, "the name server ended: {output}");
        }
        Self { process, _log: log }
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A server that answers with errors: the first label of the name selects the error. It
/// does not answer other names.
fn serve(socket: &UdpSocket) {
    const IS_ANSWER: u8 = 0x80;
    let codes: &[(&[u8], u8)] = &[
        (b"malformed", 1),
        (b"failing", 2),
        (b"unimplemented", 4),
        (b"refusing", 5),
    ];
    let mut question = [0; 512];
    while let Ok((length, asker)) = socket.recv_from(&mut question) {
        let answer = &mut question[..length];
        let label = usize::from(answer[12]);
        let name = &answer[13..13 + label];
        let Some((_, code)) = codes.iter().find(|(known, _)| *known == name) else {
            continue;
        };
        answer[2] |= IS_ANSWER;
        answer[3] = *code;
        let _ = socket.send_to(answer, asker);
    }
}
