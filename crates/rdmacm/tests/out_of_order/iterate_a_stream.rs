//! error: is not an iterator

fn iterate(listener: &rdmacm::tokio::Listener) {
    for incoming in listener.incoming() {
        drop(incoming);
    }
}

fn main() {
    let _ = iterate;
}
