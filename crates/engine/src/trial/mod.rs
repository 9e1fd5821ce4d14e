//! What happens around the measured loop, from the first thread's start to the summary.
//!
//! `runner` is the one runner of trials, whatever they do; `watch` knows what ends one before its end. The rest is
//! of jobs that read and write: `data` their trial and its summary, `layout` and `check` their files before and after,
//! `pacer` what each thread goes by, `context` and `collector` the hand-over of intervals.

pub mod check;
pub mod collector;
pub mod context;
pub(crate) mod data;
pub mod layout;
pub mod meeting;
pub mod pacer;
pub(crate) mod parts;
pub mod runner;
pub mod watch;

pub use runner::{Ending, ThreadRow, threads_json};
