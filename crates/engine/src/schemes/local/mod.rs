//! Files that the kernel mounts, whatever their file system: by system calls, a ring, or memory.

mod names;
mod volume;

use io_uring::IoUring;

use super::{Engine, Scheme, Storage};
use crate::volume::names::Operation;
pub use names::LocalNames;
pub use volume::Local;

pub static SCHEME: Scheme = Scheme {
    example: "/mnt/directory",
    operations: Operation::ALL,
    storage: Storage::Mount,
    ack_means: "in the page cache of this host",
    ack_means_direct: Some("taken by the file system past the page cache of this host"),
    ..Scheme::new("file", "files of a mounted file system", &ENGINES)
};

static ENGINES: [Engine; 3] = [
    Engine {
        submission_thread: true,
        unavailable: no_io_uring,
        ..Engine::new(
            "io_uring",
            "asynchronous I/O in batches through a ring shared with the kernel",
        )
    },
    Engine {
        blocking: true,
        ..Engine::new("psync", "one pread or pwrite at a time per thread")
    },
    Engine {
        blocking: true,
        direct: false,
        ..Engine::new("mmap", "copies to and from files mapped into memory")
    },
];

/// Why this host has no io_uring; `None` when it has.
fn no_io_uring() -> Option<String> {
    match IoUring::new(2) {
        Ok(_) => None,
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
            Some("this kernel has no io_uring (it came with Linux 5.1); use psync".to_owned())
        }
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => Some(
            "io_uring is forbidden here (sysctl kernel.io_uring_disabled, or the container); use psync"
                .to_owned(),
        ),
        Err(error) => Some(format!("io_uring cannot be set up: {error}")),
    }
}
