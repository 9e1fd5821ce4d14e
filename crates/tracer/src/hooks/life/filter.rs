//! Filters of system calls that a program lays upon itself: one that it does not make is no reason to die for.
//!
//! What recording needs from the kernel is asked for before. From then on the tracer makes no call of its own;
//! what it has no room for is counted as lost.

use core::ffi::{c_int, c_long, c_ulong};

use leadline_record::trace::Kind;
use leadline_record::trace::layout::{CHUNK_FILES, CHUNK_NAMES, PAGE_BYTES};

use crate::hooks::uring;
use crate::sys::raw;
use crate::{clock, descriptors, process, symbols, thread};

const DESCRIPTORS_LOOKED_AT: i32 = 64;
const ROOM_BYTES: [u32; 2] = [15 * PAGE_BYTES as u32, 3 * PAGE_BYTES as u32];

/// As the program asks for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(
    option: c_int,
    a: c_ulong,
    b: c_ulong,
    c: c_ulong,
    d: c_ulong,
) -> c_int {
    let real = symbols::PRCTL.get();
    if real.is_null() {
        return symbols::missing();
    }
    let call = || {
        // SAFETY: the real function has this type; the arguments are the program's own, and may be fewer.
        unsafe {
            let real: unsafe extern "C" fn(c_int, ...) -> c_int = core::mem::transmute(real);
            real(option, a, b, c, d)
        }
    };
    match (option, a) {
        (libc::PR_SET_SECCOMP, STRICT) => without_clock(|| filtering(call)),
        (libc::PR_SET_SECCOMP, _) => filtering(call),
        (libc::PR_SET_TSC, COUNTER_FAULTS) => without_clock(call),
        _ => call(),
    }
}

/// SECCOMP_MODE_STRICT, which takes the counter away, too.
const STRICT: c_ulong = 1;
/// PR_TSC_SIGSEGV.
const COUNTER_FAULTS: c_ulong = 2;

/// As `seccomp` by number.
pub fn by_number(operation: c_long, call: impl FnOnce() -> c_long) -> c_long {
    const SET_MODE_STRICT: c_long = 0;
    const SET_MODE_FILTER: c_long = 1;
    match operation {
        SET_MODE_STRICT => without_clock(|| filtering(call)),
        SET_MODE_FILTER => filtering(call),
        _ => call(),
    }
}

fn without_clock<T: Into<i64> + Copy>(call: impl FnOnce() -> T) -> T {
    let stopped = clock::stop();
    let result = call();
    if result.into() < 0 {
        stopped.go_on();
    }
    result
}

fn filtering<T: Into<i64> + Copy>(call: impl FnOnce() -> T) -> T {
    // The child of a vfork records nothing, and its filter is not its parent's.
    if thread::is_vfork_child() || process::is_quiet() {
        return call();
    }
    settle();
    process::be_quiet(true);
    let result = call();
    process::be_quiet(result.into() >= 0);
    result
}

/// Asks the kernel for all that this thread is likely to need.
fn settle() {
    uring::look();
    let Some(mut thread) = thread::enter() else {
        return;
    };
    for fd in 0..DESCRIPTORS_LOOKED_AT {
        if raw!(SYS_fcntl, fd, libc::F_GETFD) >= 0 {
            descriptors::place(&mut thread, fd);
        }
    }
    for kind in [Kind::Read, Kind::Write, Kind::Meta, Kind::Sync] {
        if thread.histograms[kind as usize].counts.is_null() {
            thread.new_histogram(kind);
        }
    }
    let (process, number) = (thread.process(), thread.number);
    let [files, names] = ROOM_BYTES;
    thread.files.reserve(process, files, CHUNK_FILES, number);
    thread.names.reserve(process, names, CHUNK_NAMES, number);
    thread.learn_directory();
}
