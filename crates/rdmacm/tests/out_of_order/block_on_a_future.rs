//! error: mismatched types
//! error: expected `rdmacm::Node`, found `rdmacm::asynchronous::Node`

fn mixed(node: &rdmacm::tokio::Node) -> rdmacm::Connector {
    rdmacm::Connector::new(("storage-7", "7471")).with_node(node)
}

fn main() {
    let _ = mixed;
}
