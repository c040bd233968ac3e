//! error: cannot index into a value of type `&RemoteAccessRegion`
//! error: expected `&[u8]`, found `&RemoteAccessRegion`
//! error: RemoteAccessRegion: AsRef<[u8]>` is not satisfied

use rdmacm::verbs::RemoteAccessRegion;

fn index(memory: &RemoteAccessRegion) -> u8 {
    memory[0]
}

fn slice(memory: &RemoteAccessRegion) -> &[u8] {
    memory
}

fn bytes<T: AsRef<[u8]>>(memory: &T) -> &[u8] {
    memory.as_ref()
}

fn main() {
    let _ = (index, slice);
    let _ = bytes::<RemoteAccessRegion>;
}
