//! What opens files: the open family, creat, the mkstemp family.

use core::ffi::{c_char, c_int, c_void};

use libc::{AT_FDCWD, mode_t, size_t};

use super::{hook, variadic};
use crate::recording::{Made, opened};

variadic! {
    open to leadline_c_open;
    open64 to leadline_c_open64;
    openat to leadline_c_openat;
    openat64 to leadline_c_openat64;
}

/// The kernel's `struct open_how`: its flags come first.
pub unsafe fn flags_of(made: Made, how: *const c_void) -> c_int {
    if how.is_null() || made.result < 0 {
        return 0;
    }
    // SAFETY: the kernel has just read it.
    unsafe { how.cast::<u64>().read_unaligned() as c_int }
}

/// A file with a name that the C library has just filled in.
unsafe fn made_up(made: Made, path: *const c_char, flags: c_int) {
    // SAFETY: as given to the real function.
    unsafe { opened(made, (AT_FDCWD, path), flags | libc::O_RDWR) };
}

hook! {
    fn leadline_open[open] | leadline_open64[open64]: (path: *const c_char, flags: c_int, mode: mode_t) -> c_int,
        |made| opened(made, (AT_FDCWD, path), flags);
    fn leadline_openat[openat] | leadline_openat64[openat64]:
        (directory: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int,
        |made| opened(made, (directory, path), flags);
    fn __open_2 | __open64_2: (path: *const c_char, flags: c_int) -> c_int,
        |made| opened(made, (AT_FDCWD, path), flags);
    fn __openat_2 | __openat64_2: (directory: c_int, path: *const c_char, flags: c_int) -> c_int,
        |made| opened(made, (directory, path), flags);
    fn openat2: (directory: c_int, path: *const c_char, how: *const c_void, bytes: size_t) -> c_int,
        |made| opened(made, (directory, path), flags_of(made, how));
    fn creat | creat64: (path: *const c_char, mode: mode_t) -> c_int,
        |made| opened(made, (AT_FDCWD, path), libc::O_WRONLY);
    fn mkstemp | mkstemp64: (path: *mut c_char) -> c_int, |made| made_up(made, path, 0);
    fn mkostemp | mkostemp64: (path: *mut c_char, flags: c_int) -> c_int, |made| made_up(made, path, flags);
    fn mkstemps | mkstemps64: (path: *mut c_char, suffix: c_int) -> c_int, |made| made_up(made, path, 0);
    fn mkostemps | mkostemps64: (path: *mut c_char, suffix: c_int, flags: c_int) -> c_int,
        |made| made_up(made, path, flags);
}
