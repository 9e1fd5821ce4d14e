//! Streams of the C library: how they begin. What they read, write, seek and close is in `inside`.
//!
//! A function that fills a stream's buffer or takes from it is not followed: it moves nothing to or from a file.

use core::ffi::{CStr, c_char, c_int, c_void};

use leadline_record::trace::layout::FileRecord;
use leadline_record::trace::{Call, Kind};
use libc::{AT_FDCWD, FILE};

use super::position::sought;
use super::{Outcome, hook, variadic};
use crate::recording::{
    Direction, Made, Transfer, before_close, moved_until_now, on_descriptor, opened, transfer,
};
use crate::{clock, symbols, sys};

pub mod inside;

variadic! {
    dprintf to leadline_c_dprintf;
    __dprintf_chk to leadline_c_dprintf_chk;
}

/// The descriptor behind a stream; -1 where there is none. errno stays as it was.
unsafe fn descriptor(stream: *mut FILE) -> c_int {
    let real = symbols::real(Call::fileno);
    if stream.is_null() || real.is_null() {
        return -1;
    }
    // SAFETY: the real function of this name has this type, and the stream is open.
    unsafe {
        let real: unsafe extern "C" fn(*mut FILE) -> c_int = core::mem::transmute(real);
        let errno = *libc::__errno_location();
        let fd = real(stream);
        *libc::__errno_location() = errno;
        fd
    }
}

/// The flags that a mode such as `a+` stands for, as far as positions depend on them.
unsafe fn flags(mode: *const c_char) -> c_int {
    if mode.is_null() {
        return 0;
    }
    // SAFETY: as given to the real function, which has read it.
    if unsafe { mode.read() } == b'a' as c_char {
        libc::O_APPEND
    } else {
        0
    }
}

/// Does a mode such as `ab+` let the stream read, too?
unsafe fn reads_too(mode: *const c_char) -> bool {
    // SAFETY: as given to the real function, which has read it.
    unsafe { CStr::from_ptr(mode) }.to_bytes().contains(&b'+')
}

unsafe fn began(made: Made, path: *const c_char, mode: *const c_char, stream: *mut FILE) {
    // SAFETY: as given to the real function.
    unsafe {
        let made = Made {
            result: i64::from(descriptor(stream)),
            ..made
        };
        opened(made, (AT_FDCWD, path), flags(mode));
        if made.result >= 0 && flags(mode) != 0 && !reads_too(mode) {
            // It has looked for the end already, before its descriptor was known; the time is the opening's.
            let fd = made.result as c_int;
            let end = sys::position(fd).map_or(-1, |end| end as i64);
            sought(Made::new(Call::lseek, clock::ticks(), end), fd);
        }
    }
}

/// A stream over a descriptor, or a file without a name: known by what the kernel says of the descriptor.
unsafe fn over(made: Made, stream: *mut FILE, change: impl Fn(&mut FileRecord)) {
    // SAFETY: the program gave it to a function that takes an open stream.
    let fd = unsafe { descriptor(stream) };
    let result = i64::from(fd);
    on_descriptor(Made { result, ..made }, fd, Kind::Meta, move |record, _| {
        change(record)
    });
}

fn number_asked(made: Made, fd: c_int) {
    on_descriptor(made, fd, Kind::Meta, |record, _| record.filenos += 1);
}

/// What was buffered is written first, as a call of its own, whose time is not the opening's. The stream keeps its
/// descriptor, of another file; without a path only the kernel knows where it is now.
macro_rules! reopen {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE {
            let real = symbols::real(Call::$name);
            if real.is_null() {
                return symbols::missing();
            }
            // SAFETY: the real function of this name has this type; the arguments are the program's own.
            unsafe {
                let real: unsafe extern "C" fn(*const c_char, *const c_char, *mut FILE) -> *mut FILE =
                    core::mem::transmute(real);
                let before = descriptor(stream);
                let inside = inside::ticks();
                let start = clock::ticks();
                let result = real(path, mode, stream);
                let start = start.wrapping_add(inside::ticks().wrapping_sub(inside));
                before_close(before);
                if !path.is_null() {
                    began(Made::new(Call::$name, start, result.number()), path, mode, result);
                }
                result
            }
        }
    )*};
}
reopen! { freopen freopen64 }

/// Formatted text straight to a descriptor. Some versions of the C library make a stream of their own for it, whose
/// write is recorded already.
unsafe fn formatted(call: Call, fd: c_int, real: impl FnOnce() -> c_int) -> c_int {
    let before = moved_until_now(Direction::Write);
    let start = clock::ticks();
    let result = real();
    if moved_until_now(Direction::Write) == before {
        let made = Made::new(call, start, i64::from(result));
        transfer(
            made,
            fd,
            Transfer {
                direction: Direction::Write,
                offset: None,
                asked: made.result.max(0) as u64,
                memory: 0,
            },
        );
    }
    result
}

macro_rules! formatted {
    ($($name:ident $real:ident $call:ident ($($flag:ident)?))*) => {$(
        /// Counts under the name that the program called.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            to: c_int, $($flag: c_int,)? format: *const c_char, arguments: *mut c_void,
        ) -> c_int {
            let real = symbols::real(Call::$real);
            if real.is_null() {
                return symbols::missing();
            }
            // SAFETY: the real function has this type; the arguments are the program's own.
            unsafe {
                let real: unsafe extern "C" fn(
                    c_int, $(formatted!(@int $flag),)? *const c_char, *mut c_void,
                ) -> c_int = core::mem::transmute(real);
                formatted(Call::$call, to, || real(to, $($flag,)? format, arguments))
            }
        }
    )*};
    (@int $flag:ident) => { c_int };
}
formatted! {
    leadline_dprintf vdprintf dprintf ()
    vdprintf vdprintf vdprintf ()
    leadline_dprintf_chk __vdprintf_chk __dprintf_chk (flag)
    __vdprintf_chk __vdprintf_chk __vdprintf_chk (flag)
}

hook! {
    fn fopen | fopen64: (path: *const c_char, mode: *const c_char) -> *mut FILE,
        |made, stream| began(made, path, mode, stream);
    fn fdopen: (fd: c_int, mode: *const c_char) -> *mut FILE, |made, stream| over(made, stream, |_| ());
    fn tmpfile | tmpfile64: () -> *mut FILE, |made, stream| over(made, stream, |record| record.opens += 1);
    fn fileno | fileno_unlocked: (stream: *mut FILE) -> c_int, |made, fd| number_asked(made, fd);
}
