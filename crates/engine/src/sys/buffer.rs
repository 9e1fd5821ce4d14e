//! Page-aligned memory for I/O, touched before use: the first touch of a page costs more than many an I/O.

use std::io;
use std::ops::Range;

use crate::sys::file::check;

/// Alignment and granularity of all buffers: enough for O_DIRECT on any common device.
pub const ALIGNMENT_BYTES: usize = 4096;

/// One anonymous mapping, zeroed and resident.
#[derive(Debug)]
pub struct AlignedBuffer {
    start: *mut u8,
    length: usize,
}

// SAFETY: the mapping is owned by this value alone, and access follows the borrow of `self`.
unsafe impl Send for AlignedBuffer {}

impl AlignedBuffer {
    /// `length` bytes, rounded up to whole pages.
    ///
    /// Huge pages are not asked for: blocks in these are merged into larger requests, so that a device answers
    /// them quicker than those of any program that has its memory from malloc, and than fio's.
    pub fn new(length: usize) -> io::Result<Self> {
        let length = length.max(1).next_multiple_of(ALIGNMENT_BYTES);
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: a new anonymous mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mut buffer = Self {
            start: start.cast(),
            length,
        };
        buffer.touch();
        Ok(buffer)
    }

    fn touch(&mut self) {
        for page in (0..self.length).step_by(ALIGNMENT_BYTES) {
            // SAFETY: `page` is below `length`, inside our mapping; volatile so that it is not elided.
            unsafe { self.start.add(page).write_volatile(0) };
        }
    }

    /// The whole memory.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is `length` bytes, initialised (zeroed), and borrowed through `self`.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }

    /// A part of it. Nothing else is claimed: the kernel, or a library, may be writing beside it.
    #[inline]
    pub fn part_mut(&mut self, part: Range<usize>) -> &mut [u8] {
        assert!(
            part.start <= part.end && part.end <= self.length,
            "a part beyond the buffer"
        );
        // SAFETY: the part lies in the mapping, which is initialised (zeroed), and is borrowed through `self`.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(part.start), part.len()) }
    }

    /// The first byte, for engines that hand the memory to the kernel.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start
    }

    /// Bytes in all.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Never: a buffer has at least one page.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody can borrow it any more.
        let _ = check(unsafe { libc::munmap(self.start.cast(), self.length) });
    }
}

/// Has the CPU fetch the first line of `bytes` while it goes on.
#[inline(always)]
pub fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint: it reads nothing that the program sees, and faults at no address.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_zeroed_and_whole_pages() {
        let mut buffer = AlignedBuffer::new(5000).unwrap();
        assert_eq!(buffer.len(), 8192);
        assert_eq!(buffer.as_ptr() as usize % ALIGNMENT_BYTES, 0);
        assert!(buffer.as_mut_slice().iter().all(|byte| *byte == 0));
    }
}
