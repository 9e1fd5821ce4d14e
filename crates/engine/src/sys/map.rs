//! Files mapped into memory, whose faults (a truncated file, an unreadable block) become errors.
//! The kernel reports them as SIGBUS, which would otherwise end the process.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::sys::file::{Advice, check};

/// Mappings at one time in the process; beyond it `MappedFile::new` says so.
const MAPPINGS_MAX: usize = 4096;

/// What the handler may know of a mapping. `length` 0 marks a free entry.
struct Entry {
    start: AtomicUsize,
    length: AtomicUsize,
    faulted: AtomicBool,
}

/// A signal handler can take no lock and reach nothing but statics.
static ENTRIES: [Entry; MAPPINGS_MAX] = [const {
    Entry {
        start: AtomicUsize::new(0),
        length: AtomicUsize::new(0),
        faulted: AtomicBool::new(false),
    }
}; MAPPINGS_MAX];
static INSTALL: Once = Once::new();
static FORMER: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);

/// A whole file, mapped shared.
#[derive(Debug)]
pub struct MappedFile {
    start: *mut u8,
    length: usize,
    entry: usize,
}

// SAFETY: the mapping is owned by this value alone; access goes through `&mut self`.
unsafe impl Send for MappedFile {}

impl MappedFile {
    /// Maps the first `length` bytes of `file`, which must be open for reading (and writing).
    pub fn new(file: &File, length: usize, write: bool) -> io::Result<Self> {
        INSTALL.call_once(install_handler);
        let protection = if write {
            libc::PROT_READ | libc::PROT_WRITE
        } else {
            libc::PROT_READ
        };
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mut mapped = Self {
            start: start.cast(),
            length,
            entry: MAPPINGS_MAX,
        };
        mapped.entry = register(start as usize, length)
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EMFILE))?;
        Ok(mapped)
    }

    /// Copies out of the file. Errors: EIO after a fault, EINVAL beyond the mapping.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8], offset: usize) -> Result<(), i32> {
        self.within(buffer.len(), offset)?;
        // SAFETY: `within` holds the range inside the mapping, and `buffer` is other memory. The file may
        // change below us, hence raw copies and no reference; a fault ends in `on_bus_error`.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.start.add(offset),
                buffer.as_mut_ptr(),
                buffer.len(),
            );
        };
        self.faulted()
    }

    /// Copies into the file. Errors as for `read`.
    #[inline]
    pub fn write(&mut self, buffer: &[u8], offset: usize) -> Result<(), i32> {
        self.within(buffer.len(), offset)?;
        // SAFETY: as in `read`, with a mapping that was made for writing.
        unsafe {
            std::ptr::copy_nonoverlapping(buffer.as_ptr(), self.start.add(offset), buffer.len());
        };
        self.faulted()
    }

    /// Writes changed pages to the file and waits; minus errno on failure.
    pub fn sync(&mut self) -> i64 {
        // SAFETY: the range is our mapping.
        match check(unsafe { libc::msync(self.start.cast(), self.length, libc::MS_SYNC) }) {
            Ok(_) => 0,
            Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
        }
    }

    /// Advice for the whole mapping; a refusal is no error.
    pub fn advise(&mut self, advice: Advice) {
        let advice = match advice {
            Advice::Random => libc::MADV_RANDOM,
            Advice::Sequential => libc::MADV_SEQUENTIAL,
            Advice::DontNeed => libc::MADV_DONTNEED,
        };
        // SAFETY: the range is our mapping; on a shared file mapping none of these changes content.
        let _ = check(unsafe { libc::madvise(self.start.cast(), self.length, advice) });
    }

    fn within(&self, length: usize, offset: usize) -> Result<(), i32> {
        match offset.checked_add(length) {
            Some(end) if end <= self.length => Ok(()),
            _ => Err(libc::EINVAL),
        }
    }

    fn faulted(&self) -> Result<(), i32> {
        if ENTRIES[self.entry].faulted.load(Ordering::Relaxed) {
            Err(libc::EIO)
        } else {
            Ok(())
        }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // The handler forgets it while its addresses are still nobody else's, and the entry is free last: another
        // thread may claim it from then on.
        let entry = ENTRIES.get(self.entry);
        if let Some(entry) = entry {
            entry.length.store(0, Ordering::Release);
        }
        // SAFETY: the mapping is ours, and nobody can use it any more.
        let _ = check(unsafe { libc::munmap(self.start.cast(), self.length) });
        if let Some(entry) = entry {
            entry.start.store(0, Ordering::Release);
        }
    }
}

fn register(start: usize, length: usize) -> Option<usize> {
    ENTRIES.iter().position(|entry| {
        // The start is claimed first; a length that is not zero publishes the entry to the handler.
        let claimed = entry
            .start
            .compare_exchange(0, start, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok();
        if claimed {
            entry.faulted.store(false, Ordering::Relaxed);
            entry.length.store(length, Ordering::Release);
        }
        claimed
    })
}

fn install_handler() {
    // SAFETY: all-zero bytes are a valid sigaction.
    let (mut action, mut former): (libc::sigaction, libc::sigaction) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
    // SAFETY: the handler uses atomics and mmap only, which are allowed there.
    unsafe { libc::sigaction(libc::SIGBUS, &action, &mut former) };
    FORMER.store(former.sa_sigaction, Ordering::Relaxed);
}

/// Puts a page of zeros where the fault was, so that the copy goes on, and marks the mapping.
/// A fault elsewhere is not ours: it gets the default action, which ends the process as before.
extern "C" fn on_bus_error(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes a valid siginfo to a handler with SA_SIGINFO.
    let address = unsafe { (*info).si_addr() } as usize;
    let page = address & !4095;
    for entry in &ENTRIES {
        let length = entry.length.load(Ordering::Acquire);
        let start = entry.start.load(Ordering::Relaxed);
        if length == 0 || address < start || address >= start + length {
            continue;
        }
        entry.faulted.store(true, Ordering::Relaxed);
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
        );
        // SAFETY: replaces one page inside our own mapping, which only raw copies access.
        let replaced =
            unsafe { libc::mmap(page as *mut libc::c_void, 4096, protection, flags, -1, 0) };
        if replaced != libc::MAP_FAILED {
            return;
        }
    }
    // SAFETY: restores an action that was valid before; the fault then happens again and is obeyed.
    unsafe { libc::signal(signal, FORMER.load(Ordering::Relaxed)) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_cut_below_a_mapping_is_an_error_not_a_crash() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 8192]).unwrap();
        let mut mapped = MappedFile::new(&file, 8192, false).unwrap();
        let mut buffer = [0; 4096];
        assert_eq!(mapped.read(&mut buffer, 4096), Ok(()));
        assert_eq!(buffer[0], 7);
        file.set_len(4096).unwrap();
        assert_eq!(mapped.read(&mut buffer, 4096), Err(libc::EIO));
    }

    #[test]
    fn beyond_the_mapping_is_refused() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 4096]).unwrap();
        let mut mapped = MappedFile::new(&file, 4096, false).unwrap();
        assert_eq!(mapped.read(&mut [0; 4096], 1), Err(libc::EINVAL));
    }
}
