//! What closes and duplicates descriptors: wrong bookkeeping here would write one file's calls down as another's.

use core::ffi::{c_int, c_long, c_uint};

use leadline_record::trace::{Call, Kind};

use super::{hook, variadic};
use crate::recording::{Made, before_close, closed, on_descriptor, on_nothing};
use crate::{clock, descriptors, process, symbols};

variadic! {
    fcntl to leadline_c_fcntl;
    fcntl64 to leadline_c_fcntl64;
}

type Close = unsafe extern "C" fn(c_int) -> c_int;

/// Closes a descriptor; it is forgotten before, because another thread may get its number at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    let real = symbols::real(Call::close);
    if real.is_null() {
        return symbols::missing();
    }
    // SAFETY: the real function of this name has this type.
    let real: Close = unsafe { core::mem::transmute(real) };
    let record = before_close(fd);
    let start = clock::ticks();
    // SAFETY: the argument is the program's own.
    let result = unsafe { real(fd) };
    closed(Made::new(Call::close, start, i64::from(result)), record);
    result
}

fn duplicated(made: Made, from: c_int) {
    if made.result >= 0 {
        if let Some(process) = in_process() {
            descriptors::duplicated(process, from, made.result as c_int);
        }
        on_descriptor(made, from, Kind::Meta, |record, _| record.dups += 1);
    }
}

/// The process, unless this is the child of a vfork, whose descriptors are not its parent's.
fn in_process() -> Option<&'static process::Process> {
    if crate::thread::is_vfork_child() {
        None
    } else {
        process::existing()
    }
}

pub fn closed_range(made: Made, first: c_uint, last: c_uint, flags: c_int) {
    const CLOSE_RANGE_CLOEXEC: c_int = 4;
    if made.result < 0 || flags & CLOSE_RANGE_CLOEXEC != 0 {
        return;
    }
    if let Some(process) = in_process() {
        descriptors::closed_range(process, first, last);
        on_nothing(made, Kind::Meta);
    }
}

fn controlled(made: Made, fd: c_int, command: c_int) {
    if matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
        duplicated(made, fd);
    }
}

hook! {
    fn dup: (from: c_int) -> c_int, |made| duplicated(made, from);
    fn dup2: (from: c_int, to: c_int) -> c_int, |made| duplicated(made, from);
    fn dup3: (from: c_int, to: c_int, flags: c_int) -> c_int, |made| duplicated(made, from);
    fn leadline_fcntl[fcntl] | leadline_fcntl64[fcntl64]: (fd: c_int, command: c_int, argument: c_long) -> c_int,
        |made| controlled(made, fd, command);
    fn close_range: (first: c_uint, last: c_uint, flags: c_int) -> c_int,
        |made| closed_range(made, first, last, flags);
    fn closefrom: (first: c_int) -> (), |made| closed_range(made, first.max(0) as c_uint, c_uint::MAX, 0);
}
