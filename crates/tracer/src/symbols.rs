//! The real functions behind ours: the next of each name in the loader's order, found when the library starts.

use core::ffi::{c_char, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use leadline_record::trace::{CALLS, Call, RETIRED};

const COUNT: usize = CALLS.len();
static REAL: [AtomicPtr<c_void>; COUNT] = [const { AtomicPtr::new(core::ptr::null_mut()) }; COUNT];
static TIMED: [AtomicPtr<c_void>; COUNT] = [const { AtomicPtr::new(core::ptr::null_mut()) }; COUNT];

/// Those of other libraries, or of none yet. The loader allocates memory to say that it has not found a name, and some
/// programs' own allocators (chromium's) do not bear that as early as this: these are looked for when they are called.
const LATE: [Call; 7] = [
    Call::openat2,
    Call::io_submit,
    Call::io_getevents,
    Call::io_pgetevents,
    Call::io_uring_setup,
    Call::io_uring_enter,
    Call::io_uring_register,
];

/// Finds all others, so that none is looked up in a signal handler or after a fork.
pub fn find_all() {
    for (number, (slot, (_, name, _))) in REAL.iter().zip(CALLS).enumerate() {
        // A name with a colon is a request's: there is no such function.
        let mut left_out = LATE.iter().chain(RETIRED);
        if left_out.all(|call| call.number() != number) && !name.contains(':') {
            slot.store(next(name), Relaxed);
        }
    }
    for named in NAMED {
        named.found.store(next(named.name), Relaxed);
    }
}

/// Says whether calls are timed by the CPU's counter.
pub fn time_by_counter(timed: bool) {
    for (by_counter, real) in TIMED.iter().zip(&REAL) {
        let real = if timed {
            real.load(Relaxed)
        } else {
            core::ptr::null_mut()
        };
        by_counter.store(real, Relaxed);
    }
}

/// The real function where there is one and calls are timed by the counter, else null: one question for both.
#[inline(always)]
pub fn timed_by_counter(call: Call) -> *mut c_void {
    TIMED[call.number()].load(Relaxed)
}

/// The real function, null where this system has none.
#[inline(always)]
pub fn real(call: Call) -> *mut c_void {
    // The number is below COUNT by construction, so the bound check goes away.
    let found = REAL[call.number()].load(Relaxed);
    if found.is_null() { find(call) } else { found }
}

#[cold]
fn find(call: Call) -> *mut c_void {
    let found = next(CALLS[call.number()].1);
    REAL[call.number()].store(found, Relaxed);
    found
}

/// The next function of a name that ends with a zero byte.
pub fn next(name: &str) -> *mut c_void {
    let name: *const c_char = name.as_ptr().cast();
    // SAFETY: the name is terminated; errno is kept, because the loader may set it.
    unsafe {
        let errno = *libc::__errno_location();
        let mut found = libc::dlsym(libc::RTLD_NEXT, name);
        if found.is_null() {
            // Functions that are kept for old programs only have no default version.
            found = libc::dlvsym(
                libc::RTLD_NEXT,
                name,
                crate::machine::FIRST_SYMBOLS.as_ptr(),
            );
        }
        *libc::__errno_location() = errno;
        found
    }
}

/// A real function that has no number, because its calls are not counted.
#[repr(C)]
pub struct Named {
    /// First: `syscall` reads it without a frame.
    found: AtomicPtr<c_void>,
    name: &'static str,
}

macro_rules! named {
    ($($place:ident $name:literal)*) => {
        $(pub static $place: Named = Named {
            found: AtomicPtr::new(core::ptr::null_mut()),
            name: concat!($name, "\0"),
        };)*
        static NAMED: &[&Named] = &[$(&$place),*];
    };
}
named! {
    EXECVE "execve"
    EXECVPE "execvpe"
    FEXECVE "fexecve"
    EXECVEAT "execveat"
    POSIX_SPAWN "posix_spawn"
    POSIX_SPAWNP "posix_spawnp"
    SYSCALL "syscall"
    PRCTL "prctl"
    UNDERSCORE_EXIT "_exit"
    CAPITAL_EXIT "_Exit"
    QUICK_EXIT "quick_exit"
}

impl Named {
    /// Null where this system has none.
    pub fn get(&self) -> *mut c_void {
        let found = self.found.load(Relaxed);
        if found.is_null() {
            // A call from the constructor of another library, before ours.
            crate::process::start();
            return self.found.load(Relaxed);
        }
        found
    }
}

/// What a function returns when there is no real one.
pub trait Failure {
    const FAILED: Self;
}

impl Failure for i32 {
    const FAILED: Self = -1;
}
impl Failure for isize {
    const FAILED: Self = -1;
}
impl Failure for i64 {
    const FAILED: Self = -1;
}
impl Failure for usize {
    const FAILED: Self = 0;
}
impl Failure for () {
    const FAILED: Self = ();
}
impl<T> Failure for *mut T {
    const FAILED: Self = core::ptr::null_mut();
}

/// Sets ENOSYS, as the kernel does for a call that it lacks.
#[cold]
pub fn missing<T: Failure>() -> T {
    // SAFETY: the address is the calling thread's own.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    T::FAILED
}
