//! Which blocks a trial moves, in which order and of which sizes, and what is in them. Touches no storage.

pub mod distribution;
pub mod geometry;
pub mod ledger;
mod map;
pub mod offsets;
pub mod pattern;
pub mod random;
pub mod sizes;
pub mod source;
mod tear;
mod varied;
pub mod verdict;
