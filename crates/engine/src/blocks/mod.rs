//! Which blocks a trial moves, in which order and of which sizes, and what is in them. Touches no storage.

pub mod ledger;
pub mod pattern;
pub mod source;
mod varied;
pub mod verdict;
