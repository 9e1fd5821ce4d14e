//! All calls below the standard library, behind safe functions. Nothing here knows jobs or trials.

pub mod buffer;
pub mod ceph;
pub mod clock;
pub mod directory;
pub mod file;
pub mod in_flight;
pub mod lanes;
pub mod libnfs;
pub mod library;
pub mod map;
pub mod metadata;
pub mod process;
pub mod smb;
pub mod xrootd;
