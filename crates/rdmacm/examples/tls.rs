//! TLS over RDMA, with rustls and a provider of cryptography that needs no C compiler. The server
//! sends back what it receives.
//!
//! ```text
//! server$ openssl req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256 -days 30 \
//!             -subj /CN=storage-7 -addext subjectAltName=IP:10.1.0.7 \
//!             -addext basicConstraints=critical,CA:FALSE -keyout key.pem -out certificate.pem
//! server$ tls serve 10.1.0.7:7471 certificate.pem key.pem
//! client$ tls 10.1.0.7:7471 certificate.pem hello
//! ```
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rdmacm::tokio::{RdmaListener, RdmaStream};
use rustls_graviola::default_provider;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy, split};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{Accept, TlsAcceptor, TlsConnector};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *arguments {
        ["serve", address, certificate, key] => serve(address.parse()?, certificate, key).await,
        [address, certificate, text] => send(address.parse()?, certificate, text).await,
        _ => Err("usage: tls serve ADDRESS CERTIFICATE KEY | ADDRESS CERTIFICATE TEXT".into()),
    }
}

async fn serve(address: SocketAddr, certificate: &str, key: &str) -> Result<()> {
    let chain = vec![CertificateDer::from_pem_file(certificate)?];
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = RdmaListener::bind(address)?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) if ends_listener(&error) => return Err(error.into()),
            // There is no stream with this peer, and others come.
            Err(error) => {
                println!("{error}");
                continue;
            }
        };
        let handshake = acceptor.accept(stream);
        tokio::spawn(async move { println!("{from}: {:?}", echo(handshake).await) });
    }
}

fn ends_listener(error: &io::Error) -> bool {
    rdmacm::Error::from_io(error).is_some_and(rdmacm::Error::ends_listener)
}

/// Sends back what it receives, and returns how many bytes that was.
async fn echo(handshake: Accept<RdmaStream>) -> io::Result<u64> {
    let (mut read, mut write) = split(handshake.await?);
    let bytes = copy(&mut read, &mut write).await?;
    write.shutdown().await?;
    Ok(bytes)
}

async fn send(address: SocketAddr, certificate: &str, text: &str) -> Result<()> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate)?)?;
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let stream = RdmaStream::connect(address).await?;
    let mut stream = connector.connect(address.ip().into(), stream).await?;
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await?;
    println!("{reply}");
    Ok(())
}
