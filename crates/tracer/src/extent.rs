//! How much of a program's address space the tracer takes: where a limit (`ulimit -v`) leaves little, its tables are
//! smaller, and where it leaves next to nothing, it stays away.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicUsize};

use crate::sys;

/// With less than this the small tables would take more than a tenth.
const LIMIT_LEAST_BYTES: usize = 256 << 20;
/// With less than this the full tables would.
const LIMIT_SMALL_BYTES: usize = 4 << 30;
/// Small tables are a sixteenth of the full ones.
const HALVINGS_SMALL: u32 = 4;
/// The part of the limit that each region of the log may take.
const PART_OF_LOG: usize = 32;

static HALVINGS: AtomicU32 = AtomicU32::new(0);
static LOG_BYTES_MAX: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Is there room for the tracer under the limit that a program begins with now?
pub fn is_enough() -> bool {
    sys::limit(libc::RLIMIT_AS) >= LIMIT_LEAST_BYTES
}

/// Decides on the sizes, before any table is there.
pub fn decide() {
    let limit = sys::limit(libc::RLIMIT_AS);
    if limit < LIMIT_SMALL_BYTES {
        HALVINGS.store(HALVINGS_SMALL, Relaxed);
    }
    if limit != usize::MAX {
        LOG_BYTES_MAX.store(limit / PART_OF_LOG, Relaxed);
    }
}

/// How much there is of a table that has `full` where nothing limits it.
#[inline(always)]
pub fn of(full: usize) -> usize {
    full >> HALVINGS.load(Relaxed)
}

/// The most that a region of the log may take.
pub fn log_bytes_max() -> usize {
    LOG_BYTES_MAX.load(Relaxed)
}
