//! HTTP/1.1 over RDMA, with hyper: `http serve 10.1.0.7:7471` answers with the body of each request,
//! and `http 10.1.0.7:7471 TEXT…` sends each text on one connection.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::SocketAddr;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::HOST;
use hyper::service::service_fn;
use hyper::{Request, Response, client, server};
use hyper_util::rt::TokioIo;
use rdmacm::tokio::{RdmaListener, RdmaStream};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [serving, address] if serving == "serve" => serve(address.parse()?).await,
        [address, texts @ ..] => post(address.parse()?, texts).await,
        [] => Err("usage: http serve ADDRESS, or http ADDRESS TEXT…".into()),
    }
}

async fn serve(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let listener = RdmaListener::bind(address)?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) if ends_listener(&error) => return Err(error.into()),
            // One peer could not be accepted. The listener goes on.
            Err(error) => {
                println!("{error}");
                continue;
            }
        };
        tokio::spawn(async move {
            let connection = server::conn::http1::Builder::new();
            let served = connection.serve_connection(TokioIo::new(stream), service_fn(echo));
            println!("{from}: {:?}", served.await);
        });
    }
}

fn ends_listener(error: &io::Error) -> bool {
    rdmacm::Error::from_io(error).is_some_and(rdmacm::Error::ends_listener)
}

/// The body of the request is that of the response.
async fn echo(request: Request<Incoming>) -> Result<Response<Incoming>, Infallible> {
    println!("{} {}", request.method(), request.uri());
    Ok(Response::new(request.into_body()))
}

async fn post(address: SocketAddr, texts: &[String]) -> Result<(), Box<dyn Error>> {
    let stream = TokioIo::new(RdmaStream::connect(address).await?);
    let (mut requests, connection) = client::conn::http1::handshake(stream).await?;
    let connection = tokio::spawn(connection);
    for text in texts {
        let body = Full::new(Bytes::from(text.clone()));
        let request = Request::post("/echo").header(HOST, address.to_string());
        let response = requests.send_request(request.body(body)?).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        println!("{status}: {}", String::from_utf8_lossy(&body));
    }
    // Nothing more will be requested: the connection ends.
    drop(requests);
    Ok(connection.await??)
}
