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
use tokio::io::{AsyncWriteExt as _, copy, split, stdout};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{Accept, TlsAcceptor, TlsConnector};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let _ = default_provider().install_default();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match *arguments.iter().map(String::as_str).collect::<Vec<_>>() {
        ["serve", address, certificate, key] => serve(address.parse()?, certificate, key).await,
        [address, certificate, text] => send(address.parse()?, certificate, text).await,
        _ => Err("usage: tls serve ADDRESS CERTIFICATE KEY | ADDRESS CERTIFICATE TEXT".into()),
    }
}

async fn serve(address: SocketAddr, certificate: &str, key: &str) -> Result<(), Box<dyn Error>> {
    let chain = vec![CertificateDer::from_pem_file(certificate)?];
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = RdmaListener::bind(address)?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                let handshake = acceptor.accept(stream);
                tokio::spawn(async move { println!("{from}: {:?}", echo(handshake).await) });
            }
            // One peer could not be accepted. The listener goes on.
            Err(error) if !ends_listener(&error) => println!("{error}"),
            Err(error) => return Err(error.into()),
        }
    }
}

fn ends_listener(error: &io::Error) -> bool {
    rdmacm::Error::from_io(error).is_some_and(rdmacm::Error::ends_listener)
}

/// Sends back what it receives, and returns how many bytes that was.
async fn echo(handshake: Accept<RdmaStream>) -> io::Result<u64> {
    let (mut read, mut write) = split(handshake.await?);
    let bytes = copy(&mut read, &mut write).await?;
    write.shutdown().await.map(|()| bytes)
}

async fn send(address: SocketAddr, certificate: &str, text: &str) -> Result<(), Box<dyn Error>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate)?)?;
    let config = ClientConfig::builder().with_root_certificates(roots);
    let connector = TlsConnector::from(Arc::new(config.with_no_client_auth()));
    let stream = RdmaStream::connect(address).await?;
    let mut stream = connector.connect(address.ip().into(), stream).await?;
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await?;
    copy(&mut stream, &mut stdout()).await?;
    Ok(())
}
