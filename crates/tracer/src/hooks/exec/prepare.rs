//! An environment with the tracer in it, and a look at the program that gets it.

use core::ffi::c_char;

use leadline_record::trace::layout::PAGE_BYTES;

use super::{Strings, bytes_of};
use crate::chunks;
use crate::environment::{self, PRELOAD, Text, VARIABLES};
use crate::process::{self, lost};
use crate::sys::{self, raw};

const LIBRARY: &[u8] = b"libleadline_tracer.so";
const TEXT_BYTES: usize = 16 * PAGE_BYTES;

/// The program's environment, or a copy of it that has what it lacks of ours.
pub struct Environment {
    given: Strings,
    memory: *mut u8,
    bytes: usize,
}

impl Environment {
    /// # Safety
    /// `given` is null or an environment.
    pub unsafe fn with_tracer(given: Strings) -> Self {
        let mut plain = Self {
            given,
            memory: core::ptr::null_mut(),
            bytes: 0,
        };
        if environment::read().is_none() || is_complete(given) {
            return plain;
        }
        let Some(library) = own_library() else {
            return plain;
        };
        if !is_reachable(library) {
            // A changed root: the loader would complain into the program's output.
            if let Some(process) = process::existing() {
                process::count(chunks::header(process), lost::CHILDREN);
            }
            return plain;
        }
        let mut entries = 0;
        environment::for_each(given, |_| entries += 1);
        let table = (entries + VARIABLES.len() + 2) * size_of::<*const c_char>();
        plain.bytes = (table + TEXT_BYTES).next_multiple_of(PAGE_BYTES);
        plain.memory = sys::map_memory(plain.bytes);
        if !plain.memory.is_null() {
            // SAFETY: fresh memory of this size; the table is at its start, texts behind it.
            unsafe { plain.fill(table, library) };
        }
        plain
    }

    /// What the real function is given.
    pub fn strings(&self) -> Strings {
        if self.memory.is_null() {
            self.given
        } else {
            self.memory.cast_const().cast()
        }
    }

    unsafe fn fill(&mut self, table: usize, library: &[u8]) {
        let slots: *mut *const c_char = self.memory.cast();
        let texts = self.memory.wrapping_add(table);
        // SAFETY: the memory behind the table is ours.
        let room = unsafe { core::slice::from_raw_parts_mut(texts, self.bytes - table) };
        let mut text = Text::new(room);
        let mut used = 0;
        let mut place = |pointer: *const c_char| {
            // SAFETY: there are as many slots as entries and variables, and one for the end.
            unsafe { slots.wrapping_add(used).write(pointer) };
            used += 1;
        };
        let mut theirs: &[u8] = &[];
        for index in 0.. {
            if self.given.is_null() {
                break;
            }
            // SAFETY: an environment ends with null.
            let entry = unsafe { *self.given.wrapping_add(index) };
            if entry.is_null() {
                break;
            }
            // SAFETY: an entry of an environment is a string.
            let bytes = unsafe { bytes_of(entry) };
            if let Some(value) = bytes.strip_prefix(PRELOAD) {
                theirs = value;
            } else if !VARIABLES.iter().any(|name| bytes.starts_with(name)) {
                place(entry);
            }
        }
        for (number, name) in VARIABLES.iter().enumerate() {
            place(texts.wrapping_add(text.bytes().len()).cast());
            text.push(name);
            text.push(environment::variable(number).unwrap_or(&[]));
            text.push(b"\0");
        }
        place(texts.wrapping_add(text.bytes().len()).cast());
        text.push(PRELOAD);
        text.push(theirs);
        if !contains_library(theirs) {
            text.push(if theirs.is_empty() { b"" } else { b":" });
            text.push(library);
        }
        text.push(b"\0");
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        if !self.memory.is_null() {
            sys::unmap(self.memory, self.bytes);
        }
    }
}

fn is_complete(given: Strings) -> bool {
    let (mut preloaded, mut found) = (false, 0);
    environment::for_each(given, |entry| {
        if let Some(value) = entry.strip_prefix(PRELOAD) {
            preloaded = contains_library(value);
        }
        found += usize::from(VARIABLES.iter().any(|name| entry.starts_with(name)));
    });
    preloaded && found >= VARIABLES.len()
}

fn parts(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| matches!(byte, b':' | b' '))
}

fn contains_library(value: &[u8]) -> bool {
    parts(value).any(|part| part.ends_with(LIBRARY))
}

/// Our own path, as the loader was told it.
fn own_library() -> Option<&'static [u8]> {
    parts(environment::variable(VARIABLES.len())?).find(|part| part.ends_with(LIBRARY))
}

fn is_reachable(path: &[u8]) -> bool {
    with_terminated(path, |path| {
        raw!(SYS_faccessat, libc::AT_FDCWD, path.as_ptr(), libc::R_OK) == 0
    })
}

fn with_terminated<T: Default>(path: &[u8], call: impl FnOnce(&[u8]) -> T) -> T {
    let mut room = [0_u8; 4097];
    let mut text = Text::new(&mut room);
    text.push(path);
    text.push(b"\0");
    if text.is_whole() {
        call(text.bytes())
    } else {
        T::default()
    }
}

/// Notes a program that LD_PRELOAD has no effect on: it must not look like one without I/O.
///
/// # Safety
/// `path` is null or a string.
pub unsafe fn note_untraceable(path: *const c_char, search: bool) {
    if environment::read().is_none() {
        return;
    }
    // SAFETY: promised by the caller.
    let path = unsafe { bytes_of(path) };
    if !search || path.contains(&b'/') {
        note_file(path);
        return;
    }
    let mut value: &[u8] = b"/bin:/usr/bin";
    // SAFETY: the program's own environment.
    environment::for_each(unsafe { super::environ }, |entry| {
        if let Some(found) = entry.strip_prefix(b"PATH=") {
            // SAFETY: the environment stays as it is during the call.
            value = unsafe { core::slice::from_raw_parts(found.as_ptr(), found.len()) };
        }
    });
    for directory in value.split(|byte| *byte == b':') {
        let mut room = [0_u8; 4096];
        let mut text = Text::new(&mut room);
        text.push(directory);
        text.push(b"/");
        text.push(path);
        if text.is_whole() && note_file(text.bytes()) {
            return;
        }
    }
}

const HEAD_BYTES: usize = 4096;
const PROGRAM_INTERPRETER: u32 = 3;

/// Notes what one file is; false when there is none.
fn note_file(path: &[u8]) -> bool {
    with_terminated(path, |terminated| {
        let fd = sys::open(terminated, libc::O_RDONLY);
        if fd < 0 {
            return false;
        }
        let mut head = [0_u8; HEAD_BYTES];
        let got = raw!(SYS_pread64, fd, head.as_mut_ptr(), HEAD_BYTES, 0);
        let status = sys::status(fd as i32);
        sys::close(fd);
        let head = head.get(..usize::try_from(got).unwrap_or(0)).unwrap_or(&[]);
        if head.starts_with(b"\x7fELF") && !names_interpreter(head) {
            process::note(b"static child ", path);
        }
        let owner = raw!(SYS_geteuid) as u32;
        if status
            .is_some_and(|status| status.st_mode & libc::S_ISUID != 0 && status.st_uid != owner)
        {
            process::note(b"setuid child ", path);
        }
        true
    })
}

/// Does a 64-bit ELF file, of which this is the head, ask for the loader?
fn names_interpreter(head: &[u8]) -> bool {
    let half = |at: usize| {
        let part = head.get(at..).and_then(<[u8]>::first_chunk);
        part.map_or(0, |part| usize::from(u16::from_le_bytes(*part)))
    };
    let table = head.get(32..).and_then(<[u8]>::first_chunk);
    let table = table.map_or(0, |part| u64::from_le_bytes(*part) as usize);
    let (bytes, count) = (half(54), half(56));
    (0..count).any(|number| {
        let kind = head
            .get(table + number * bytes..)
            .and_then(<[u8]>::first_chunk);
        kind.is_some_and(|kind| u32::from_le_bytes(*kind) == PROGRAM_INTERPRETER)
    })
}
