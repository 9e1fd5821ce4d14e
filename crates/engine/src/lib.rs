//! The load engine: a job goes in, latencies and series come out. Python is never called from here.
//!
//! `job` is what is asked, `trial` runs it, `worker` is what each thread does in the measured interval; `metadata`
//! and `replay` are the other kinds of trial. `io` has one file per I/O engine, `volume` the storage around them; all
//! calls below the standard library are in `sys`.

pub mod distribution;
pub mod error;
pub mod geometry;
pub mod histogram;
pub mod io;
pub mod job;
pub mod location;
pub mod metadata;
pub mod offsets;
mod opening;
mod parts;
pub mod pattern;
pub mod random;
pub mod replay;
mod s3;
pub mod schemes;
pub mod sizes;
pub mod sys;
pub mod trial;
pub mod varied;
pub mod volume;
pub mod worker;

pub use error::{EngineError, Failure, FailureKind};
pub use job::Job;

/// Asked between the slices of long work: the signal that came, if any.
pub type Interrupts<'a> = &'a (dyn Fn() -> Option<i32> + Sync);
