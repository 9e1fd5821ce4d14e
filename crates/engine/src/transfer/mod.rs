//! Transfers: streams of whole files to a target or from it, each with so many requests of one buffer in flight, and
//! every acknowledgement on record.
//!
//! `job` is what was asked, `flow` the data, of `input` and through `checksum`, `acks` the log of
//! acknowledgements, `shared` what the threads share, `stream` what each does, `runner` the trial around them.

mod acks;
mod flow;
mod job;
mod runner;
mod stream;
#[cfg(test)]
mod tests;

pub use job::{Checksum, FORMAT, Transfer, TransferJob};
pub use runner::Transfers;
pub use runner::{lay_out, run};
pub use stream::run as run_stream;
