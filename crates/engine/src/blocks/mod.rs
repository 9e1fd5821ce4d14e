//! Which blocks a trial moves, in which order and of which sizes, and what is in them. Touches no storage.

pub mod ledger;
mod map;
pub mod pattern;
pub mod source;
mod tear;
mod varied;
pub mod verdict;
