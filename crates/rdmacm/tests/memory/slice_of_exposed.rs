//! error: cannot index into a value of type `&ExposedMemory`
//! error: expected `&[u8]`, found `&ExposedMemory`
//! error: ExposedMemory: AsRef<[u8]>` is not satisfied

use rdmacm::verbs::ExposedMemory;

fn index(memory: &ExposedMemory) -> u8 {
    memory[0]
}

fn slice(memory: &ExposedMemory) -> &[u8] {
    memory
}

fn bytes<T: AsRef<[u8]>>(memory: &T) -> &[u8] {
    memory.as_ref()
}

fn main() {
    let _ = (index, slice);
    let _ = bytes::<ExposedMemory>;
}
