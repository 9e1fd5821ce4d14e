//! `syscall()`: calls by number go through the function of their name, so that they are counted as it; those that
//! not every C library has a function for are made as they are, and recorded as `direct` says.

use core::ffi::{c_char, c_int, c_long, c_uint, c_void};

use leadline_record::trace::{Call, Kind};
use libc::AT_FDCWD;

use super::{aio, close, exec, life, open, position, stat, transfer, tree, uring};
use crate::clock::ticks;
use crate::machine::SYS_IO_PGETEVENTS;
use crate::recording::{Direction, Made, on_descriptor, opened};
use crate::symbols::{self, SYSCALL};
use crate::thread;

fn address(value: c_long) -> *mut c_void {
    core::ptr::with_exposed_provenance_mut(value as usize)
}

fn text(value: c_long) -> *const c_char {
    address(value).cast_const().cast()
}

/// Makes a system call; variadic.c collects the arguments, more than there are of them may be garbage.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leadline_syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    let arguments = [a, b, c, d, e, f];
    // SAFETY: the arguments are the program's own.
    unsafe {
        let known = data(number, arguments)
            .or_else(|| files(number, arguments))
            .or_else(|| names(number, arguments))
            .or_else(|| older(number, arguments))
            .or_else(|| programs(number, arguments))
            .or_else(|| call(number, arguments));
        if let Some(result) = known {
            return result;
        }
    }
    noticed(number, a);
    // SAFETY: as above.
    let call = || unsafe { real(number, arguments) };
    if number == libc::SYS_seccomp {
        return life::filter::by_number(a, call);
    }
    call()
}

/// Calls of which only the fact is recorded.
fn noticed(number: c_long, first: c_long) {
    match number {
        libc::SYS_io_uring_setup | libc::SYS_io_uring_enter | libc::SYS_io_uring_register => {
            uring::noted();
        }
        libc::SYS_exit_group => life::ended(first as c_int),
        _ => {}
    }
}

unsafe fn real(number: c_long, [a, b, c, d, e, f]: [c_long; 6]) -> c_long {
    let found = SYSCALL.get();
    if found.is_null() {
        return symbols::missing();
    }
    // SAFETY: the real function has this type.
    unsafe {
        let real: unsafe extern "C" fn(c_long, ...) -> c_long = core::mem::transmute(found);
        let result = real(number, a, b, c, d, e, f);
        uring::counted(number, result);
        result
    }
}

unsafe fn data(number: c_long, [a, b, c, d, ..]: [c_long; 6]) -> Option<c_long> {
    let (fd, bytes) = (a as c_int, c as usize);
    let parts = address(b).cast_const().cast();
    // SAFETY: the arguments are the program's own.
    let result = unsafe {
        match number {
            libc::SYS_read => transfer::read(fd, address(b), bytes),
            libc::SYS_write => transfer::write(fd, address(b), bytes),
            libc::SYS_pread64 => transfer::pread64(fd, address(b), bytes, d),
            libc::SYS_pwrite64 => transfer::pwrite64(fd, address(b), bytes, d),
            libc::SYS_readv => transfer::readv(fd, parts, c as c_int),
            libc::SYS_writev => transfer::writev(fd, parts, c as c_int),
            libc::SYS_preadv => transfer::preadv64(fd, parts, c as c_int, d),
            libc::SYS_pwritev => transfer::pwritev64(fd, parts, c as c_int, d),
            _ => return None,
        }
    };
    Some(result as c_long)
}

unsafe fn files(number: c_long, [a, b, c, d, ..]: [c_long; 6]) -> Option<c_long> {
    let fd = a as c_int;
    // SAFETY: the arguments are the program's own.
    let result = unsafe {
        match number {
            libc::SYS_openat => open::leadline_openat(fd, text(b), c as c_int, d as libc::mode_t),
            libc::SYS_close => close::close(fd),
            libc::SYS_dup => close::dup(fd),
            libc::SYS_dup3 => close::dup3(fd, b as c_int, c as c_int),
            libc::SYS_fcntl => close::leadline_fcntl(fd, b as c_int, c),
            libc::SYS_lseek => return Some(position::lseek64(fd, b, c as c_int)),
            libc::SYS_fsync => position::fsync(fd),
            libc::SYS_fdatasync => position::fdatasync(fd),
            libc::SYS_syncfs => position::syncfs(fd),
            libc::SYS_sync_file_range => position::sync_file_range(fd, b, c, d as c_uint),
            libc::SYS_msync => position::msync(address(a), b as usize, c as c_int),
            libc::SYS_ftruncate => position::ftruncate64(fd, b),
            libc::SYS_fallocate => position::fallocate64(fd, b as c_int, c, d),
            libc::SYS_fstat => stat::fstat64(fd, address(b)),
            libc::SYS_newfstatat => stat::fstatat64(fd, text(b), address(c), d as c_int),
            _ => return None,
        }
    };
    Some(c_long::from(result))
}

unsafe fn names(number: c_long, [a, b, c, d, e, _]: [c_long; 6]) -> Option<c_long> {
    let directory = a as c_int;
    // SAFETY: the arguments are the program's own.
    let result = unsafe {
        match number {
            libc::SYS_renameat => tree::renameat(directory, text(b), c as c_int, text(d)),
            libc::SYS_unlinkat => tree::unlinkat(directory, text(b), c as c_int),
            libc::SYS_mkdirat => tree::mkdirat(directory, text(b), c as libc::mode_t),
            libc::SYS_linkat => tree::linkat(directory, text(b), c as c_int, text(d), e as c_int),
            libc::SYS_symlinkat => tree::symlinkat(text(a), b as c_int, text(c)),
            libc::SYS_faccessat => stat::faccessat(directory, text(b), c as c_int, 0),
            libc::SYS_truncate => position::truncate64(text(a), b),
            libc::SYS_chdir => tree::chdir(text(a)),
            libc::SYS_fchdir => tree::fchdir(directory),
            libc::SYS_chroot => tree::chroot(text(a)),
            _ => return None,
        }
    };
    Some(c_long::from(result))
}

/// What newer processors have only in a form that names a directory.
#[cfg(target_arch = "x86_64")]
unsafe fn older(number: c_long, [a, b, c, ..]: [c_long; 6]) -> Option<c_long> {
    // SAFETY: the arguments are the program's own.
    let result = unsafe {
        match number {
            libc::SYS_open => open::leadline_open(text(a), b as c_int, c as libc::mode_t),
            libc::SYS_creat => open::creat(text(a), b as libc::mode_t),
            libc::SYS_dup2 => close::dup2(a as c_int, b as c_int),
            libc::SYS_stat => stat::stat64(text(a), address(b)),
            libc::SYS_lstat => stat::lstat64(text(a), address(b)),
            libc::SYS_access => stat::access(text(a), b as c_int),
            libc::SYS_rename => tree::rename(text(a), text(b)),
            libc::SYS_unlink => tree::unlink(text(a)),
            libc::SYS_mkdir => tree::mkdir(text(a), b as libc::mode_t),
            libc::SYS_rmdir => tree::rmdir(text(a)),
            libc::SYS_link => tree::link(text(a), text(b)),
            libc::SYS_symlink => tree::symlink(text(a), text(b)),
            _ => return None,
        }
    };
    Some(c_long::from(result))
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn older(_: c_long, _: [c_long; 6]) -> Option<c_long> {
    None
}

/// Programs that take this one's place: the tracer goes with them.
unsafe fn programs(number: c_long, [a, b, c, d, e, _]: [c_long; 6]) -> Option<c_long> {
    let strings = |value: c_long| address(value).cast_const().cast();
    // SAFETY: the arguments are the program's own.
    let result = unsafe {
        match number {
            libc::SYS_execve => exec::execve(text(a), strings(b), strings(c)),
            libc::SYS_execveat => {
                exec::execveat(a as c_int, text(b), strings(c), strings(d), e as c_int)
            }
            _ => return None,
        }
    };
    Some(c_long::from(result))
}

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
        #[cfg(target_arch = "x86_64")]
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
                transfer::between(made, (fd, first), (c as c_int, second), e as u64);
            }
            Call::sendfile64 => transfer::sent(made, fd, (b as c_int, address(c).cast()), d as u64),
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
