//! The load engine: a job goes in, latencies and series come out. Python is never called from here.
//!
//! From the top: `any_job` reads, lays out and runs whatever is asked. `engines` move the data. `transfer`, `metadata`
//! and `replay` are kinds of trial beside that of data: `worker` is what each of its threads does in the measured
//! interval, `trial` what is around it. `blocks` says what is moved, `job` what is asked, with numbers from `draws`.
//! `io` has the traits of an engine, `schemes` one file for each kind of storage, `volume` the traits that these
//! implement; all calls below the standard library are in `sys`. Nothing uses what stands before it here
//! (`tools/house/circles.py`).

pub mod any_job;
pub mod blocks;
pub mod draws;
mod engines;
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

pub use any_job::AnyJob;
pub use blocks::pattern;
pub use draws::{distribution, offsets, random, sizes};
pub use error::{EngineError, Failure, FailureKind};
pub use job::{Job, geometry};

/// Asked between the slices of long work: the signal that came, if any.
pub type Interrupts<'a> = &'a (dyn Fn() -> Option<i32> + Sync);
