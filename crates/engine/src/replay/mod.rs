//! Replays a trace: the calls of a program that was traced, on files made here, by as many threads, in their order
//! and with their pauses.
//!
//! `job` is what was asked, `script` the calls as a file, `files` what they act on, `thread` what each thread does,
//! `runner` the trial around them, `summary` what is said of it.

mod files;
mod job;
mod runner;
mod script;
mod summary;
#[cfg(test)]
mod tests;
mod thread;

pub use files::lay_out;
pub use job::{FORMAT, ReplayJob, is_meant};
pub use runner::run;
