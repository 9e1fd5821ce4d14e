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

/// Of linux/unistd.h.
#[cfg(target_arch = "x86_64")]
const SYS_IO_PGETEVENTS: i64 = 333;
#[cfg(not(target_arch = "x86_64"))]
const SYS_IO_PGETEVENTS: i64 = 292;

/// The calls, in the order of their slots; slot 0 is left free.
pub const CALLS: &[Call] = &[
    call("read", libc::SYS_read, Read, TRANSFER, ""),
    call("write", libc::SYS_write, Write, TRANSFER | WRITES, ""),
    call("pread64", libc::SYS_pread64, Read, TRANSFER | AT, ""),
    call(
        "pwrite64",
        libc::SYS_pwrite64,
        Write,
        TRANSFER | WRITES | AT,
        "",
    ),
    call("readv", libc::SYS_readv, Read, TRANSFER | VECTOR, ""),
    call(
        "writev",
        libc::SYS_writev,
        Write,
        TRANSFER | WRITES | VECTOR,
        "",
    ),
    call("preadv", libc::SYS_preadv, Read, TRANSFER | VECTOR | AT, ""),
    call(
        "preadv2",
        libc::SYS_preadv2,
        Read,
        TRANSFER | VECTOR | AT,
        "",
    ),
    call(
        "pwritev",
        libc::SYS_pwritev,
        Write,
        TRANSFER | WRITES | VECTOR | AT,
        "",
    ),
    call(
        "pwritev2",
        libc::SYS_pwritev2,
        Write,
        TRANSFER | WRITES | VECTOR | AT,
        "",
    ),
    #[cfg(target_arch = "x86_64")]
    call("open", libc::SYS_open, Meta, OPEN, ""),
    #[cfg(target_arch = "x86_64")]
    call("creat", libc::SYS_creat, Meta, OPEN, ""),
    call("openat", libc::SYS_openat, Meta, OPEN, ""),
    call("openat2", libc::SYS_openat2, Meta, OPEN, ""),
    call(
        "open_by_handle_at",
        libc::SYS_open_by_handle_at,
        Meta,
        OPEN,
        "",
    ),
    call("close", libc::SYS_close, Meta, CLOSE, ""),
    call("close_range", libc::SYS_close_range, Meta, CLOSE_RANGE, ""),
    call("lseek", libc::SYS_lseek, Meta, DESCRIPTOR, "SEEKS"),
    call("fstat", libc::SYS_fstat, Meta, DESCRIPTOR, "STATS"),
    #[cfg(target_arch = "x86_64")]
    named("stat", libc::SYS_stat, 0, false, "STATS"),
    #[cfg(target_arch = "x86_64")]
    named("lstat", libc::SYS_lstat, 0, false, "STATS"),
    named("newfstatat", libc::SYS_newfstatat, 1, true, "STATS"),
    named("statx", libc::SYS_statx, 1, true, "STATS"),
    call("dup", libc::SYS_dup, Meta, DESCRIPTOR, "DUPS"),
    #[cfg(target_arch = "x86_64")]
    call("dup2", libc::SYS_dup2, Meta, DESCRIPTOR, "DUPS"),
    call("dup3", libc::SYS_dup3, Meta, DESCRIPTOR, "DUPS"),
    call("fcntl", libc::SYS_fcntl, Meta, CONTROL, ""),
    call("fsync", libc::SYS_fsync, Sync, DESCRIPTOR, "FSYNCS"),
    call(
        "fdatasync",
        libc::SYS_fdatasync,
        Sync,
        DESCRIPTOR,
        "FDSYNCS",
    ),
    call(
        "sync_file_range",
        libc::SYS_sync_file_range,
        Sync,
        DESCRIPTOR,
        "",
    ),
    call("syncfs", libc::SYS_syncfs, Sync, DESCRIPTOR, ""),
    call("sync", libc::SYS_sync, Sync, PLAIN, ""),
    call("msync", libc::SYS_msync, Sync, PLAIN, ""),
    call("mmap", libc::SYS_mmap, Meta, MAPPING, ""),
    call(
        "copy_file_range",
        libc::SYS_copy_file_range,
        Write,
        COPY,
        "",
    ),
    call("splice", libc::SYS_splice, Read, COPY, ""),
    call("sendfile", libc::SYS_sendfile, Read, SEND, ""),
    call(
        "ftruncate",
        libc::SYS_ftruncate,
        Meta,
        DESCRIPTOR,
        "truncates",
    ),
    named("truncate", libc::SYS_truncate, 0, false, "truncates"),
    call(
        "fallocate",
        libc::SYS_fallocate,
        Meta,
        DESCRIPTOR,
        "allocates",
    ),
    call(
        "fadvise64",
        libc::SYS_fadvise64,
        Meta,
        DESCRIPTOR,
        "advises",
    ),
    call(
        "readahead",
        libc::SYS_readahead,
        Meta,
        DESCRIPTOR,
        "advises",
    ),
    #[cfg(target_arch = "x86_64")]
    call("getdents", libc::SYS_getdents, Meta, DESCRIPTOR, "readdirs"),
    call(
        "getdents64",
        libc::SYS_getdents64,
        Meta,
        DESCRIPTOR,
        "readdirs",
    ),
    #[cfg(target_arch = "x86_64")]
    renaming("rename", libc::SYS_rename, 0, 1),
    renaming("renameat", libc::SYS_renameat, 1, 3),
    renaming("renameat2", libc::SYS_renameat2, 1, 3),
    #[cfg(target_arch = "x86_64")]
    named("unlink", libc::SYS_unlink, 0, false, "unlinks"),
    named("unlinkat", libc::SYS_unlinkat, 1, true, "unlinks"),
    #[cfg(target_arch = "x86_64")]
    named("mkdir", libc::SYS_mkdir, 0, false, "mkdirs"),
    #[cfg(target_arch = "x86_64")]
    named("rmdir", libc::SYS_rmdir, 0, false, "rmdirs"),
    named("mkdirat", libc::SYS_mkdirat, 1, true, "mkdirs"),
    #[cfg(target_arch = "x86_64")]
    named("link", libc::SYS_link, 1, false, "links"),
    #[cfg(target_arch = "x86_64")]
    named("symlink", libc::SYS_symlink, 1, false, "links"),
    named("linkat", libc::SYS_linkat, 3, true, "links"),
    named("symlinkat", libc::SYS_symlinkat, 2, true, "links"),
    #[cfg(target_arch = "x86_64")]
    call("access", libc::SYS_access, Meta, PLAIN, ""),
    #[cfg(target_arch = "x86_64")]
    call("readlink", libc::SYS_readlink, Meta, PLAIN, ""),
    #[cfg(target_arch = "x86_64")]
    call("chmod", libc::SYS_chmod, Meta, PLAIN, ""),
    #[cfg(target_arch = "x86_64")]
    call("chown", libc::SYS_chown, Meta, PLAIN, ""),
    #[cfg(target_arch = "x86_64")]
    call("lchown", libc::SYS_lchown, Meta, PLAIN, ""),
    #[cfg(target_arch = "x86_64")]
    call("mknod", libc::SYS_mknod, Meta, PLAIN, ""),
    #[cfg(target_arch = "x86_64")]
    call("utime", libc::SYS_utime, Meta, PLAIN, ""),
    #[cfg(target_arch = "x86_64")]
    call("utimes", libc::SYS_utimes, Meta, PLAIN, ""),
    #[cfg(target_arch = "x86_64")]
    call("futimesat", libc::SYS_futimesat, Meta, PLAIN, ""),
    call("faccessat", libc::SYS_faccessat, Meta, PLAIN, ""),
    call("faccessat2", libc::SYS_faccessat2, Meta, PLAIN, ""),
    call("readlinkat", libc::SYS_readlinkat, Meta, PLAIN, ""),
    call("fchmodat", libc::SYS_fchmodat, Meta, PLAIN, ""),
    call("fchmodat2", libc::SYS_fchmodat2, Meta, PLAIN, ""),
    call("fchownat", libc::SYS_fchownat, Meta, PLAIN, ""),
    call("mknodat", libc::SYS_mknodat, Meta, PLAIN, ""),
    call("utimensat", libc::SYS_utimensat, Meta, PLAIN, ""),
    call("fchmod", libc::SYS_fchmod, Meta, DESCRIPTOR, ""),
    call("fchown", libc::SYS_fchown, Meta, DESCRIPTOR, ""),
    call("flock", libc::SYS_flock, Meta, DESCRIPTOR, ""),
    call("fstatfs", libc::SYS_fstatfs, Meta, DESCRIPTOR, ""),
    call("fchdir", libc::SYS_fchdir, Meta, DESCRIPTOR, ""),
    call("statfs", libc::SYS_statfs, Meta, PLAIN, ""),
    call("chdir", libc::SYS_chdir, Meta, PLAIN, ""),
    call("getxattr", libc::SYS_getxattr, Meta, PLAIN, ""),
    call("lgetxattr", libc::SYS_lgetxattr, Meta, PLAIN, ""),
    call("setxattr", libc::SYS_setxattr, Meta, PLAIN, ""),
    call("lsetxattr", libc::SYS_lsetxattr, Meta, PLAIN, ""),
    call("listxattr", libc::SYS_listxattr, Meta, PLAIN, ""),
    call("llistxattr", libc::SYS_llistxattr, Meta, PLAIN, ""),
    call("removexattr", libc::SYS_removexattr, Meta, PLAIN, ""),
    call("lremovexattr", libc::SYS_lremovexattr, Meta, PLAIN, ""),
    call("fgetxattr", libc::SYS_fgetxattr, Meta, DESCRIPTOR, ""),
    call("fsetxattr", libc::SYS_fsetxattr, Meta, DESCRIPTOR, ""),
    call("flistxattr", libc::SYS_flistxattr, Meta, DESCRIPTOR, ""),
    call("fremovexattr", libc::SYS_fremovexattr, Meta, DESCRIPTOR, ""),
    call("memfd_create", libc::SYS_memfd_create, None, PLAIN, ""),
    call("io_setup", libc::SYS_io_setup, None, PLAIN, ""),
    call("io_submit", libc::SYS_io_submit, None, SUBMIT, ""),
    call("io_getevents", libc::SYS_io_getevents, None, COLLECT, ""),
    call("io_pgetevents", SYS_IO_PGETEVENTS, None, COLLECT, ""),
    asked("io_submit:read", Read),
    asked("io_submit:write", Write),
    asked("io_submit:sync", Sync),
    call("io_uring_setup", libc::SYS_io_uring_setup, None, PLAIN, ""),
    call("io_uring_enter", libc::SYS_io_uring_enter, None, PLAIN, ""),
    call(
        "io_uring_register",
        libc::SYS_io_uring_register,
        None,
        PLAIN,
        "",
    ),
    // Numbers of io_uring's operations are part of the kernel's interface.
    ring("io_uring:readv", 1, Read, TRANSFER | VECTOR | AT, ""),
    ring(
        "io_uring:writev",
        2,
        Write,
        TRANSFER | WRITES | VECTOR | AT,
        "",
    ),
    ring("io_uring:fsync", 3, Sync, DESCRIPTOR, "FSYNCS"),
    ring("io_uring:read_fixed", 4, Read, TRANSFER | AT, ""),
    ring("io_uring:write_fixed", 5, Write, TRANSFER | WRITES | AT, ""),
    ring("io_uring:sync_file_range", 8, Sync, DESCRIPTOR, ""),
    ring("io_uring:fallocate", 17, Meta, DESCRIPTOR, "allocates"),
    ring("io_uring:openat", 18, Meta, OPEN, ""),
    ring("io_uring:close", 19, Meta, CLOSE, ""),
    ring("io_uring:statx", 21, Meta, PATH, ""),
    ring("io_uring:read", 22, Read, TRANSFER | AT, ""),
    ring("io_uring:write", 23, Write, TRANSFER | WRITES | AT, ""),
    ring("io_uring:fadvise", 24, Meta, DESCRIPTOR, "advises"),
    ring("io_uring:openat2", 28, Meta, OPEN, ""),
    ring("io_uring:splice", 30, Read, COPY, ""),
    ring("io_uring:renameat", 35, Meta, PATH, ""),
    ring("io_uring:unlinkat", 36, Meta, PATH, ""),
    ring("io_uring:mkdirat", 37, Meta, PATH, ""),
    ring("io_uring:symlinkat", 38, Meta, PATH, ""),
    ring("io_uring:linkat", 39, Meta, PATH, ""),
];

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
