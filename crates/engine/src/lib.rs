//! The load engine: a job goes in, latencies and series come out. Python is never called from here.
//!
//! `runner` starts threads, `worker` is what each does in the measured interval, `collector` writes what
//! they hand over. `io` has one file per I/O engine, `volume` the storage around them; all calls below the
//! standard library are in `sys`.

pub mod check;
pub mod collector;
pub mod context;
pub mod distribution;
pub mod error;
pub mod geometry;
pub mod histogram;
pub mod interval;
pub mod io;
pub mod job;
pub mod layout;
pub mod location;
pub mod metadata;
pub mod offsets;
mod opening;
pub mod pacer;
mod parts;
pub mod pattern;
pub mod progress;
pub mod random;
pub mod replay;
pub mod runner;
mod s3;
pub mod scheme;
pub mod sizes;
pub mod source;
pub mod summary;
pub mod sys;
pub mod varied;
pub mod volume;
pub mod watch;
pub mod worker;

pub use error::{EngineError, Failure, FailureKind};
pub use job::Job;

/// Asked between the slices of long work: the signal that came, if any.
pub type Interrupts<'a> = &'a (dyn Fn() -> Option<i32> + Sync);
