//! io_uring: its queues are memory that program and kernel share, so that it can be seen but not followed.
//!
//! liburing makes its system calls by itself; its entry points are what can be seen of it, where a program links
//! it as a shared library. Programs that carry it inside are found by their descriptors when they end.

use core::ffi::{c_int, c_long, c_uint, c_void};

use leadline_record::trace::Call;
use leadline_record::trace::layout::NOTE_IO_URING;

use crate::recording::{Made, only_counted};
use crate::{chunks, clock, process, symbols, sys};

/// The report must say that there was a ring.
pub fn noted() {
    if let Some(process) = process::ready() {
        process::flag(chunks::header(process), NOTE_IO_URING);
    }
}

/// Counts the calls that go through `syscall()`.
pub fn counted(number: c_long, result: c_long) {
    let call = match number {
        libc::SYS_io_uring_setup => Call::io_uring_setup,
        libc::SYS_io_uring_enter => Call::io_uring_enter,
        libc::SYS_io_uring_register => Call::io_uring_register,
        _ => return,
    };
    only_counted(Made::new(call, clock::ticks(), result));
}

macro_rules! ring {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {$(
        /// Of liburing, which is there when this is called.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            noted();
            let real = symbols::next(concat!(stringify!($name), "\0"));
            if real.is_null() {
                return -libc::ENOSYS;
            }
            // SAFETY: the real function of this name has this type.
            unsafe {
                let real: unsafe extern "C" fn($($type),*) -> c_int = core::mem::transmute(real);
                real($($argument),*)
            }
        }
    )*};
}

ring! {
    io_uring_queue_init(entries: c_uint, ring: *mut c_void, flags: c_uint);
    io_uring_queue_init_params(entries: c_uint, ring: *mut c_void, parameters: *mut c_void);
    io_uring_queue_mmap(fd: c_int, parameters: *mut c_void, ring: *mut c_void);
}

const DESCRIPTORS_LOOKED_AT: i32 = 64;

/// Looks for a ring among the first descriptors, once, as the process ends.
pub fn look() {
    for fd in 3..DESCRIPTORS_LOOKED_AT {
        // A path in /proc costs ten times as much to look up.
        if sys::raw!(SYS_fcntl, fd, libc::F_GETFD) < 0 {
            if fd > 16 {
                return;
            }
            continue;
        }
        let mut path = [0_u8; 32];
        let mut text = crate::environment::Text::new(&mut path);
        text.push(b"/proc/self/fd/");
        text.push_number(fd as u64);
        text.push(b"\0");
        let mut link = [0_u8; 32];
        let length = sys::read_link(&path, &mut link);
        if link.get(..length) == Some(b"anon_inode:[io_uring]".as_slice()) {
            noted();
            return;
        }
    }
}
