//! All calls below the standard library, behind safe functions. Nothing here knows jobs or trials.

pub mod buffer;
pub mod clock;
pub mod file;
pub mod lanes;
pub mod libcephfs;
pub mod libnfs;
pub mod librados;
pub mod libradosstriper;
pub mod library;
pub mod libsmbclient;
pub mod map;
pub mod metadata;
pub mod process;
pub mod rados_queue;
pub mod samba_threads;
pub mod signal;
pub mod xrootd;
pub mod xrootd_queue;
