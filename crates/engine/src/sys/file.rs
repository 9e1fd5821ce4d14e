//! Files by descriptor: positioned I/O, flushing, page cache advice, direct I/O's alignment.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

/// The value of a libc call, or its errno.
pub fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// How a trial opens a file.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenHow {
    pub write: bool,
    /// Create, or empty what is there.
    pub fresh: bool,
    pub direct: bool,
}

impl OpenHow {
    /// For writing, made anew, through caches.
    pub const FRESH: Self = Self {
        write: true,
        fresh: true,
        direct: false,
    };
}

/// `pread`: bytes read, or minus errno. By number: libc's function is a cancellation point, which costs
/// some 50 ns in a process with threads.
#[inline]
pub fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> i64 {
    // SAFETY: the pointer and length are those of `buffer`, which outlives the call.
    let count = unsafe {
        libc::syscall(
            libc::SYS_pread64,
            file.as_raw_fd(),
            buffer.as_mut_ptr(),
            buffer.len(),
            offset as libc::off64_t,
        )
    };
    outcome(count)
}

/// `pwrite`: bytes written, or minus errno. By number, as `read_at`.
#[inline]
pub fn write_at(file: &File, buffer: &[u8], offset: u64) -> i64 {
    // SAFETY: the pointer and length are those of `buffer`, which outlives the call.
    let count = unsafe {
        libc::syscall(
            libc::SYS_pwrite64,
            file.as_raw_fd(),
            buffer.as_ptr(),
            buffer.len(),
            offset as libc::off64_t,
        )
    };
    outcome(count)
}

/// `fsync`: 0, or minus errno.
pub fn sync(file: &File) -> i64 {
    // SAFETY: the descriptor is open as long as `file` lives.
    outcome(libc::c_long::from(unsafe { libc::fsync(file.as_raw_fd()) }))
}

/// `fdatasync`: 0, or minus errno.
pub fn sync_data(file: &File) -> i64 {
    // SAFETY: the descriptor is open as long as `file` lives.
    outcome(libc::c_long::from(unsafe {
        libc::fdatasync(file.as_raw_fd())
    }))
}

#[inline]
fn outcome(result: libc::c_long) -> i64 {
    if result < 0 {
        -i64::from(last_errno())
    } else {
        result
    }
}

/// The calling thread's errno.
pub fn last_errno() -> i32 {
    io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EIO)
}

/// Advice about the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    Random,
    Sequential,
    /// Drop the file's clean pages: the next read comes from below.
    DontNeed,
}

/// Gives `advice` for the whole file. A file system may ignore it, so a refusal is no error.
pub fn advise(file: &File, advice: Advice) {
    let advice = match advice {
        Advice::Random => libc::POSIX_FADV_RANDOM,
        Advice::Sequential => libc::POSIX_FADV_SEQUENTIAL,
        Advice::DontNeed => libc::POSIX_FADV_DONTNEED,
    };
    // SAFETY: the descriptor is open; the call touches no memory of ours.
    let _ = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, advice) };
}

/// True when the file's last name is gone: it was deleted while we held it open.
pub fn is_deleted(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.nlink() == 0)
}

/// The offset alignment that direct I/O needs on this file, in bytes.
///
/// `Ok(None)`: the kernel cannot say (before 6.1, or this file system); `Ok(Some(0))`: no direct I/O.
pub fn direct_alignment(file: &File) -> io::Result<Option<u32>> {
    let mut facts = std::mem::MaybeUninit::<libc::statx>::zeroed();
    // By number: the C library has the function from glibc 2.28 on only.
    // SAFETY: the name is NUL-terminated and `facts` a writable statx; both outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_statx,
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_DIOALIGN,
            facts.as_mut_ptr(),
        )
    };
    if result < 0 {
        let error = io::Error::last_os_error();
        // From Linux 4.11 on; sandboxes refuse what they do not know with EPERM.
        return match error.raw_os_error() {
            Some(libc::ENOSYS | libc::EPERM) => Ok(None),
            _ => Err(error),
        };
    }
    // SAFETY: zeroed bytes are a valid statx, and the kernel filled it.
    let facts = unsafe { facts.assume_init() };
    let known = facts.stx_mask & libc::STATX_DIOALIGN != 0;
    Ok(known.then_some(facts.stx_dio_offset_align))
}
