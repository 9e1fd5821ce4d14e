//! The one list of functions that the tracer follows, with what their time is counted as. Append only: a log
//! stores the place of a function in this list, and which list that was.

/// What the time of a call is counted as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
    Meta,
    Sync,
}

impl Kind {
    /// All kinds, in the order of their numbers in a log.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Meta, Self::Sync];

    /// The word that tables use.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Meta => "meta",
            Self::Sync => "sync",
        }
    }
}

macro_rules! word {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:ident $word:literal) => {
        $word
    };
}

macro_rules! calls {
    ($($name:ident $kind:ident $([$word:literal])?)*) => {
        /// A function that the tracer follows, by its name in the C library, or a request that one of them submits,
        /// whose name has a colon.
        #[allow(non_camel_case_types)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u16)]
        pub enum Call { $($name),* }

        /// Name, C string of the name, and kind of every call, by number.
        pub const CALLS: &[(&str, &str, Kind)] =
            &[$((word!($name $($word)?), concat!(word!($name $($word)?), "\0"), Kind::$kind)),*];

        const IN_ORDER: &[Call] = &[$(Call::$name),*];
    };
}

impl Call {
    /// The number that logs store.
    pub const fn number(self) -> usize {
        self as usize
    }

    /// What its time is counted as.
    pub const fn kind(self) -> Kind {
        CALLS[self as usize].2
    }

    /// The call of a number, if there is one.
    pub fn from_number(number: usize) -> Option<Self> {
        IN_ORDER.get(number).copied()
    }

    /// The function's name.
    pub const fn name(self) -> &'static str {
        CALLS[self as usize].0
    }
}

/// What tells one list from another: of the names and kinds of the first `count` calls (FNV-1a, 64 bits).
pub const fn checksum(count: usize) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut number = 0;
    while number < count {
        let (_, terminated, kind) = CALLS[number];
        let mut place = 0;
        while place < terminated.len() {
            hash = mixed(hash, terminated.as_bytes()[place]);
            place += 1;
        }
        hash = mixed(hash, kind as u8);
        number += 1;
    }
    hash
}

const fn mixed(hash: u64, byte: u8) -> u64 {
    (hash ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3)
}

/// Of the whole list.
pub const CALLS_CHECKSUM: u64 = checksum(CALLS.len());

calls! {
    read Read
    __read_chk Read
    pread Read
    pread64 Read
    __pread_chk Read
    __pread64_chk Read
    readv Read
    preadv Read
    preadv64 Read
    preadv2 Read
    preadv64v2 Read
    write Write
    pwrite Write
    pwrite64 Write
    writev Write
    pwritev Write
    pwritev64 Write
    pwritev2 Write
    pwritev64v2 Write
    copy_file_range Write
    sendfile Write
    sendfile64 Write
    splice Write
    open Meta
    open64 Meta
    __open_2 Meta
    __open64_2 Meta
    openat Meta
    openat64 Meta
    __openat_2 Meta
    __openat64_2 Meta
    openat2 Meta
    creat Meta
    creat64 Meta
    mkstemp Meta
    mkstemp64 Meta
    mkostemp Meta
    mkostemp64 Meta
    mkstemps Meta
    mkstemps64 Meta
    mkostemps Meta
    mkostemps64 Meta
    close Meta
    close_range Meta
    closefrom Meta
    dup Meta
    dup2 Meta
    dup3 Meta
    fcntl Meta
    fcntl64 Meta
    lseek Meta
    lseek64 Meta
    mmap Meta
    mmap64 Meta
    msync Sync
    fsync Sync
    fdatasync Sync
    sync_file_range Sync
    syncfs Sync
    stat Meta
    stat64 Meta
    lstat Meta
    lstat64 Meta
    fstat Meta
    fstat64 Meta
    fstatat Meta
    fstatat64 Meta
    statx Meta
    __xstat Meta
    __xstat64 Meta
    __lxstat Meta
    __lxstat64 Meta
    __fxstat Meta
    __fxstat64 Meta
    __fxstatat Meta
    __fxstatat64 Meta
    access Meta
    faccessat Meta
    euidaccess Meta
    eaccess Meta
    rename Meta
    renameat Meta
    renameat2 Meta
    unlink Meta
    unlinkat Meta
    remove Meta
    mkdir Meta
    mkdirat Meta
    rmdir Meta
    link Meta
    linkat Meta
    symlink Meta
    symlinkat Meta
    truncate Meta
    truncate64 Meta
    ftruncate Meta
    ftruncate64 Meta
    fallocate Meta
    fallocate64 Meta
    posix_fallocate Meta
    posix_fallocate64 Meta
    posix_fadvise Meta
    posix_fadvise64 Meta
    readahead Meta
    opendir Meta
    fdopendir Meta
    closedir Meta
    readdir Meta
    readdir64 Meta
    readdir_r Meta
    readdir64_r Meta
    scandir Meta
    scandir64 Meta
    getdents64 Meta
    fopen Meta
    fopen64 Meta
    freopen Meta
    freopen64 Meta
    fdopen Meta
    tmpfile Meta
    tmpfile64 Meta
    fclose Meta
    fflush Sync
    fread Read
    fread_unlocked Read
    __fread_chk Read
    __fread_unlocked_chk Read
    fgets Read
    fgets_unlocked Read
    __fgets_chk Read
    __fgets_unlocked_chk Read
    fgetc Read
    getc Read
    getw Read
    ungetc Meta
    getline Read
    getdelim Read
    __getdelim Read
    fscanf Read
    vfscanf Read
    __isoc99_fscanf Read
    __isoc99_vfscanf Read
    fwrite Write
    fwrite_unlocked Write
    fputs Write
    fputs_unlocked Write
    fputc Write
    putc Write
    putw Write
    fprintf Write
    __fprintf_chk Write
    vfprintf Write
    __vfprintf_chk Write
    fseek Meta
    fseeko Meta
    fseeko64 Meta
    fsetpos Meta
    fsetpos64 Meta
    rewind Meta
    aio_read Read
    aio_read64 Read
    aio_write Write
    aio_write64 Write
    aio_fsync Sync
    aio_fsync64 Sync
    aio_return Meta
    aio_return64 Meta
    lio_listio Meta
    lio_listio64 Meta
    io_submit Meta
    io_getevents Meta
    io_pgetevents Meta
    io_uring_setup Meta
    io_uring_enter Meta
    io_uring_register Meta
    chdir Meta
    fchdir Meta
    chroot Meta
    readlink Meta
    readlinkat Meta
    dprintf Write
    vdprintf Write
    __dprintf_chk Write
    __vdprintf_chk Write
    fileno Meta
    fileno_unlocked Meta
    io_submit_read Read ["io_submit:read"]
    io_submit_write Write ["io_submit:write"]
    io_submit_sync Sync ["io_submit:sync"]
    lio_listio_read Read ["lio_listio:read"]
    lio_listio_write Write ["lio_listio:write"]
}

/// Functions that are not taken any more, as what they move is recorded where the C library moves it. They stay in the
/// list for the logs that have them.
pub const RETIRED: &[Call] = &[
    Call::fclose,
    Call::fflush,
    Call::fread,
    Call::fread_unlocked,
    Call::__fread_chk,
    Call::__fread_unlocked_chk,
    Call::fgets,
    Call::fgets_unlocked,
    Call::__fgets_chk,
    Call::__fgets_unlocked_chk,
    Call::fgetc,
    Call::getc,
    Call::getw,
    Call::ungetc,
    Call::getline,
    Call::getdelim,
    Call::__getdelim,
    Call::fscanf,
    Call::vfscanf,
    Call::__isoc99_fscanf,
    Call::__isoc99_vfscanf,
    Call::fwrite,
    Call::fwrite_unlocked,
    Call::fputs,
    Call::fputs_unlocked,
    Call::fputc,
    Call::putc,
    Call::putw,
    Call::fprintf,
    Call::__fprintf_chk,
    Call::vfprintf,
    Call::__vfprintf_chk,
    Call::fseek,
    Call::fseeko,
    Call::fseeko64,
    Call::fsetpos,
    Call::fsetpos64,
    Call::rewind,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_again_by_its_number() {
        for (number, (name, terminated, _)) in CALLS.iter().enumerate() {
            let call = Call::from_number(number).expect("numbers are dense");
            assert_eq!(call.number(), number);
            assert_eq!(call.name(), *name);
            assert_eq!(terminated.trim_end_matches('\0'), *name);
        }
        assert_eq!(Call::from_number(CALLS.len()), None);
    }
}
