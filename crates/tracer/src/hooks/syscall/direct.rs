//! Calls by number that the C library has no function for, or only a newer one: made as the program asked, then
//! recorded as the function of that name is.

use core::ffi::{c_int, c_long, c_uint};

use leadline_record::trace::{Call, Kind};
use libc::AT_FDCWD;

use super::{address, real, text};
use crate::clock::ticks;
use crate::hooks::{aio, close, copy, open, position, stat, transfer, tree};
use crate::recording::{Direction, Made, on_descriptor, opened};
use crate::thread;

/// Of linux/unistd.h, for x86-64.
const SYS_IO_PGETEVENTS: c_long = 333;

/// The call of a number; its name in the kernel, or in the C library's large-file variant.
fn call_of(number: c_long) -> Option<Call> {
    Some(match number {
        libc::SYS_openat2 => Call::openat2,
        libc::SYS_close_range => Call::close_range,
        libc::SYS_preadv2 => Call::preadv64v2,
        libc::SYS_pwritev2 => Call::pwritev64v2,
        libc::SYS_copy_file_range => Call::copy_file_range,
        libc::SYS_sendfile => Call::sendfile64,
        libc::SYS_splice => Call::splice,
        libc::SYS_getdents64 => Call::getdents64,
        libc::SYS_statx => Call::statx,
        libc::SYS_faccessat2 => Call::faccessat,
        libc::SYS_readlink => Call::readlink,
        libc::SYS_readlinkat => Call::readlinkat,
        libc::SYS_renameat2 => Call::renameat2,
        libc::SYS_fadvise64 => Call::posix_fadvise64,
        libc::SYS_readahead => Call::readahead,
        libc::SYS_mmap => Call::mmap64,
        libc::SYS_io_submit => Call::io_submit,
        libc::SYS_io_getevents => Call::io_getevents,
        SYS_IO_PGETEVENTS => Call::io_pgetevents,
        _ => return None,
    })
}

/// Makes and records the call; None when this is not one of these.
pub unsafe fn call(number: c_long, arguments: [c_long; 6]) -> Option<c_long> {
    let call = call_of(number)?;
    if thread::is_within(call) {
        // SAFETY: the arguments are the program's own.
        return Some(unsafe { real(number, arguments) });
    }
    if call == Call::io_submit {
        aio::requests::submitting((address(arguments[2]).cast(), arguments[1]));
    }
    let start = ticks();
    // SAFETY: the arguments are the program's own.
    let result = unsafe { real(number, arguments) };
    let made = Made::new(call, start, result);
    // SAFETY: as above, and the call has returned.
    unsafe {
        moved(made, arguments);
        named(made, arguments);
        other(made, arguments);
    }
    Some(result)
}

/// What moves bytes.
unsafe fn moved(made: Made, [a, b, c, d, e, _]: [c_long; 6]) {
    let fd = a as c_int;
    let parts = (address(b).cast_const().cast(), c as c_int);
    let (first, second) = (address(b).cast(), address(d).cast());
    // SAFETY: the kernel has read and written what these point to.
    unsafe {
        match made.call {
            Call::preadv64v2 => transfer::vector(made, Direction::Read, fd, parts, Some(d)),
            Call::pwritev64v2 => transfer::vector(made, Direction::Write, fd, parts, Some(d)),
            Call::copy_file_range | Call::splice => {
                copy::between(made, (fd, first), (c as c_int, second), e as u64);
            }
            Call::sendfile64 => copy::sent(made, fd, (b as c_int, address(c).cast()), d as u64),
            Call::io_getevents | Call::io_pgetevents => aio::events(made, address(d).cast()),
            _ => {}
        }
    }
}

/// What names a file by its path.
unsafe fn named(made: Made, [a, b, c, d, ..]: [c_long; 6]) {
    let directory = a as c_int;
    // SAFETY: the kernel has read these strings.
    unsafe {
        match made.call {
            Call::openat2 => {
                let flags = open::flags_of(made, address(c));
                opened(made, (directory, text(b)), flags);
            }
            Call::statx => stat::at(made, directory, text(b), c as c_int),
            Call::faccessat => stat::asked(made, directory, text(b)),
            Call::readlinkat => stat::link_read(made, directory, text(b), text(c)),
            Call::readlink => stat::link_read(made, AT_FDCWD, text(a), text(b)),
            Call::renameat2 => tree::renamed(made, (directory, text(b)), (c as c_int, text(d))),
            _ => {}
        }
    }
}

/// What is neither.
unsafe fn other(made: Made, [a, b, c, d, e, _]: [c_long; 6]) {
    let fd = a as c_int;
    match made.call {
        Call::close_range => close::closed_range(made, a as c_uint, b as c_uint, c as c_int),
        Call::getdents64 => on_descriptor(made, fd, Kind::Meta, |record, _| record.readdirs += 1),
        Call::posix_fadvise64 | Call::readahead => {
            position::meta(made, fd, |record| record.advises += 1);
        }
        Call::mmap64 => {
            let (bytes, protection, flags) = (b as usize, c as c_int, d as c_int);
            position::mapped(
                made,
                e as c_int,
                position::Mapping {
                    bytes,
                    protection,
                    flags,
                },
            );
        }
        Call::io_submit => aio::submitted(made, (address(c).cast(), b)),
        _ => {}
    }
}
