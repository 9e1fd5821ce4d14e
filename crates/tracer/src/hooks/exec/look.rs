//! A look at the program that is to run: one that the tracer has no effect on must not look like one without I/O.

use core::ffi::c_char;

use leadline_record::trace::layout::PAGE_BYTES;

use super::prepare::Program;
use crate::environment::{self, Text};
use crate::memory::{PATH_BYTES, Reach};
use crate::process;
use crate::scratch::Scratch;
use crate::sys::{self, raw};

/// Notes a program that LD_PRELOAD has no effect on.
pub fn note_untraceable(program: Program, reach: &mut Reach) {
    let text = |reach: &mut Reach, path: *const c_char| reach.text(path, PATH_BYTES);
    match program {
        Program::At(path) => {
            if let Some(path) = text(reach, path) {
                note(&[path]);
            }
        }
        Program::InPath(file) => {
            if let Some(file) = text(reach, file) {
                note_in_path(file);
            }
        }
        Program::Unknown => {}
    }
}

fn note_in_path(file: &[u8]) {
    if file.contains(&b'/') {
        note(&[file]);
        return;
    }
    let mut value: &[u8] = b"/bin:/usr/bin";
    // SAFETY: the program's own environment, which the C library is about to read, too.
    environment::for_each(unsafe { super::environ }, |entry| {
        if let Some(found) = entry.strip_prefix(b"PATH=") {
            // SAFETY: the environment stays as it is during the call.
            value = unsafe { core::slice::from_raw_parts(found.as_ptr(), found.len()) };
        }
    });
    for directory in value.split(|byte| *byte == b':') {
        if note(&[directory, b"/", file]) {
            return;
        }
    }
}

const PROGRAM_INTERPRETER: u32 = 3;

/// Notes what the file is whose path these are the parts of; false when there is none.
fn note(path: &[&[u8]]) -> bool {
    let mut scratch = Scratch::new(3 * PAGE_BYTES);
    let Some((head, room)) = scratch.room().split_at_mut_checked(PAGE_BYTES) else {
        return false;
    };
    let mut text = Text::new(room);
    for part in path {
        text.push(part);
    }
    text.push(b"\0");
    if !text.is_whole() {
        return false;
    }
    let Some(status) = sys::status_at(text.bytes()) else {
        return false;
    };
    let path = text.bytes();
    let path = &path[..path.len() - 1];
    // What is no file may do something when it is opened, or wait.
    let is_file = status.st_mode & libc::S_IFMT == libc::S_IFREG;
    if is_file && is_static(text.bytes(), head) {
        process::note(b"static child ", path);
    }
    let owner = raw!(SYS_geteuid) as u32;
    if is_file && status.st_mode & libc::S_ISUID != 0 && status.st_uid != owner {
        process::note(b"setuid child ", path);
    }
    true
}

fn is_static(path: &[u8], head: &mut [u8]) -> bool {
    let fd = sys::open(path, libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY);
    if fd < 0 {
        return false;
    }
    let got = raw!(SYS_pread64, fd, head.as_mut_ptr(), head.len(), 0);
    process::read_by_us(got.max(0) as usize);
    sys::close(fd);
    let head = head.get(..usize::try_from(got).unwrap_or(0)).unwrap_or(&[]);
    head.starts_with(b"\x7fELF") && !names_interpreter(head)
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
        let at = number
            .checked_mul(bytes)
            .and_then(|at| at.checked_add(table));
        let kind = at.and_then(|at| head.get(at..)?.first_chunk());
        kind.is_some_and(|kind| u32::from_le_bytes(*kind) == PROGRAM_INTERPRETER)
    })
}
