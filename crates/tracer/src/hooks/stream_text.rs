//! Text from and to streams: characters, lines, formats. A read that scans is as long as the position says.

use core::ffi::{CStr, c_char, c_int, c_void};

use leadline_record::trace::Call;
use libc::{FILE, size_t, ssize_t};

use super::stream::{descriptor, moved};
use super::{hook, variadic};
use crate::recording::{Direction, Made, Transfer, transfer};
use crate::{clock, symbols};

variadic! {
    fprintf to leadline_c_fprintf;
    __fprintf_chk to leadline_c_fprintf_chk;
    fscanf to leadline_c_fscanf;
    __isoc99_fscanf to leadline_c_isoc99_fscanf;
    dprintf to leadline_c_dprintf;
    __dprintf_chk to leadline_c_dprintf_chk;
}

use Direction::{Read, Write};

unsafe fn counted(made: Made, stream: *mut FILE, direction: Direction, bytes: i64) {
    let bytes = bytes.max(0) as u64;
    // SAFETY: the stream is open.
    unsafe { moved(made, stream, direction, bytes, bytes) };
}

unsafe fn line(made: Made, stream: *mut FILE, text: *const c_char, room: c_int) {
    let bytes = if text.is_null() {
        0
    } else {
        // SAFETY: the real function has just ended it with a zero byte.
        unsafe { CStr::from_ptr(text) }.count_bytes() as u64
    };
    // SAFETY: the stream is open.
    unsafe { moved(made, stream, Read, bytes, room.max(0) as u64) };
}

unsafe fn text(made: Made, stream: *mut FILE, text: *const c_char) {
    let bytes = if made.result < 0 || text.is_null() {
        0
    } else {
        // SAFETY: as given to the real function, which has read it.
        unsafe { CStr::from_ptr(text) }.count_bytes()
    };
    // SAFETY: the stream is open.
    unsafe { counted(made, stream, Write, bytes as i64) };
}

unsafe fn character(made: Made, stream: *mut FILE, direction: Direction) {
    // SAFETY: the stream is open.
    unsafe { counted(made, stream, direction, i64::from(made.result >= 0)) };
}

unsafe fn word(made: Made, stream: *mut FILE, direction: Direction) {
    // SAFETY: the stream is open.
    unsafe { counted(made, stream, direction, size_of::<c_int>() as i64) };
}

/// Formatted text straight to a descriptor: one write inside the C library.
fn to_descriptor(made: Made, fd: c_int) {
    let asked = made.result.max(0) as u64;
    transfer(
        made,
        fd,
        Transfer {
            direction: Write,
            offset: None,
            asked,
            memory: 0,
        },
    );
}

/// Scans by the real function that takes a list of arguments, between two looks at the position.
unsafe fn scan(
    call: Call,
    real: Call,
    stream: *mut FILE,
    format: *const c_char,
    arguments: *mut c_void,
) -> c_int {
    type Scan = unsafe extern "C" fn(*mut FILE, *const c_char, *mut c_void) -> c_int;
    let real = symbols::real(real);
    if real.is_null() || stream.is_null() {
        return symbols::missing();
    }
    // SAFETY: the real function has this type; the arguments are the program's own; errno is kept.
    unsafe {
        let real: Scan = core::mem::transmute(real);
        let before = position(stream);
        let start = clock::ticks();
        let result = real(stream, format, arguments);
        let bytes = position(stream) - before;
        counted(
            Made::new(call, start, i64::from(result)),
            stream,
            Read,
            bytes,
        );
        result
    }
}

unsafe fn position(stream: *mut FILE) -> i64 {
    // SAFETY: the stream is open; errno is kept.
    unsafe {
        let errno = *libc::__errno_location();
        let position = if descriptor(stream) < 0 {
            0
        } else {
            libc::ftello(stream)
        };
        *libc::__errno_location() = errno;
        position
    }
}

macro_rules! formatted {
    ($($name:ident, $real:ident, $call:ident, |$made:ident, $to:ident| $record:expr;
       ($($before:ident: $type:ty),*))*) => {$(
        /// Counts under the name that the program called.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($before: $type,)* format: *const c_char, arguments: *mut c_void,
        ) -> c_int {
            let real = symbols::real(Call::$real);
            if real.is_null() {
                return symbols::missing();
            }
            // SAFETY: the real function has this type; the arguments are the program's own.
            unsafe {
                let real: unsafe extern "C" fn($($type,)* *const c_char, *mut c_void) -> c_int =
                    core::mem::transmute(real);
                let start = clock::ticks();
                let result = real($($before,)* format, arguments);
                let $made = Made::new(Call::$call, start, i64::from(result));
                $record;
                result
            }
        }
    )*};
}

formatted! {
    leadline_fprintf, vfprintf, fprintf, |made, to| counted(made, to, Write, made.result); (to: *mut FILE)
    vfprintf, vfprintf, vfprintf, |made, to| counted(made, to, Write, made.result); (to: *mut FILE)
    leadline_fprintf_chk, __vfprintf_chk, __fprintf_chk, |made, to| counted(made, to, Write, made.result);
        (to: *mut FILE, flag: c_int)
    __vfprintf_chk, __vfprintf_chk, __vfprintf_chk, |made, to| counted(made, to, Write, made.result);
        (to: *mut FILE, flag: c_int)
    leadline_dprintf, vdprintf, dprintf, |made, to| to_descriptor(made, to); (to: c_int)
    vdprintf, vdprintf, vdprintf, |made, to| to_descriptor(made, to); (to: c_int)
    leadline_dprintf_chk, __vdprintf_chk, __dprintf_chk, |made, to| to_descriptor(made, to);
        (to: c_int, flag: c_int)
    __vdprintf_chk, __vdprintf_chk, __vdprintf_chk, |made, to| to_descriptor(made, to);
        (to: c_int, flag: c_int)
}

macro_rules! scanned {
    ($($name:ident $real:ident $call:ident;)*) => {$(
        /// Counts under the name that the program called.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            stream: *mut FILE, format: *const c_char, arguments: *mut c_void,
        ) -> c_int {
            // SAFETY: the arguments are the program's own.
            unsafe { scan(Call::$call, Call::$real, stream, format, arguments) }
        }
    )*};
}

scanned! {
    leadline_fscanf vfscanf fscanf;
    vfscanf vfscanf vfscanf;
    leadline_isoc99_fscanf __isoc99_vfscanf __isoc99_fscanf;
    __isoc99_vfscanf __isoc99_vfscanf __isoc99_vfscanf;
}

hook! {
    fn fgets(into: *mut c_char, room: c_int, stream: *mut FILE) -> *mut c_char,
        |made, read| line(made, stream, read, room);
    fn fgets_unlocked(into: *mut c_char, room: c_int, stream: *mut FILE) -> *mut c_char,
        |made, read| line(made, stream, read, room);
    fn __fgets_chk(into: *mut c_char, bytes: size_t, room: c_int, stream: *mut FILE) -> *mut c_char,
        |made, read| line(made, stream, read, room);
    fn __fgets_unlocked_chk(into: *mut c_char, bytes: size_t, room: c_int, stream: *mut FILE) -> *mut c_char,
        |made, read| line(made, stream, read, room);
    fn getline(into: *mut *mut c_char, room: *mut size_t, stream: *mut FILE) -> ssize_t,
        |made| counted(made, stream, Read, made.result);
    fn getdelim(into: *mut *mut c_char, room: *mut size_t, end: c_int, stream: *mut FILE) -> ssize_t,
        |made| counted(made, stream, Read, made.result);
    fn __getdelim(into: *mut *mut c_char, room: *mut size_t, end: c_int, stream: *mut FILE) -> ssize_t,
        |made| counted(made, stream, Read, made.result);
    fn fgetc(stream: *mut FILE) -> c_int, |made| character(made, stream, Read);
    fn getc(stream: *mut FILE) -> c_int, |made| character(made, stream, Read);
    fn getw(stream: *mut FILE) -> c_int, |made| word(made, stream, Read);
    fn fputs(from: *const c_char, stream: *mut FILE) -> c_int, |made| text(made, stream, from);
    fn fputs_unlocked(from: *const c_char, stream: *mut FILE) -> c_int, |made| text(made, stream, from);
    fn fputc(value: c_int, stream: *mut FILE) -> c_int, |made| character(made, stream, Write);
    fn putc(value: c_int, stream: *mut FILE) -> c_int, |made| character(made, stream, Write);
    fn putw(value: c_int, stream: *mut FILE) -> c_int, |made| word(made, stream, Write);
}
