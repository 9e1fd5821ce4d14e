//! Replays a trace: the calls of a program that was traced, on files made here, by as many threads, in their order
//! and with their pauses.
//!
//! `job` is what was asked, `script` the calls as a file, `files` what they act on, `shared` what its
//! threads share, `thread` what each does, `runner` the trial around them, `summary` what is said of it.

mod files;
mod runner;
mod script;
#[cfg(test)]
mod tests;
mod thread;

pub use files::lay_out;
pub use runner::run;
pub use script::Script;
pub use script::{FORMAT, ReplayJob};
