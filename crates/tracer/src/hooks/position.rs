//! Calls on an open file that move no bytes between it and memory: seek, map, sync, size, advice.

use core::ffi::{c_char, c_int, c_uint, c_void};
use core::sync::atomic::Ordering::Relaxed;

use leadline_record::trace::Kind;
use leadline_record::trace::layout::{FileRecord, NOTE_MMAP};
use libc::{AT_FDCWD, off64_t, size_t, ssize_t};

use super::hook;
use crate::recording::{Made, on_descriptor, on_nothing, on_path};
use crate::{chunks, process};

#[inline(always)]
pub fn sought(made: Made, fd: c_int) {
    on_descriptor(made, fd, Kind::Meta, move |record, description| {
        record.seeks += 1;
        description.position.store(made.result as u64, Relaxed);
    });
}

/// What a program asks of mmap besides a file: where, how much, how.
pub struct Mapping {
    pub bytes: size_t,
    pub protection: c_int,
    pub flags: c_int,
}

pub fn mapped(made: Made, fd: c_int, mapping: Mapping) {
    let Mapping {
        bytes,
        protection,
        flags,
    } = mapping;
    if fd < 0 || flags & libc::MAP_ANONYMOUS != 0 {
        return;
    }
    let is_code = protection & libc::PROT_EXEC != 0 || flags & libc::MAP_DENYWRITE != 0;
    let shared = flags & libc::MAP_TYPE != libc::MAP_PRIVATE;
    on_descriptor(made, fd, Kind::Meta, move |record, _| {
        record.mmaps += 1;
        record.write_mmaps += u32::from(shared && protection & libc::PROT_WRITE != 0);
        record.mapped_bytes += if is_code { 0 } else { bytes as u64 };
    });
    if let Some(process) = process::existing() {
        process::flag(chunks::header(process), NOTE_MMAP);
    }
}

#[inline(always)]
pub fn meta(made: Made, fd: c_int, change: impl Fn(&mut FileRecord)) {
    on_descriptor(made, fd, Kind::Meta, move |record, _| change(record));
}

fn sync(made: Made, fd: c_int, change: impl Fn(&mut FileRecord)) {
    on_descriptor(made, fd, Kind::Sync, move |record, _| change(record));
}

/// posix_fallocate and posix_fadvise return the error itself.
fn returned(made: Made) -> Made {
    Made {
        result: -made.result,
        ..made
    }
}

hook! {
    fn lseek | lseek64: (fd: c_int, offset: off64_t, whence: c_int) -> off64_t, |made| sought(made, fd);
    fn mmap | mmap64: (
        address: *mut c_void, bytes: size_t, protection: c_int, flags: c_int, fd: c_int, offset: off64_t,
    ) -> *mut c_void, |made| mapped(made, fd, Mapping { bytes, protection, flags });
    fn msync: (address: *mut c_void, bytes: size_t, flags: c_int) -> c_int, |made| on_nothing(made, Kind::Sync);
    fn fsync: (fd: c_int) -> c_int, |made| sync(made, fd, |record| record.fsyncs += 1);
    fn fdatasync: (fd: c_int) -> c_int, |made| sync(made, fd, |record| record.fdsyncs += 1);
    fn syncfs: (fd: c_int) -> c_int, |made| sync(made, fd, |_| ());
    fn sync_file_range: (fd: c_int, offset: off64_t, bytes: off64_t, flags: c_uint) -> c_int,
        |made| sync(made, fd, |_| ());
    fn truncate | truncate64: (path: *const c_char, bytes: off64_t) -> c_int,
        |made| on_path(made, (AT_FDCWD, path), |record| record.truncates += 1);
    fn ftruncate | ftruncate64:
        (fd: c_int, bytes: off64_t) -> c_int, |made| meta(made, fd, |record| record.truncates += 1);
    fn fallocate | fallocate64: (fd: c_int, mode: c_int, offset: off64_t, bytes: off64_t) -> c_int,
        |made| meta(made, fd, |record| record.allocates += 1);
    fn posix_fallocate | posix_fallocate64: (fd: c_int, offset: off64_t, bytes: off64_t) -> c_int,
        |made| meta(returned(made), fd, |record| record.allocates += 1);
    fn posix_fadvise | posix_fadvise64: (fd: c_int, offset: off64_t, bytes: off64_t, advice: c_int) -> c_int,
        |made| meta(returned(made), fd, |record| record.advises += 1);
    fn readahead: (fd: c_int, offset: off64_t, bytes: size_t) -> ssize_t,
        |made| meta(made, fd, |record| record.advises += 1);
}
