//! The load engine: a job goes in, latencies and series come out. Python is never called from here.
//!
//! `runner` starts threads, `worker` is what each does in the measured interval, `collector` writes what
//! they hand over. `blocks` says what is moved, `schemes` has one folder for each kind of storage, `io` and `volume`
//! the traits that they implement; all calls below the standard library are in `sys`.

pub mod blocks;
pub mod check;
pub mod collector;
pub mod context;
pub mod error;
pub mod histogram;
pub mod interval;
pub mod io;
pub mod job;
pub mod layout;
pub mod metadata;
mod opening;
pub mod pacer;
mod parts;
pub mod progress;
pub mod replay;
pub mod runner;
pub mod schemes;
pub mod summary;
pub mod sys;
pub mod volume;
pub mod watch;
pub mod worker;

pub use blocks::{distribution, geometry, offsets, pattern, random, sizes, source};
pub use error::{EngineError, Failure, FailureKind};
pub use job::Job;

/// Asked between the slices of long work: the signal that came, if any.
pub type Interrupts<'a> = &'a (dyn Fn() -> Option<i32> + Sync);
