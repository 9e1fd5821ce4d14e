//! Ceph's own libraries: objects, striped objects, and the file system without the kernel.

pub mod libcephfs;
pub mod librados;
pub mod libradosstriper;
pub mod queue;

use std::ffi::c_int;

use crate::sys::library::Missing;

/// What went wrong while making a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    Library(Missing),
    /// The step in words, and its errno.
    Step(&'static str, i32),
}

fn step(what: &'static str, result: c_int) -> Result<(), Refusal> {
    if result < 0 {
        Err(Refusal::Step(what, -result))
    } else {
        Ok(())
    }
}
