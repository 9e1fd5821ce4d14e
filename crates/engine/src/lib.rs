//! The load engine: a job goes in, latencies and series come out. Python is never called from here.
//!
//! `job` is what is asked, `trial` runs it, `worker` is what each thread does in the measured interval; `metadata`,
//! `replay` and `transfer` are the other kinds of trial. `blocks` says what is moved, `schemes` has one folder for each kind of
//! storage, `io` and `volume` the traits that they implement; all calls below the standard library are in `sys`.

pub mod blocks;
pub mod error;
pub mod histogram;
pub mod io;
pub mod job;
pub mod metadata;
pub mod replay;
pub mod schemes;
mod sync;
pub mod sys;
pub mod transfer;
pub mod trial;
pub mod volume;
pub mod worker;

pub use blocks::{distribution, geometry, offsets, pattern, random, sizes};
pub use error::{EngineError, Failure, FailureKind};
pub use job::Job;

/// Asked between the slices of long work: the signal that came, if any.
pub type Interrupts<'a> = &'a (dyn Fn() -> Option<i32> + Sync);
