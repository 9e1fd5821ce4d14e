//! Takes what the program sends while it runs, and sums what threads did by process image.

use std::collections::{BTreeMap, HashMap};

use aya::maps::{MapData, RingBuf};

use crate::layout::{
    EVENT_ARGUMENTS, EVENT_EXEC, EVENT_EXIT, EVENT_FORK, EVENT_NAME, EVENT_PATH, EVENT_THREAD,
    KINDS, PATH_BYTES, ProcessEvent, Segment, Tally, TextEvent, Thread, take,
};

/// What all threads of one image did so far.
#[derive(Debug, Default)]
pub struct Totals {
    pub pid: u32,
    pub threads: u32,
    pub runtime_ns: u64,
    pub user_ns: u64,
    pub system_ns: u64,
    pub copied_in_bytes: u64,
    pub copied_out_bytes: u64,
    pub faults: u64,
    pub uncollected: u64,
    /// Bytes read and written that the kernel counted and no call of those seen moved; of threads that say.
    pub unseen: [i64; 2],
    /// Threads that do not.
    pub not_held: u32,
    pub calls: BTreeMap<usize, Tally>,
    pub histograms: [BTreeMap<usize, u64>; KINDS],
}

impl Totals {
    /// Adds one thread's counts.
    pub fn add(&mut self, thread: &Thread) {
        self.pid = thread.tgid;
        self.threads += 1;
        self.runtime_ns += thread.runtime_ns;
        self.user_ns += thread.user_ns;
        self.system_ns += thread.system_ns;
        self.copied_in_bytes += thread.copied_in_bytes;
        self.copied_out_bytes += thread.copied_out_bytes;
        self.faults += thread.faults;
        self.uncollected += thread.uncollected;
        self.not_held += u32::from(thread.is_held == 0);
        for (side, sum) in self.unseen.iter_mut().enumerate() {
            let beyond = thread.kernel_bytes[side].wrapping_sub(thread.seen_bytes[side]);
            *sum = sum.wrapping_add(beyond as i64);
        }
        for (slot, tally) in thread
            .calls
            .iter()
            .enumerate()
            .filter(|(_, tally)| tally.count > 0)
        {
            let sum = self.calls.entry(slot).or_default();
            sum.count += tally.count;
            sum.errors += tally.errors;
            sum.bytes += tally.bytes;
            sum.time_ns += tally.time_ns;
        }
        for (sum, buckets) in self.histograms.iter_mut().zip(&thread.histograms) {
            for (bucket, count) in buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
                *sum.entry(bucket).or_default() += count;
            }
        }
    }
}

/// Everything that was sent.
#[derive(Debug, Default)]
pub struct Collected {
    pub processes: Vec<ProcessEvent>,
    pub totals: HashMap<u32, Totals>,
    pub names: HashMap<u32, String>,
    pub executables: HashMap<u32, String>,
    pub arguments: HashMap<u32, Vec<String>>,
    pub segments: Vec<Segment>,
    pub segments_dropped: u64,
    pub segments_max: usize,
}

impl Collected {
    /// Takes all that waits in both rings.
    pub fn drain(&mut self, events: &mut RingBuf<MapData>, segments: &mut RingBuf<MapData>) {
        while let Some(event) = events.next() {
            self.take_event(&event);
        }
        while let Some(segment) = segments.next() {
            match take::<Segment>(&segment) {
                Some(segment) if self.segments.len() < self.segments_max => {
                    self.segments.push(segment)
                }
                _ => self.segments_dropped += 1,
            }
        }
    }

    fn take_event(&mut self, bytes: &[u8]) {
        match take::<u32>(bytes) {
            Some(EVENT_THREAD) => {
                if let Some(thread) = take::<Thread>(bytes) {
                    self.totals.entry(thread.image).or_default().add(&thread);
                }
            }
            Some(EVENT_FORK | EVENT_EXEC | EVENT_EXIT) => {
                self.processes.extend(take::<ProcessEvent>(bytes))
            }
            Some(EVENT_NAME) => self.take_name(bytes),
            Some(EVENT_PATH) => self.take_path(bytes),
            Some(EVENT_ARGUMENTS) => self.take_arguments(bytes),
            _ => {}
        }
    }

    fn take_name(&mut self, bytes: &[u8]) {
        let Some((head, text)) = text_of(bytes) else {
            return;
        };
        let name = if text.is_empty() {
            "(a path that could not be read)".to_owned()
        } else {
            path(text)
        };
        let names = if head.flag != 0 {
            &mut self.executables
        } else {
            &mut self.names
        };
        names.insert(head.number, name);
    }

    fn take_path(&mut self, bytes: &[u8]) {
        let Some((head, given, names)) = path_of(bytes) else {
            return;
        };
        let given = parts(given).next().unwrap_or_default();
        self.names
            .insert(head.number, absolute(&path(names), &readable(given)));
    }

    fn take_arguments(&mut self, bytes: &[u8]) {
        let Some((head, text)) = text_of(bytes) else {
            return;
        };
        let mut words: Vec<String> = parts(text).map(readable).collect();
        if head.flag != 0 {
            words.push("…".into());
        }
        self.arguments.insert(head.number, words);
    }
}

fn text_of(bytes: &[u8]) -> Option<(TextEvent, &[u8])> {
    let head: TextEvent = take(bytes)?;
    let text = bytes
        .get(size_of::<TextEvent>()..)?
        .get(..head.bytes as usize)?;
    Some((head, text))
}

fn path_of(bytes: &[u8]) -> Option<(TextEvent, &[u8], &[u8])> {
    let head: TextEvent = take(bytes)?;
    let (given, names) = bytes
        .get(size_of::<TextEvent>()..)?
        .split_at_checked(PATH_BYTES)?;
    Some((head, given, names.get(..head.bytes as usize)?))
}

/// A path from the directory it starts at, without `.` and `..`. Symbolic links stay as they were given.
fn absolute(directory: &str, given: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in directory.split('/').chain(given.split('/')) {
        match name {
            "" | "." => {}
            ".." => _ = names.pop(),
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

/// Pieces that end with a zero each; the last may lack it.
fn parts(text: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    text.strip_suffix(b"\0")
        .unwrap_or(text)
        .split(|byte| *byte == 0)
}

/// Names from the file up to the root, as a path from the root.
fn path(text: &[u8]) -> String {
    if text.is_empty() {
        return "/".into();
    }
    parts(text)
        .rev()
        .map(|part| format!("/{}", readable(part)))
        .collect()
}

/// Bytes that are no UTF-8 as backslash escapes.
fn readable(bytes: &[u8]) -> String {
    let mut words = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        words.push_str(chunk.valid());
        for byte in chunk.invalid() {
            words.push_str(&format!("\\x{byte:02x}"));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_from_its_end() {
        assert_eq!(path(b"file\0directory\0mnt\0"), "/mnt/directory/file");
    }

    #[test]
    fn a_path_of_a_program_starts_where_the_program_was() {
        assert_eq!(absolute("/home/a", "../b/./c"), "/home/b/c");
        assert_eq!(absolute("/", "/etc/passwd"), "/etc/passwd");
    }

    #[test]
    fn bytes_that_are_no_text_are_escaped() {
        assert_eq!(readable(b"a\xffb"), "a\\xffb");
    }

    #[test]
    fn events_that_are_cut_are_passed_over() {
        let mut collected = Collected::default();
        for bytes in [
            &b""[..],
            &[1, 0, 0, 0],
            &[1, 0, 0, 0, 7, 0, 0, 0, 200, 0, 0, 0, 0, 0, 0, 0, 65],
        ] {
            collected.take_event(bytes);
        }
        assert!(collected.names.is_empty());
    }
}
