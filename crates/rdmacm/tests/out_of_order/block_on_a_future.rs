//! error: mismatched types
//! error: expected `&Node<Blocking>`, found `&Node<Async<Tokio>>`

fn mixed(node: &rdmacm::tokio::Node) -> rdmacm::Connector {
    rdmacm::Connector::new("storage-7", "7471").on(node)
}

fn main() {
    let _ = mixed;
}
