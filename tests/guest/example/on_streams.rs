//! Protocols of other crates, on streams.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rdmacm_tests::{Site, free_port};
use rdmacm_tests_macros::case;

use super::{address, printed};
use crate::c_tools::tool::Tool;
use crate::command::built;

/// A server, which listens.
fn serve(name: &str, arguments: &[&str]) -> Tool {
    let mut server = Command::new(built(&format!("examples/{name}")));
    server.arg("serve").args(arguments);
    let mut server = Tool::spawn_on(&mut server, Stdio::null(), Stdio::piped());
    server.wait_for("listening on ");
    server
}

#[case]
fn http_requests_share_a_connection(site: &Site) {
    let address = address(site);
    let mut server = serve("http", &[&address]);
    let long = "long ".repeat(20_000);
    let replies = printed("http", &[&address, "short", &long]);
    assert_eq!(replies, format!("200 OK: short\n200 OK: {long}\n"));
    server.wait_for(&format!("{}:", site.v4));
    let requests = ["POST /echo"; 2].map(str::to_owned);
    assert_eq!(server.stop().printed()[1..3], requests);
}

#[case]
fn frames_are_answered(site: &Site) {
    assert_eq!(
        printed("frames", &[&address(site)]),
        "3 bytes\n10 bytes\n30 bytes\n3 requests\n"
    );
}

/// A certificate of a server, as the example's documentation makes one, and its key.
struct Certificate {
    folder: PathBuf,
}

impl Certificate {
    fn new(site: &Site) -> Self {
        let folder = std::env::temp_dir().join(format!("certificate-{}", free_port()));
        fs::create_dir(&folder).unwrap();
        let certificate = Self { folder };
        let name = format!("subjectAltName=IP:{}", site.v4);
        let made = Command::new("openssl")
            .args(["req", "-x509", "-nodes", "-newkey", "ec", "-days", "30"])
            .args(["-pkeyopt", "ec_paramgen_curve:P-256"])
            .args(["-subj", "/CN=storage-7", "-addext", &name])
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .args(["-out", &certificate.path()])
            .args(["-keyout", &certificate.key()])
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        certificate
    }

    fn path(&self) -> String {
        self.file("certificate.pem")
    }

    fn key(&self) -> String {
        self.file("key.pem")
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[case]
fn tls_carries_a_text(site: &Site) {
    let address = address(site);
    let certificate = Certificate::new(site);
    let mut server = serve("tls", &[&address, &certificate.path(), &certificate.key()]);
    let text = "secret ".repeat(10_000);
    let reply = printed("tls", &[&address, &certificate.path(), &text]);
    assert_eq!(reply, text);
    server.wait_for(&format!("{}:", site.v4));
    server.stop().assert_contains(": Ok(70000)");
}

#[case]
fn tls_refuses_an_unknown_certificate(site: &Site) {
    let address = address(site);
    let [certificate, other] = [(); 2].map(|()| Certificate::new(site));
    let _server = serve("tls", &[&address, &certificate.path(), &certificate.key()]);
    let mut client = Command::new(built("examples/tls"));
    client.args([&address, &other.path(), "secret"]);
    let client = client.output().unwrap();
    assert_eq!(client.status.code(), Some(1));
    let complaint = String::from_utf8(client.stderr).unwrap();
    assert!(complaint.contains("InvalidCertificate"), "{complaint}");
}
