//! Memory that the program points to. What is not there makes a call of its fail with EFAULT, never the program:
//! where the kernel has not just read it, it is asked first.

use core::ffi::c_char;

use leadline_record::trace::layout::PAGE_BYTES;

use crate::sys;

/// The longest path that the kernel takes, its zero byte included.
pub const PATH_BYTES: usize = 4096;
/// As for one argument of a program.
pub const STRING_BYTES: usize = 32 * PAGE_BYTES;

/// What can be read, as the kernel said lately: good for the length of one call.
pub struct Reach {
    pages: [usize; 4],
    oldest: usize,
}

impl Reach {
    pub const fn new() -> Self {
        Self {
            pages: [0; 4],
            oldest: 0,
        }
    }

    /// Can these bytes be read?
    pub fn holds(&mut self, address: usize, bytes: usize) -> bool {
        let Some(last) = address.checked_add(bytes.saturating_sub(1)) else {
            return false;
        };
        (address / PAGE_BYTES..=last / PAGE_BYTES).all(|page| self.holds_page(page))
    }

    fn holds_page(&mut self, page: usize) -> bool {
        if page == 0 {
            return false;
        }
        if !self.pages.contains(&page) {
            if !sys::is_readable(page * PAGE_BYTES) {
                return false;
            }
            self.pages[self.oldest] = page;
            self.oldest = (self.oldest + 1) % self.pages.len();
        }
        true
    }

    /// A string without its end, None where it cannot be read or does not end within `most` bytes.
    pub fn text<'a>(&mut self, from: *const c_char, most: usize) -> Option<&'a [u8]> {
        let (start, mut length) = (from.addr(), 0);
        while length < most {
            let at = start.checked_add(length)?;
            if !self.holds_page(at / PAGE_BYTES) {
                return None;
            }
            let room = (PAGE_BYTES - at % PAGE_BYTES).min(most - length);
            // SAFETY: the kernel has just read from this page.
            let part = unsafe {
                core::slice::from_raw_parts(from.cast::<u8>().wrapping_add(length), room)
            };
            if let Some(end) = part.iter().position(|byte| *byte == 0) {
                // SAFETY: all pages up to the end were found readable.
                return Some(unsafe { core::slice::from_raw_parts(from.cast(), length + end) });
            }
            length += room;
        }
        None
    }
}

/// Can a path be read that a call has failed with?
pub fn is_path(path: *const c_char) -> bool {
    Reach::new().text(path, PATH_BYTES).is_some()
}

/// Has a call written its answer over the string that it was asked with?
///
/// # Safety
/// The call has succeeded, so it has read the string.
pub unsafe fn is_overwritten(text: *const c_char, answer: *const c_char, bytes: usize) -> bool {
    let (text_at, answer_at) = (text.addr(), answer.addr());
    if text_at >= answer_at {
        return text_at - answer_at < bytes;
    }
    let before = (answer_at - text_at).min(PATH_BYTES);
    // SAFETY: up to its end the string is as the kernel has read it; without an end it goes on into the answer.
    bytes > 0 && (0..before).all(|at| unsafe { text.wrapping_add(at).read() } != 0)
}
