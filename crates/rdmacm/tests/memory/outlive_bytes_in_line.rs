//! error: cannot return value referencing local variable `bytes`

use rdmacm::verbs::{SendOperation, SendRequest};

fn request<'a>() -> SendRequest<'a> {
    let bytes = vec![1; 8];
    SendRequest::inline(SendOperation::Send, &bytes)
}

fn main() {
    let _ = request;
}
