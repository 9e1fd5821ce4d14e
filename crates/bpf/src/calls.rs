//! Every call that the tracer counts, listed once: its name, what its time counts as, how it names files.

use leadline_record::trace::COUNTERS;

use crate::vocabulary::{KINDS, SHAPES};
use Kind::{Meta, None, Read, Sync, Write};

/// What the time of a call counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
    Meta,
    Sync,
    /// It waits for something else than a file.
    None,
}

/// Where the kernel's number of a call is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    System,
    Ring,
    /// Requests of libaio: `ASKED` has their numbers, of which several are one call here.
    Asked,
}

/// A system call, or a request of io_uring or libaio, by the number that the kernel knows it by.
#[derive(Debug)]
pub struct Call {
    pub name: &'static str,
    pub number: i64,
    pub table: Table,
    pub kind: Kind,
    pub shape: u8,
    pub counter: u8,
    /// For calls that name files by path: which argument does, whether the one before it is the directory's
    /// descriptor, and which is the second path (0: none).
    pub path: u8,
    pub has_directory: bool,
    pub second: u8,
}

// The program numbers kinds by their place among the words.
const _: () = assert!(
    same(KINDS[Read as usize], "READ")
        && same(KINDS[Write as usize], "WRITE")
        && same(KINDS[Meta as usize], "META")
        && same(KINDS[Sync as usize], "SYNC")
        && same(KINDS[None as usize], "NONE")
);

const PLAIN: u8 = shape("PLAIN");
const OPEN: u8 = shape("OPEN");
const CLOSE: u8 = shape("CLOSE");
const CLOSE_RANGE: u8 = shape("CLOSE_RANGE");
const SUBMIT: u8 = shape("SUBMIT");
const COLLECT: u8 = shape("COLLECT");
const DESCRIPTOR: u8 = shape("DESCRIPTOR");
const CONTROL: u8 = shape("CONTROL");
const PATH: u8 = shape("PATH");
const MAPPING: u8 = shape("MAPPING");
const COPY: u8 = shape("COPY");
const SEND: u8 = shape("SEND");
const TRANSFER: u8 = shape("TRANSFER");
const WRITES: u8 = shape("WRITES");
const AT: u8 = shape("AT");
const VECTOR: u8 = shape("VECTOR");

/// Numbers by libc's names, and of what libc lacks by those of linux/unistd.h.
#[allow(non_upper_case_globals, reason = "libc's way to name them")]
mod numbers {
    pub use libc::*;

    #[cfg(target_arch = "x86_64")]
    pub const SYS_io_pgetevents: i64 = 333;
    #[cfg(not(target_arch = "x86_64"))]
    pub const SYS_io_pgetevents: i64 = 292;
    #[cfg(target_arch = "aarch64")]
    pub const SYS_fchmodat2: i64 = 452; // libc lacks it for this processor
}

/// Rows by libc's symbol, which has name and number of a system call, or by name.
macro_rules! calls {
    ($($(#[$only:meta])? $make:ident $name:tt $arguments:tt;)*) => {
        &[$($(#[$only])? calls!(@row $make $name $arguments),)*]
    };
    (@row $make:ident $symbol:ident($($more:tt)*)) => {
        $make(stringify!($symbol).split_at("SYS_".len()).1, numbers::$symbol, $($more)*)
    };
    (@row $make:ident $name:literal($($more:tt)*)) => {
        $make($name, $($more)*)
    };
}

/// The calls, in the order of their slots; slot 0 is left free.
pub const CALLS: &[Call] = calls! {
    call SYS_read(Read, TRANSFER, "");
    call SYS_write(Write, TRANSFER | WRITES, "");
    call SYS_pread64(Read, TRANSFER | AT, "");
    call SYS_pwrite64(Write, TRANSFER | WRITES | AT, "");
    call SYS_readv(Read, TRANSFER | VECTOR, "");
    call SYS_writev(Write, TRANSFER | WRITES | VECTOR, "");
    call SYS_preadv(Read, TRANSFER | VECTOR | AT, "");
    call SYS_preadv2(Read, TRANSFER | VECTOR | AT, "");
    call SYS_pwritev(Write, TRANSFER | WRITES | VECTOR | AT, "");
    call SYS_pwritev2(Write, TRANSFER | WRITES | VECTOR | AT, "");
    #[cfg(target_arch = "x86_64")] call SYS_open(Meta, OPEN, "");
    #[cfg(target_arch = "x86_64")] call SYS_creat(Meta, OPEN, "");
    call SYS_openat(Meta, OPEN, "");
    call SYS_openat2(Meta, OPEN, "");
    call SYS_open_by_handle_at(Meta, OPEN, "");
    call SYS_close(Meta, CLOSE, "");
    call SYS_close_range(Meta, CLOSE_RANGE, "");
    call SYS_lseek(Meta, DESCRIPTOR, "SEEKS");
    call SYS_fstat(Meta, DESCRIPTOR, "STATS");
    #[cfg(target_arch = "x86_64")] named SYS_stat(0, false, "STATS");
    #[cfg(target_arch = "x86_64")] named SYS_lstat(0, false, "STATS");
    named SYS_newfstatat(1, true, "STATS");
    named SYS_statx(1, true, "STATS");
    call SYS_dup(Meta, DESCRIPTOR, "DUPS");
    #[cfg(target_arch = "x86_64")] call SYS_dup2(Meta, DESCRIPTOR, "DUPS");
    call SYS_dup3(Meta, DESCRIPTOR, "DUPS");
    call SYS_fcntl(Meta, CONTROL, "");
    call SYS_fsync(Sync, DESCRIPTOR, "FSYNCS");
    call SYS_fdatasync(Sync, DESCRIPTOR, "FDSYNCS");
    call SYS_sync_file_range(Sync, DESCRIPTOR, "");
    call SYS_syncfs(Sync, DESCRIPTOR, "");
    call SYS_sync(Sync, PLAIN, "");
    call SYS_msync(Sync, PLAIN, "");
    call SYS_mmap(Meta, MAPPING, "");
    call SYS_copy_file_range(Write, COPY, "");
    call SYS_splice(Read, COPY, "");
    call SYS_sendfile(Read, SEND, "");
    call SYS_ftruncate(Meta, DESCRIPTOR, "truncates");
    named SYS_truncate(0, false, "truncates");
    call SYS_fallocate(Meta, DESCRIPTOR, "allocates");
    call SYS_fadvise64(Meta, DESCRIPTOR, "advises");
    call SYS_readahead(Meta, DESCRIPTOR, "advises");
    #[cfg(target_arch = "x86_64")] call SYS_getdents(Meta, DESCRIPTOR, "readdirs");
    call SYS_getdents64(Meta, DESCRIPTOR, "readdirs");
    #[cfg(target_arch = "x86_64")] renaming SYS_rename(0, 1);
    renaming SYS_renameat(1, 3);
    renaming SYS_renameat2(1, 3);
    #[cfg(target_arch = "x86_64")] named SYS_unlink(0, false, "unlinks");
    named SYS_unlinkat(1, true, "unlinks");
    #[cfg(target_arch = "x86_64")] named SYS_mkdir(0, false, "mkdirs");
    #[cfg(target_arch = "x86_64")] named SYS_rmdir(0, false, "rmdirs");
    named SYS_mkdirat(1, true, "mkdirs");
    #[cfg(target_arch = "x86_64")] named SYS_link(1, false, "links");
    #[cfg(target_arch = "x86_64")] named SYS_symlink(1, false, "links");
    named SYS_linkat(3, true, "links");
    named SYS_symlinkat(2, true, "links");
    #[cfg(target_arch = "x86_64")] call SYS_access(Meta, PLAIN, "");
    #[cfg(target_arch = "x86_64")] call SYS_readlink(Meta, PLAIN, "");
    #[cfg(target_arch = "x86_64")] call SYS_chmod(Meta, PLAIN, "");
    #[cfg(target_arch = "x86_64")] call SYS_chown(Meta, PLAIN, "");
    #[cfg(target_arch = "x86_64")] call SYS_lchown(Meta, PLAIN, "");
    #[cfg(target_arch = "x86_64")] call SYS_mknod(Meta, PLAIN, "");
    #[cfg(target_arch = "x86_64")] call SYS_utime(Meta, PLAIN, "");
    #[cfg(target_arch = "x86_64")] call SYS_utimes(Meta, PLAIN, "");
    #[cfg(target_arch = "x86_64")] call SYS_futimesat(Meta, PLAIN, "");
    call SYS_faccessat(Meta, PLAIN, "");
    call SYS_faccessat2(Meta, PLAIN, "");
    call SYS_readlinkat(Meta, PLAIN, "");
    call SYS_fchmodat(Meta, PLAIN, "");
    call SYS_fchmodat2(Meta, PLAIN, "");
    call SYS_fchownat(Meta, PLAIN, "");
    call SYS_mknodat(Meta, PLAIN, "");
    call SYS_utimensat(Meta, PLAIN, "");
    call SYS_fchmod(Meta, DESCRIPTOR, "");
    call SYS_fchown(Meta, DESCRIPTOR, "");
    call SYS_flock(Meta, DESCRIPTOR, "");
    call SYS_fstatfs(Meta, DESCRIPTOR, "");
    call SYS_fchdir(Meta, DESCRIPTOR, "");
    call SYS_statfs(Meta, PLAIN, "");
    call SYS_chdir(Meta, PLAIN, "");
    call SYS_getxattr(Meta, PLAIN, "");
    call SYS_lgetxattr(Meta, PLAIN, "");
    call SYS_setxattr(Meta, PLAIN, "");
    call SYS_lsetxattr(Meta, PLAIN, "");
    call SYS_listxattr(Meta, PLAIN, "");
    call SYS_llistxattr(Meta, PLAIN, "");
    call SYS_removexattr(Meta, PLAIN, "");
    call SYS_lremovexattr(Meta, PLAIN, "");
    call SYS_fgetxattr(Meta, DESCRIPTOR, "");
    call SYS_fsetxattr(Meta, DESCRIPTOR, "");
    call SYS_flistxattr(Meta, DESCRIPTOR, "");
    call SYS_fremovexattr(Meta, DESCRIPTOR, "");
    call SYS_memfd_create(None, PLAIN, "");
    call SYS_io_setup(None, PLAIN, "");
    call SYS_io_submit(None, SUBMIT, "");
    call SYS_io_getevents(None, COLLECT, "");
    call SYS_io_pgetevents(None, COLLECT, "");
    asked "io_submit:read"(Read);
    asked "io_submit:write"(Write);
    asked "io_submit:sync"(Sync);
    call SYS_io_uring_setup(None, PLAIN, "");
    call SYS_io_uring_enter(None, PLAIN, "");
    call SYS_io_uring_register(None, PLAIN, "");
    // Numbers of io_uring's operations are part of the kernel's interface.
    ring "io_uring:readv"(1, Read, TRANSFER | VECTOR | AT, "");
    ring "io_uring:writev"(2, Write, TRANSFER | WRITES | VECTOR | AT, "");
    ring "io_uring:fsync"(3, Sync, DESCRIPTOR, "FSYNCS");
    ring "io_uring:read_fixed"(4, Read, TRANSFER | AT, "");
    ring "io_uring:write_fixed"(5, Write, TRANSFER | WRITES | AT, "");
    ring "io_uring:sync_file_range"(8, Sync, DESCRIPTOR, "");
    ring "io_uring:fallocate"(17, Meta, DESCRIPTOR, "allocates");
    ring "io_uring:openat"(18, Meta, OPEN, "");
    ring "io_uring:close"(19, Meta, CLOSE, "");
    ring "io_uring:statx"(21, Meta, PATH, "");
    ring "io_uring:read"(22, Read, TRANSFER | AT, "");
    ring "io_uring:write"(23, Write, TRANSFER | WRITES | AT, "");
    ring "io_uring:fadvise"(24, Meta, DESCRIPTOR, "advises");
    ring "io_uring:openat2"(28, Meta, OPEN, "");
    ring "io_uring:splice"(30, Read, COPY, "");
    ring "io_uring:renameat"(35, Meta, PATH, "");
    ring "io_uring:unlinkat"(36, Meta, PATH, "");
    ring "io_uring:mkdirat"(37, Meta, PATH, "");
    ring "io_uring:symlinkat"(38, Meta, PATH, "");
    ring "io_uring:linkat"(39, Meta, PATH, "");
};

/// Requests of libaio: the opcode of linux/aio_abi.h, the call that they count as, shape and counter.
pub const ASKED: &[(usize, &str, u8, u8)] = &[
    (0, "io_submit:read", TRANSFER | AT, counter_number("")),
    (
        1,
        "io_submit:write",
        TRANSFER | WRITES | AT,
        counter_number(""),
    ),
    (2, "io_submit:sync", DESCRIPTOR, counter_number("FSYNCS")),
    (3, "io_submit:sync", DESCRIPTOR, counter_number("FDSYNCS")),
    (
        7,
        "io_submit:read",
        TRANSFER | VECTOR | AT,
        counter_number(""),
    ),
    (
        8,
        "io_submit:write",
        TRANSFER | WRITES | VECTOR | AT,
        counter_number(""),
    ),
];

const fn call(name: &'static str, number: i64, kind: Kind, shape: u8, counter: &str) -> Call {
    Call {
        name,
        number,
        table: Table::System,
        kind,
        shape,
        counter: counter_number(counter),
        path: 0,
        has_directory: false,
        second: 0,
    }
}

const fn named(
    name: &'static str,
    number: i64,
    path: u8,
    has_directory: bool,
    counter: &str,
) -> Call {
    let mut named = call(name, number, Meta, PATH, counter);
    (named.path, named.has_directory) = (path, has_directory);
    named
}

const fn renaming(name: &'static str, number: i64, path: u8, second: u8) -> Call {
    let mut renaming = named(name, number, path, path > 0, "RENAME_SOURCES");
    renaming.second = second;
    renaming
}

const fn ring(name: &'static str, number: i64, kind: Kind, shape: u8, counter: &str) -> Call {
    let mut request = call(name, number, kind, shape, counter);
    request.table = Table::Ring;
    request
}

const fn asked(name: &'static str, kind: Kind) -> Call {
    let mut request = call(name, -1, kind, PLAIN, "");
    request.table = Table::Asked;
    request
}

const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut index = 0;
    while index < one.len() && index < other.len() && one[index] == other[index] {
        index += 1;
    }
    index == one.len() && index == other.len()
}

const fn shape(name: &str) -> u8 {
    let mut index = 0;
    while !same(SHAPES[index].0, name) {
        index += 1;
    }
    SHAPES[index].1
}

/// The number of a counter; past the last for none.
const fn counter_number(name: &str) -> u8 {
    let mut index = 0;
    while index < COUNTERS.len() && !same(COUNTERS[index], name) {
        index += 1;
    }
    assert!(index < COUNTERS.len() || name.is_empty(), "no such counter");
    index as u8
}
