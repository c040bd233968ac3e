//! What layers above keep with an event loop.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

type Values = HashMap<TypeId, Arc<dyn Any + Send + Sync>>;

/// One value of each type, such as the devices that are open for messages. So the event
/// loop knows nothing of the layers that use it.
#[derive(Default)]
pub(crate) struct Extensions(Mutex<Values>);

impl Extensions {
    /// Replaces the value of this type.
    pub(crate) fn insert<T: Any + Send + Sync>(&self, value: T) {
        let replaced = self.values().insert(TypeId::of::<T>(), Arc::new(value));
        drop(replaced);
    }

    /// The value of this type, which is made if there is none.
    pub(crate) fn get_or_default<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        let mut values = self.values();
        let value = values.entry(TypeId::of::<T>());
        let value = Arc::clone(value.or_insert_with(|| Arc::new(T::default())));
        drop(values);
        // The key is the type's, so this never makes another one.
        value.downcast().unwrap_or_default()
    }

    fn values(&self) -> MutexGuard<'_, Values> {
        self.0.lock()
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_value_of_each_type() {
        let extensions = Extensions::default();
        let value = extensions.get_or_default::<Mutex<u32>>();
        *value.lock() = 7;
        let again = extensions.get_or_default::<Mutex<u32>>();
        assert_eq!(*again.lock(), 7);
        let other = extensions.get_or_default::<Mutex<u64>>();
        assert_eq!(*other.lock(), 0);
    }
}
