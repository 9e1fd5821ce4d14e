//! An environment with the tracer in it, or without it where it cannot go along.
//!
//! What the program gives is read with care: the kernel, not this, is to refuse what cannot be read.

use core::ffi::c_char;

use leadline_record::trace::layout::PAGE_BYTES;

use super::Strings;
use super::look::note_untraceable;
use crate::environment::{self, PRELOAD, Text, VARIABLES};
use crate::memory::{Reach, STRING_BYTES};
use crate::process::{self, lost};
use crate::scratch::Scratch;
use crate::{chunks, extent, sys};

const LIBRARY: &[u8] = b"libleadline_tracer.so";
/// More entries than the kernel takes, however short.
const ENTRIES_MAX: usize = 1 << 20;

/// Where a program is.
#[derive(Clone, Copy)]
pub enum Program {
    At(*const c_char),
    InPath(*const c_char),
    Unknown,
}

/// The program's environment, or a copy of it that has what it lacks of ours.
pub struct Environment {
    given: Strings,
    copy: Option<Scratch>,
    /// What the copy is made of; None for an environment that cannot be read.
    found: Option<Found>,
}

/// What an environment has.
#[derive(Clone, Copy)]
struct Found {
    entries: usize,
    variables: usize,
    /// The libraries that are preloaded by it.
    preloaded: &'static [u8],
}

impl Environment {
    pub fn with_tracer(program: Program, given: Strings) -> Self {
        let mut plain = Self {
            given,
            copy: None,
            found: None,
        };
        if environment::read().is_none() || process::is_quiet() {
            return plain;
        }
        let mut reach = Reach::new();
        note_untraceable(program, &mut reach);
        plain.found = look(&mut reach, given);
        let (Some(found), Some(library)) = (plain.found, own_library()) else {
            return plain;
        };
        let has_place = is_reachable(library, libc::R_OK) && is_reachable(directory(), libc::W_OK);
        if !has_place || !extent::is_enough() {
            // A changed root, another user: the loader would complain into the program's output.
            plain.take_out();
        } else if !found.is_complete() {
            plain.copy = copied(given, found, Some(library));
        }
        plain
    }

    /// What the real function is given.
    pub fn strings(&mut self) -> Strings {
        match &mut self.copy {
            Some(copy) => copy.room().as_ptr().cast(),
            None => self.given,
        }
    }

    /// Makes it one without the tracer, which is counted as a child that is lost; false where it has none in it.
    pub fn take_out(&mut self) -> bool {
        let Some(found) = self.found else {
            return false;
        };
        let had_any = found.variables > 0 || contains_library(found.preloaded);
        if !had_any && self.copy.is_none() && own_library().is_none() {
            return false;
        }
        let was_ours = self.copy.take().is_some();
        if had_any {
            self.copy = copied(self.given, found, None);
        }
        if let Some(process) = process::existing() {
            process::count(chunks::header(process), lost::CHILDREN);
        }
        was_ours || self.copy.is_some()
    }

    /// Without the tracer it was refused as well: no child is lost.
    pub fn was_not_needed(&self) {
        if let Some(process) = process::existing() {
            process::uncount(chunks::header(process), lost::CHILDREN);
        }
    }
}

impl Found {
    fn is_complete(self) -> bool {
        contains_library(self.preloaded) && self.variables >= kept().count()
    }
}

/// Looks through an environment; None where it cannot be read.
fn look(reach: &mut Reach, given: Strings) -> Option<Found> {
    let mut found = Found {
        entries: 0,
        variables: 0,
        preloaded: &[],
    };
    while !given.is_null() && found.entries < ENTRIES_MAX {
        let slot = given.wrapping_add(found.entries);
        if !reach.holds(slot.addr(), size_of::<*const c_char>()) {
            return None;
        }
        // SAFETY: it can be read.
        let entry = unsafe { slot.read_unaligned() };
        if entry.is_null() {
            break;
        }
        let text = reach.text(entry, STRING_BYTES)?;
        if let Some(value) = text.strip_prefix(PRELOAD) {
            found.preloaded = value;
        }
        found.variables += usize::from(is_variable(text));
        found.entries += 1;
    }
    Some(found)
}

fn is_variable(entry: &[u8]) -> bool {
    VARIABLES.iter().any(|name| entry.starts_with(name))
}

/// A copy of an environment that was looked through, with `library` preloaded or without any of ours; None where
/// there is no memory for it.
fn copied(given: Strings, found: Found, library: Option<&[u8]>) -> Option<Scratch> {
    let slots = found.entries + VARIABLES.len() + 2;
    let table = slots * size_of::<*const c_char>();
    let values: usize = kept()
        .map(|(name, value)| name.len() + value.len() + 1)
        .sum();
    let texts = values + PRELOAD.len() + found.preloaded.len() + library.map_or(0, <[u8]>::len) + 2;
    let mut scratch = Scratch::new((table + texts).next_multiple_of(PAGE_BYTES));
    let (table, texts) = scratch.room().split_at_mut_checked(table)?;
    let start = texts.as_ptr();
    let mut writer = Writer {
        slots: table.as_mut_ptr().cast(),
        used: 0,
        start,
        text: Text::new(texts),
    };
    for index in 0..found.entries {
        // SAFETY: it was looked through.
        let (entry, bytes) = unsafe {
            let entry = given.wrapping_add(index).read_unaligned();
            (entry, core::ffi::CStr::from_ptr(entry).to_bytes())
        };
        if !bytes.starts_with(PRELOAD) && !is_variable(bytes) {
            writer.place(entry);
        }
    }
    if let Some(library) = library {
        for (name, value) in kept() {
            writer.write([name, value]);
        }
        let (between, ours): (&[u8], &[u8]) = match found.preloaded {
            [] => (b"", library),
            preloaded if contains_library(preloaded) => (b"", b""),
            _ => (b":", library),
        };
        writer.write([PRELOAD, found.preloaded, between, ours]);
    } else {
        writer.write_preload_of_others(found.preloaded);
    }
    Some(scratch)
}

/// Entries of an environment, one after the other.
struct Writer<'a> {
    slots: *mut *const c_char,
    used: usize,
    start: *const u8,
    text: Text<'a>,
}

impl Writer<'_> {
    fn place(&mut self, entry: *const c_char) {
        // SAFETY: there are as many slots as entries and variables, and one for the end.
        unsafe { self.slots.wrapping_add(self.used).write(entry) };
        self.used += 1;
    }

    fn write<const COUNT: usize>(&mut self, parts: [&[u8]; COUNT]) {
        self.place(self.start.wrapping_add(self.text.bytes().len()).cast());
        for part in parts {
            self.text.push(part);
        }
        self.text.push(b"\0");
    }

    fn write_preload_of_others(&mut self, preloaded: &[u8]) {
        let theirs =
            || parts(preloaded).filter(|part| !part.ends_with(LIBRARY) && !part.is_empty());
        if theirs().next().is_none() {
            return;
        }
        self.place(self.start.wrapping_add(self.text.bytes().len()).cast());
        self.text.push(PRELOAD);
        for (number, part) in theirs().enumerate() {
            self.text.push(if number == 0 { b"" } else { b":" });
            self.text.push(part);
        }
        self.text.push(b"\0");
    }
}

/// Those of our variables that the program began with.
fn kept() -> impl Iterator<Item = (&'static [u8], &'static [u8])> {
    let all = VARIABLES.iter().enumerate();
    all.filter_map(|(number, name)| Some((*name, environment::variable(number)?)))
}

fn value(number: usize) -> &'static [u8] {
    environment::variable(number).unwrap_or(&[])
}

fn directory() -> &'static [u8] {
    value(0)
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

/// Asked for the effective user: the next program's.
fn is_reachable(path: &[u8], way: i32) -> bool {
    let mut scratch = Scratch::new(PAGE_BYTES + 1);
    let mut text = Text::new(scratch.room());
    text.push(path);
    text.push(b"\0");
    text.is_whole() && sys::is_accessible(text.bytes(), way)
}
