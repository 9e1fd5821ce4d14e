//! What threads wait on, by one name: `tests/loom.rs` has a module of this name with loom's types, and takes the
//! sources of what it tries beside it.

pub use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A panic elsewhere is reported elsewhere; the data behind these locks is plain.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
