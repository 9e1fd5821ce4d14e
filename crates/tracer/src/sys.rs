//! System calls without the C library: they leave errno alone, and cannot come back into our own functions.

use core::ffi::c_void;

/// The kernel's answer: a value, or a negative errno. ENOSYS for all where the program may not make every call.
///
/// # Safety
/// The arguments must be what the call of this number expects.
#[inline(always)]
pub unsafe fn call(number: i64, arguments: [usize; 6]) -> isize {
    if number != libc::SYS_exit_group && crate::process::is_quiet() {
        return -(libc::ENOSYS as isize);
    }
    // SAFETY: promised by the caller.
    unsafe { crate::machine::system_call(number, arguments) }
}

macro_rules! raw {
    ($number:ident $(, $argument:expr)*) => {{
        let given = [$($argument as usize),*];
        let mut arguments = [0_usize; 6];
        let mut index = 0;
        while index < given.len() {
            arguments[index] = given[index];
            index += 1;
        }
        // SAFETY: each use passes pointers that live for the call, or integers.
        unsafe { $crate::sys::call(libc::$number, arguments) }
    }};
}
pub(crate) use raw;

/// Opens a file whose name ends with a zero byte.
pub fn open(path: &[u8], flags: i32) -> isize {
    debug_assert!(path.last() == Some(&0));
    raw!(
        SYS_openat,
        libc::AT_FDCWD,
        path.as_ptr(),
        flags | libc::O_CLOEXEC,
        0o600
    )
}

/// Reads until `into` is full or the file of the kernel's ends; how much.
pub fn read_file(path: &[u8], into: &mut [u8]) -> usize {
    let fd = open(path, libc::O_RDONLY);
    if fd < 0 {
        return 0;
    }
    let mut done = 0;
    while done < into.len() {
        let got = raw!(SYS_read, fd, into[done..].as_mut_ptr(), into.len() - done);
        if got <= 0 {
            break;
        }
        done += got as usize;
    }
    close(fd);
    done
}

pub fn close(fd: isize) {
    raw!(SYS_close, fd);
}

/// What a symbolic link says; how many bytes, 0 for none.
pub fn read_link(path: &[u8], into: &mut [u8]) -> usize {
    let here = libc::AT_FDCWD;
    let got = raw!(
        SYS_readlinkat,
        here,
        path.as_ptr(),
        into.as_mut_ptr(),
        into.len()
    );
    if got > 0 { got as usize } else { 0 }
}

/// Fresh zeroed memory, or null.
pub fn map_memory(bytes: usize) -> *mut u8 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let address = raw!(
        SYS_mmap,
        0,
        bytes,
        libc::PROT_READ | libc::PROT_WRITE,
        flags,
        -1_isize,
        0
    );
    pointer(address)
}

/// A shared mapping of a file from its start, or null.
pub fn map_file(fd: isize, bytes: usize) -> *mut u8 {
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
    let address = raw!(
        SYS_mmap,
        0,
        bytes,
        libc::PROT_READ | libc::PROT_WRITE,
        flags,
        fd,
        0
    );
    pointer(address)
}

pub fn advise(address: *mut u8, bytes: usize, advice: i32) -> isize {
    raw!(SYS_madvise, address, bytes, advice)
}

pub fn unmap(address: *mut u8, bytes: usize) {
    raw!(SYS_munmap, address, bytes);
}

/// Changes what may be done with whole pages; true where it is so now.
pub fn protect(pages: core::ops::Range<usize>, protection: i32) -> bool {
    raw!(SYS_mprotect, pages.start, pages.len(), protection) == 0
}

/// A limit on what this process may have (`ulimit`); the largest number for none.
pub fn limit(of: u32) -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    raw!(SYS_prlimit64, 0, of, 0, &raw mut limit);
    usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX)
}

pub fn process_id() -> u32 {
    raw!(SYS_getpid) as u32
}

pub fn parent_id() -> u32 {
    raw!(SYS_getppid) as u32
}

pub fn thread_id() -> u32 {
    raw!(SYS_gettid).max(0) as u32
}

/// The kernel's status of a descriptor, if it has one.
pub fn status(fd: i32) -> Option<libc::stat> {
    let mut status = core::mem::MaybeUninit::<libc::stat>::zeroed();
    let result = raw!(SYS_fstat, fd, status.as_mut_ptr());
    // SAFETY: all-zero bytes are a valid stat, and the kernel has filled it.
    (result == 0).then(|| unsafe { status.assume_init() })
}

/// May the effective user do this with a path that ends with a zero byte?
pub fn is_accessible(path: &[u8], way: i32) -> bool {
    let here = libc::AT_FDCWD;
    match raw!(SYS_faccessat2, here, path.as_ptr(), way, libc::AT_EACCESS) {
        // Kernels before 5.8: of the real user.
        error if error == -(libc::ENOSYS as isize) => {
            raw!(SYS_faccessat, here, path.as_ptr(), way) == 0
        }
        result => result == 0,
    }
}

/// The kernel's status of a path that ends with a zero byte, if there is a file.
pub fn status_at(path: &[u8]) -> Option<libc::stat> {
    debug_assert!(path.last() == Some(&0));
    let mut status = core::mem::MaybeUninit::<libc::stat>::zeroed();
    let here = libc::AT_FDCWD;
    let result = raw!(SYS_newfstatat, here, path.as_ptr(), status.as_mut_ptr(), 0);
    // SAFETY: all-zero bytes are a valid stat, and the kernel has filled it.
    (result == 0).then(|| unsafe { status.assume_init() })
}

/// Can the eight bytes at an aligned address be read? Asked by a call that reads them, then fails by what it asks
/// for: unlike others it needs no right, and hardly any filter of system calls refuses it.
pub fn is_readable(address: usize) -> bool {
    const NO_SUCH_WAY: i32 = -1;
    raw!(SYS_rt_sigprocmask, NO_SUCH_WAY, address, 0, 8) == -(libc::EINVAL as isize)
}

/// Where the next plain read or write of a descriptor begins, if it can seek.
pub fn position(fd: i32) -> Option<u64> {
    u64::try_from(raw!(SYS_lseek, fd, 0, libc::SEEK_CUR)).ok()
}

pub fn clock_ns(clock: i32) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    raw!(SYS_clock_gettime, clock, &raw mut time);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn pointer(address: isize) -> *mut u8 {
    if (-4095..0).contains(&address) {
        core::ptr::null_mut()
    } else {
        core::ptr::with_exposed_provenance_mut::<c_void>(address as usize).cast()
    }
}
