//! error: borrow of moved value: `connection`
//! error: `connection` moved due to this method call

fn after(connection: rdmacm::Connection) {
    let halves = connection.into_split();
    drop(connection.receive());
    drop(halves);
}

fn main() {
    let _ = after;
}
