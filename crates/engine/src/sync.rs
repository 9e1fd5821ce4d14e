//! What threads wait on, by one name: `tests/loom.rs` has a module of this name with loom's types, and takes the
//! sources of what it tries beside it.

pub use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
