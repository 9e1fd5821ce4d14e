//! Ceph's own libraries: objects, striped objects, and the file system without the kernel.

pub mod libcephfs;
pub mod librados;
pub mod libradosstriper;
pub mod queue;
