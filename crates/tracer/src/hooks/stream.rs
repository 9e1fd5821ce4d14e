//! Streams of the C library, as module STDIO: opened, closed, positioned, and blocks of bytes.
//!
//! Their own reads and writes of the descriptor are inside the C library, where nothing is intercepted: so
//! nothing is counted twice.

use core::ffi::{c_char, c_int, c_long, c_void};
use core::sync::atomic::Ordering::Relaxed;

use leadline_record::trace::layout::{MODULE_POSIX, MODULE_STDIO};
use leadline_record::trace::{Call, Kind};
use libc::{AT_FDCWD, FILE, off64_t, size_t};

use super::{Outcome, hook};
use crate::recording::{
    Direction, Made, before_close, closed, on_descriptor, on_stream, opened, stream_transfer,
};
use crate::{clock, symbols};

/// The descriptor behind a stream; -1 where there is none. errno stays as it was.
pub unsafe fn descriptor(stream: *mut FILE) -> c_int {
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

unsafe fn began(made: Made, path: *const c_char, mode: *const c_char, stream: *mut FILE) {
    // SAFETY: as given to the real function.
    unsafe {
        let made = Made {
            result: i64::from(descriptor(stream)),
            ..made
        };
        opened(made, (AT_FDCWD, path), flags(mode), true);
        if flags(mode) != 0 && made.result >= 0 {
            place(made, stream);
        }
    }
}

/// A stream over a descriptor, or a file without a name: known by what the kernel says of the descriptor.
unsafe fn over(made: Made, stream: *mut FILE) {
    // SAFETY: the program gave it to a function that takes an open stream.
    let fd = unsafe { descriptor(stream) };
    on_stream(
        Made {
            result: i64::from(fd),
            ..made
        },
        fd,
        Kind::Meta,
        |record, _| record.opens += 1,
    );
}

pub unsafe fn moved(made: Made, stream: *mut FILE, direction: Direction, bytes: u64, asked: u64) {
    let result = i64::try_from(bytes).unwrap_or(i64::MAX);
    stream_transfer(
        Made { result, ..made },
        // SAFETY: the program gave it to a function that takes an open stream.
        unsafe { descriptor(stream) },
        direction,
        asked,
    );
}

unsafe fn blocks(made: Made, stream: *mut FILE, direction: Direction, size: size_t, count: size_t) {
    let done = made.result as usize;
    // A last, partial element is moved but not told: the position would tell, at a price.
    let (bytes, asked) = (done.saturating_mul(size), count.saturating_mul(size));
    // SAFETY: the stream is open.
    unsafe { moved(made, stream, direction, bytes as u64, asked as u64) };
}

/// After a seek the position is asked for; it is in the C library's memory.
unsafe fn place(made: Made, stream: *mut FILE) {
    // SAFETY: the program gave it to a function that takes an open stream.
    let fd = unsafe { descriptor(stream) };
    // SAFETY: the stream is open; errno is kept.
    let position = unsafe {
        let errno = *libc::__errno_location();
        let position = libc::ftello(stream);
        *libc::__errno_location() = errno;
        position
    };
    on_place(made, fd, position);
}

fn on_place(made: Made, fd: c_int, position: i64) {
    on_stream(made, fd, Kind::Meta, |record, description| {
        record.seeks += u32::from(!matches!(made.call, Call::fopen | Call::fopen64));
        description
            .stream_position
            .store(position.max(0) as u64, Relaxed);
    });
}

unsafe fn flushed(made: Made, stream: *mut FILE) {
    // SAFETY: the program gave it to a function that takes an open stream.
    let fd = unsafe { descriptor(stream) };
    on_stream(made, fd, Kind::Sync, |_, _| ());
}

fn number_asked(made: Made, fd: c_int) {
    on_descriptor(made, fd, Kind::Meta, |record, _| record.filenos += 1);
}

/// The stream that is reopened is closed first.
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
                if !path.is_null() {
                    before_close(descriptor(stream), MODULE_POSIX);
                }
                let start = clock::ticks();
                let result = real(path, mode, stream);
                let made = Made::new(Call::$name, start, result.number());
                if !path.is_null() {
                    began(made, path, mode, result);
                }
                result
            }
        }
    )*};
}
reopen! { freopen freopen64 }

/// Writes what is buffered and closes: the time may be that of the last write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fclose(stream: *mut FILE) -> c_int {
    let real = symbols::real(Call::fclose);
    if real.is_null() {
        return symbols::missing();
    }
    // SAFETY: the real function of this name has this type.
    let real: unsafe extern "C" fn(*mut FILE) -> c_int = unsafe { core::mem::transmute(real) };
    // SAFETY: the program gave it to a function that takes an open stream.
    let record = before_close(unsafe { descriptor(stream) }, MODULE_STDIO);
    let start = clock::ticks();
    // SAFETY: the argument is the program's own.
    let result = unsafe { real(stream) };
    closed(Made::new(Call::fclose, start, result.number()), record);
    result
}

use Direction::{Read, Write};

hook! {
    fn fopen(path: *const c_char, mode: *const c_char) -> *mut FILE,
        |made, stream| began(made, path, mode, stream);
    fn fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE,
        |made, stream| began(made, path, mode, stream);
    fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE, |made, stream| over(made, stream);
    fn tmpfile() -> *mut FILE, |made, stream| over(made, stream);
    fn tmpfile64() -> *mut FILE, |made, stream| over(made, stream);
    fn fflush(stream: *mut FILE) -> c_int, |made| flushed(made, stream);
    fn fread(into: *mut c_void, size: size_t, count: size_t, stream: *mut FILE) -> size_t,
        |made| blocks(made, stream, Read, size, count);
    fn fread_unlocked(into: *mut c_void, size: size_t, count: size_t, stream: *mut FILE) -> size_t,
        |made| blocks(made, stream, Read, size, count);
    fn __fread_chk(into: *mut c_void, room: size_t, size: size_t, count: size_t, stream: *mut FILE) -> size_t,
        |made| blocks(made, stream, Read, size, count);
    fn __fread_unlocked_chk(
        into: *mut c_void, room: size_t, size: size_t, count: size_t, stream: *mut FILE,
    ) -> size_t, |made| blocks(made, stream, Read, size, count);
    fn fwrite(from: *const c_void, size: size_t, count: size_t, stream: *mut FILE) -> size_t,
        |made| blocks(made, stream, Write, size, count);
    fn fwrite_unlocked(from: *const c_void, size: size_t, count: size_t, stream: *mut FILE) -> size_t,
        |made| blocks(made, stream, Write, size, count);
    fn fseek(stream: *mut FILE, offset: c_long, whence: c_int) -> c_int, |made| place(made, stream);
    fn fseeko(stream: *mut FILE, offset: off64_t, whence: c_int) -> c_int, |made| place(made, stream);
    fn fseeko64(stream: *mut FILE, offset: off64_t, whence: c_int) -> c_int, |made| place(made, stream);
    fn fsetpos(stream: *mut FILE, position: *const c_void) -> c_int, |made| place(made, stream);
    fn fsetpos64(stream: *mut FILE, position: *const c_void) -> c_int, |made| place(made, stream);
    fn rewind(stream: *mut FILE) -> (), |made| place(made, stream);
    fn fileno(stream: *mut FILE) -> c_int, |made, fd| number_asked(made, fd);
    fn fileno_unlocked(stream: *mut FILE) -> c_int, |made, fd| number_asked(made, fd);
}
