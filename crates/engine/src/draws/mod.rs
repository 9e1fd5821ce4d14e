//! What a job says of numbers that are drawn, and how they are: randomness, offsets, sizes and their distributions.

pub mod distribution;
pub mod offsets;
pub mod random;
pub mod sizes;
