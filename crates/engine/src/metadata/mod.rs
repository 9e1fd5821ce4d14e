//! Metadata jobs, as mdtest does them: files and directories are made, looked at and removed, phase after phase.
//!
//! `job` is what was asked, `steps` what follows from it, `thread` what each thread does in a step, `shared` what
//! the threads hand over, `runner` the trial around them.

mod job;
mod runner;
mod steps;
mod thread;

pub use job::{FORMAT, MetadataJob};
pub use runner::run;
