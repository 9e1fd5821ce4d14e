//! Files that the kernel mounts, whatever their file system: by system calls, a ring, or memory.

mod files;
mod io_uring;
mod mmap;
mod names;
mod psync;
mod volume;

use super::{Engine, Scheme, Storage, blocking, queued};
use crate::metadata::Operation;
pub use names::LocalNames;
pub use psync::single_buffer;
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
        unavailable: io_uring::unavailable_because,
        ..Engine::new(
            "io_uring",
            "asynchronous I/O in batches through a ring shared with the kernel",
            queued::<io_uring::Ring>(),
        )
    },
    Engine {
        blocking: true,
        ..Engine::new(
            "psync",
            "one pread or pwrite at a time per thread",
            blocking::<psync::Psync>(),
        )
    },
    Engine {
        blocking: true,
        direct: false,
        ..Engine::new(
            "mmap",
            "copies to and from files mapped into memory",
            blocking::<mmap::Mmap>(),
        )
    },
];
