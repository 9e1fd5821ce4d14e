//! Files by name: create, open, stat, list, rename, remove, each relative to an open directory.
//! Every function returns 0 or a descriptor, or minus errno.

use std::ffi::CStr;
use std::io;
use std::os::fd::RawFd;
use std::path::Path;

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

use crate::sys::file::last_errno;

/// Digits of a number in a name.
const DIGITS: usize = 10;

/// A name of fixed width, `LOOOO.NNNNNNNNNN`: a letter, the owner, a number that is counted up in place.
#[derive(Debug, Clone, Copy)]
pub struct Name {
    bytes: [u8; 17],
}

impl Name {
    /// The name of number `number` of `owner`; both are cut to their digits.
    pub fn new(letter: u8, owner: u32, number: u64) -> Self {
        let mut bytes = *b"x0000.0000000000\0";
        bytes[0] = if letter.is_ascii_alphabetic() {
            letter
        } else {
            b'x'
        };
        write_digits(&mut bytes[1..5], u64::from(owner));
        write_digits(&mut bytes[6..6 + DIGITS], number);
        Self { bytes }
    }

    /// The same with another first letter.
    pub fn with_letter(mut self, letter: u8) -> Self {
        self.bytes[0] = if letter.is_ascii_alphabetic() {
            letter
        } else {
            b'x'
        };
        self
    }

    /// Counts up by one.
    #[inline]
    pub fn advance(&mut self) {
        for digit in self.bytes[6..6 + DIGITS].iter_mut().rev() {
            if *digit < b'9' {
                *digit += 1;
                return;
            }
            *digit = b'0';
        }
    }

    /// For the kernel.
    #[inline]
    pub fn as_c_str(&self) -> &CStr {
        // SAFETY: the last byte is NUL from the start and never written; the others are letters, digits, a dot.
        unsafe { CStr::from_bytes_with_nul_unchecked(&self.bytes) }
    }
}

fn write_digits(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// A path for the kernel.
pub fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

#[inline]
fn outcome(result: libc::c_int) -> i32 {
    if result < 0 { -last_errno() } else { result }
}

/// A directory to name others relative to.
pub fn open_directory(at: RawFd, path: &CStr) -> i32 {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: `path` is NUL-terminated and outlives the call.
    outcome(unsafe { libc::openat(at, path.as_ptr(), flags) })
}

/// A new file, open for writing; EEXIST where there is one.
#[inline]
pub fn create(at: RawFd, name: &CStr) -> i32 {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    open_by_number(at, name, flags)
}

/// A file, open for reading; `direct`: past the page cache.
#[inline]
pub fn open(at: RawFd, name: &CStr, direct: bool) -> i32 {
    let direct = if direct { libc::O_DIRECT } else { 0 };
    let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_CLOEXEC | direct;
    open_by_number(at, name, flags)
}

/// By number, as `file::read_at`: libc's functions are cancellation points, which costs in a process with threads.
#[inline]
fn open_by_number(at: RawFd, name: &CStr, flags: libc::c_int) -> i32 {
    // SAFETY: `name` is NUL-terminated and outlives the call.
    let result = unsafe { libc::syscall(libc::SYS_openat, at, name.as_ptr(), flags, 0o644) };
    outcome(result as libc::c_int)
}

/// Closes a descriptor of this module. By number, as `open_by_number`.
#[inline]
pub fn close(descriptor: RawFd) -> i32 {
    // SAFETY: the caller opened it here and gives it up.
    outcome(unsafe { libc::syscall(libc::SYS_close, descriptor) } as libc::c_int)
}

/// Writes all of `data` at `offset`.
pub fn write(descriptor: RawFd, data: &[u8], offset: u64) -> i32 {
    let mut done = 0;
    while done < data.len() {
        let rest = &data[done..];
        let place = (offset + done as u64) as libc::off64_t;
        // SAFETY: pointer and length are those of `rest`.
        let count = unsafe { libc::pwrite64(descriptor, rest.as_ptr().cast(), rest.len(), place) };
        match count {
            count if count > 0 => done += count as usize,
            0 => return -libc::ENOSPC,
            _ => return -last_errno(),
        }
    }
    0
}

/// Reads from the beginning; the number of bytes.
#[inline]
pub fn read(descriptor: RawFd, buffer: &mut [u8]) -> i32 {
    // SAFETY: pointer and length are those of `buffer`.
    let count = unsafe { libc::pread64(descriptor, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    if count < 0 {
        -last_errno()
    } else {
        count as i32
    }
}

/// Drops a file's clean pages: the next read comes from below.
pub fn forget(descriptor: RawFd) {
    // SAFETY: the call touches no memory of ours.
    let _ = unsafe { libc::posix_fadvise(descriptor, 0, 0, libc::POSIX_FADV_DONTNEED) };
}

/// The file's attributes, which nobody looks at.
#[inline]
pub fn stat(at: RawFd, name: &CStr) -> i32 {
    let mut facts = std::mem::MaybeUninit::<libc::stat64>::uninit();
    // SAFETY: `name` is NUL-terminated, `facts` a writable stat64; both outlive the call.
    outcome(unsafe {
        libc::fstatat64(
            at,
            name.as_ptr(),
            facts.as_mut_ptr(),
            libc::AT_SYMLINK_NOFOLLOW,
        )
    })
}

/// Both names in the same directory.
#[inline]
pub fn rename(at: RawFd, from: &CStr, to: &CStr) -> i32 {
    // SAFETY: both names are NUL-terminated and outlive the call.
    outcome(unsafe { libc::renameat(at, from.as_ptr(), at, to.as_ptr()) })
}

/// Removes a file.
#[inline]
pub fn unlink(at: RawFd, name: &CStr) -> i32 {
    // SAFETY: `name` is NUL-terminated and outlives the call.
    outcome(unsafe { libc::unlinkat(at, name.as_ptr(), 0) })
}

/// Makes a directory.
#[inline]
pub fn make_directory(at: RawFd, name: &CStr) -> i32 {
    // SAFETY: `name` is NUL-terminated and outlives the call.
    outcome(unsafe { libc::mkdirat(at, name.as_ptr(), 0o755) })
}

/// Removes an empty directory.
#[inline]
pub fn remove_directory(at: RawFd, name: &CStr) -> i32 {
    // SAFETY: `name` is NUL-terminated and outlives the call.
    outcome(unsafe { libc::unlinkat(at, name.as_ptr(), libc::AT_REMOVEDIR) })
}

/// Opens a directory, lists it to its end, and closes it.
pub fn list(at: RawFd, name: &CStr, buffer: &mut [u8]) -> i32 {
    let descriptor = open_directory(at, name);
    if descriptor < 0 {
        return descriptor;
    }
    let mut result = 1;
    while result > 0 {
        result = entries(descriptor, buffer);
    }
    close(descriptor);
    result
}

/// Bytes of the directory's next entries, 0 at its end.
fn entries(descriptor: RawFd, buffer: &mut [u8]) -> i32 {
    // SAFETY: pointer and length are those of `buffer`, which the kernel fills.
    let count = unsafe {
        libc::syscall(
            libc::SYS_getdents64,
            descriptor,
            buffer.as_mut_ptr(),
            buffer.len(),
        )
    };
    if count < 0 {
        -last_errno()
    } else {
        count as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_counts_up_in_place() {
        let mut name = Name::new(b'f', 7, 98);
        name.advance();
        assert_eq!(name.as_c_str().to_str(), Ok("f0007.0000000099"));
        name.advance();
        assert_eq!(
            name.with_letter(b'r').as_c_str().to_str(),
            Ok("r0007.0000000100")
        );
    }

    #[test]
    fn a_refusal_is_minus_errno() {
        let name = c_path("/no/such/place".as_ref()).unwrap();
        assert_eq!(open_directory(libc::AT_FDCWD, &name), -libc::ENOENT);
    }
}
