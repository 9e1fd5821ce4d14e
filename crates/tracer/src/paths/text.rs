//! What a program called a file, made absolute in the thread's own memory.

use core::sync::atomic::Ordering::Acquire;

use leadline_record::trace::layout::{NOTE_CUT, PATH_BYTES_MAX};

use super::{DIRECTORY_GENERATION, of_descriptor, text_of};
use crate::machine::{STEP, copy_and_find};
use crate::sys::raw;
use crate::thread::{DIRECTORY_ROOM, PATH_ROOM, Thread};
use crate::{descriptors, process};

pub fn hash_of(text: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(FACTOR).rotate_left(29);
    let (words, rest) = text.as_chunks::<8>();
    let mut hash = mix(FACTOR, text.len() as u64);
    for word in words {
        hash = mix(hash, u64::from_le_bytes(*word));
    }
    let mut last = [0_u8; 8];
    for (into, byte) in last.iter_mut().zip(rest) {
        *into = *byte;
    }
    hash = mix(hash, u64::from_le_bytes(last));
    hash ^ (hash >> 32)
}

/// Writes the absolute path into the thread's `path`; how many bytes.
pub fn absolute(thread: &mut Thread, directory: i32, text: &[u8]) -> usize {
    let mut used = 0;
    if text.first() != Some(&b'/') {
        used = prefix(thread, directory);
    }
    if let Some(used) = append_plain(&mut thread.path, used, text) {
        return used;
    }
    let mut whole = true;
    for part in text.split(|byte| *byte == b'/') {
        if part.is_empty() || part == b"." {
            continue;
        }
        let end = used + 1 + part.len();
        match thread.path.get_mut(used..end) {
            Some(room) if end <= PATH_BYTES_MAX => {
                room[0] = b'/';
                room[1..].copy_from_slice(part);
                used = end;
            }
            _ => whole = false,
        }
    }
    if !whole {
        process::flag(thread.header(), NOTE_CUT);
    }
    if used == 0 {
        thread.path[0] = b'/';
        used = 1;
    }
    used
}

/// Appends a text that has nothing to be taken out of it and is not cut; None when it is another.
///
/// That is, each slash is before what is neither a slash nor the end, nor a dot before a slash or the end.
fn append_plain(into: &mut [u8; PATH_ROOM], used: usize, text: &[u8]) -> Option<usize> {
    let slash = usize::from(text.first() != Some(&b'/'));
    let end = used + slash + text.len();
    if text.is_empty() || end > PATH_BYTES_MAX {
        return None;
    }
    let room = into.get_mut(used..end.next_multiple_of(STEP) + 2 * STEP)?;
    room[0] = b'/';
    let room = room.get_mut(slash..)?;
    // As bits: a slash just before, and a dot after one. A text begins after a slash.
    let (mut slash_before, mut dot_before) = (slash as u32, 0);
    for (text, room) in text.chunks(STEP).zip(room.chunks_mut(STEP)) {
        let (slashes, dots) = copy_step(text, room);
        // One bit more is the end, which counts as a slash; the next step sees it as its own first byte.
        let end = u32::from(text.len() < STEP) << text.len();
        let after_slash = slashes << 1 | slash_before;
        let after_dot = (dots & after_slash) << 1 | dot_before;
        if (slashes | end) & (after_slash | after_dot) != 0 {
            return None;
        }
        (slash_before, dot_before) = (after_slash >> STEP & 1, after_dot >> STEP & 1);
    }
    // An end that falls between two steps.
    (!text.len().is_multiple_of(STEP) || slash_before | dot_before == 0).then_some(end)
}

/// Copies up to a step of bytes; where slashes and dots are among them, as bits.
#[inline(always)]
fn copy_step(text: &[u8], room: &mut [u8]) -> (u32, u32) {
    let mut bytes = [0_u8; STEP];
    let from = if text.len() == STEP {
        text.as_ptr()
    } else {
        for (byte, from) in bytes.iter_mut().zip(text) {
            *byte = *from;
        }
        bytes.as_ptr()
    };
    debug_assert!(room.len() >= STEP);
    // SAFETY: both have room for a step.
    unsafe { copy_and_find(from, room.as_mut_ptr(), *b"/.") }
}

/// The directory that a relative path begins at; without a slash at its end.
fn prefix(thread: &mut Thread, directory: i32) -> usize {
    let length = if directory == libc::AT_FDCWD {
        working_directory(thread)
    } else if let Some(file) = descriptors::file_of(thread.process(), directory) {
        let name = thread
            .process()
            .index
            .file(file)
            .map(|file| file.name.load(Acquire));
        match name.filter(|name| !name.is_null()) {
            // SAFETY: a name's head is followed by its bytes, and neither changes.
            Some(name) => copy(&mut thread.path, unsafe { text_of(name) }),
            None => 0,
        }
    } else {
        of_descriptor(&mut thread.path, directory)
    };
    if length == 1 { 0 } else { length }
}

fn copy(into: &mut [u8; PATH_ROOM], text: &[u8]) -> usize {
    let length = text.len().min(PATH_BYTES_MAX);
    if let (Some(room), Some(text)) = (into.get_mut(..length), text.get(..length)) {
        room.copy_from_slice(text);
    }
    length
}

fn working_directory(thread: &mut Thread) -> usize {
    thread.learn_directory();
    let length = thread.directory_bytes as usize;
    let (path, directory) = (&mut thread.path, &thread.directory);
    copy(path, directory.get(..length).unwrap_or(&[]))
}

impl Thread {
    /// Asks for the working directory, where it may have changed.
    pub fn learn_directory(&mut self) {
        let generation = DIRECTORY_GENERATION.load(Acquire);
        if self.directory_generation != generation {
            let got = raw!(SYS_getcwd, self.directory.as_mut_ptr(), DIRECTORY_ROOM);
            // The kernel counts the zero byte at the end.
            self.directory_bytes = (got - 1).clamp(0, DIRECTORY_ROOM as isize) as u32;
            self.directory_generation = generation;
        }
    }
}
