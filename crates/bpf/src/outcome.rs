//! From what the program sent to processes and files, numbered and named as the tables want them.

use std::collections::{BTreeMap, HashMap};

use leadline_record::trace::{COUNTERS, TIMES};
use serde::Serialize;

use crate::calls::{CALLS, Kind};
use crate::events::{Collected, Totals};
use crate::layout::{
    EVENT_EXEC, EVENT_EXIT, EVENT_FORK, KINDS, ProcessEvent, Row, Segment, bucket_middle_ns,
};
use crate::vocabulary::LOST;

/// A process that was followed by its number, before its exec.
#[derive(Debug, Clone, Copy)]
pub struct Root {
    pub image: u32,
    pub pid: u32,
    pub copy: i32,
    /// It ran already when it was followed, so that what it did since is its own.
    pub running: bool,
}

/// Latencies of one kind: (ns, count), and which of read, write, meta and sync it is.
#[derive(Debug)]
pub struct Latencies {
    pub kind: usize,
    pub counts: Vec<(u64, u64)>,
}

/// One process image.
#[derive(Debug, Serialize)]
pub struct Image {
    pub copy: i32,
    pub process: i32,
    pub parent: Option<i32>,
    pub pid: u32,
    pub executable: String,
    pub arguments: Vec<String>,
    pub started_ns: i64,
    pub ended_ns: Option<i64>,
    pub end: &'static str,
    pub status: Option<i32>,
    pub threads: u32,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub calls: BTreeMap<&'static str, u64>,
    pub errors: BTreeMap<&'static str, u64>,
    #[serde(skip)]
    pub seconds_ns: [u64; KINDS],
    #[serde(skip)]
    pub latencies: Vec<Latencies>,
    pub cpu_user_ns: Option<u64>,
    pub cpu_system_ns: Option<u64>,
    pub mapped: bool,
    pub faults: u64,
    /// Bytes read and written in the kernel's count beyond what was seen; None where it is not known.
    pub unseen: Option<[i64; 2]>,
    pub ring_used: bool,
    pub asynchronous_used: bool,
    /// Requests of libaio whose results no call collected.
    pub uncollected: u64,
    pub foreign: bool,
}

/// One file in one process image. Times are ns, stamps None where it never happened.
#[derive(Debug)]
pub struct FileRow {
    pub copy: i32,
    pub process: i32,
    pub file: i32,
    pub path: String,
    pub counters: [u64; COUNTERS.len()],
    pub times_ns: [Option<i64>; TIMES.len()],
}

/// One call, with the numbers of the tables.
#[derive(Debug)]
pub struct Call {
    pub copy: i32,
    pub process: i32,
    pub file: Option<i32>,
    pub segment: Segment,
}

/// Everything that a session counted.
#[derive(Debug)]
pub struct Trace {
    pub images: Vec<Image>,
    pub files: Vec<FileRow>,
    pub segments: Vec<Call>,
    pub lost: BTreeMap<&'static str, u64>,
    /// Whether requests of io_uring were seen.
    pub rings: bool,
    pub started_ns: u64,
}

/// What a trace is made of.
pub struct Sources {
    pub collected: Collected,
    pub roots: Vec<Root>,
    pub lost: [u64; LOST.len()],
    /// By image, requests of libaio whose results no call collected.
    pub uncollected: BTreeMap<u32, u64>,
    pub rings: bool,
    pub started_ns: u64,
}

/// What events tell of an image.
#[derive(Default)]
struct Known {
    pid: u32,
    copy: i32,
    parent: Option<u32>,
    started_ns: u64,
    ended_ns: Option<u64>,
    end: &'static str,
    status: Option<i32>,
    foreign: bool,
}

impl Sources {
    /// Numbers and names everything. `rows` are the program's, with their numbers.
    pub fn trace(mut self, rows: impl Iterator<Item = (u32, Row)>) -> Trace {
        let known = self.known();
        let mut order: Vec<(&u32, &Known)> = known.iter().collect();
        order.sort_by_key(|(image, known)| (known.copy, known.started_ns, **image));
        let mut numbers: HashMap<u32, (i32, i32)> = HashMap::new();
        let mut next: HashMap<i32, i32> = HashMap::new();
        for (image, known) in &order {
            let count = next.entry(known.copy).or_default();
            numbers.insert(**image, (known.copy, *count));
            *count += 1;
        }
        let images = order
            .iter()
            .map(|(image, _)| self.image(**image, &known, &numbers))
            .collect();
        let mut paths = Paths::default();
        let files = self.files(rows, &numbers, &mut paths);
        let segments = std::mem::take(&mut self.collected.segments);
        let segments = segments
            .into_iter()
            .filter_map(|segment| {
                let (copy, process) = *numbers.get(&segment.image)?;
                let file = paths.of_row.get(&segment.row).copied();
                Some(Call {
                    copy,
                    process,
                    file,
                    segment,
                })
            })
            .collect();
        Trace {
            images,
            files,
            segments,
            lost: self.losses(),
            rings: self.rings,
            started_ns: self.started_ns,
        }
    }

    fn losses(&self) -> BTreeMap<&'static str, u64> {
        let mut lost: BTreeMap<_, _> = LOST
            .into_iter()
            .zip(self.lost)
            .filter(|(_, count)| *count > 0)
            .collect();
        if self.collected.segments_dropped > 0 {
            *lost.entry("segments").or_default() += self.collected.segments_dropped;
        }
        lost
    }

    /// Images by number. Our own waiting processes are left out: what they did was not the command's.
    fn known(&self) -> BTreeMap<u32, Known> {
        let mut known: BTreeMap<u32, Known> = BTreeMap::new();
        for root in &self.roots {
            let waiting = Known {
                pid: root.pid,
                copy: root.copy,
                end: "running",
                started_ns: self.started_ns,
                ..Known::default()
            };
            known.insert(root.image, waiting);
        }
        for event in &self.collected.processes {
            match event.event {
                EVENT_FORK | EVENT_EXEC => begin(&mut known, event),
                EVENT_EXIT => end(&mut known, event),
                _ => {}
            }
        }
        for (image, totals) in &self.collected.totals {
            known.entry(*image).or_insert_with(|| Known {
                pid: totals.pid,
                started_ns: self.started_ns,
                end: "unknown",
                ..Known::default()
            });
        }
        for root in self.roots.iter().filter(|root| !root.running) {
            known.remove(&root.image);
        }
        known
    }

    fn image(
        &self,
        image: u32,
        all: &BTreeMap<u32, Known>,
        numbers: &HashMap<u32, (i32, i32)>,
    ) -> Image {
        let known = &all[&image];
        let nothing = Totals::default();
        let totals = self.collected.totals.get(&image).unwrap_or(&nothing);
        let mut calls = BTreeMap::new();
        let mut errors = BTreeMap::new();
        let mut seconds_ns = [0; KINDS];
        let (mut bytes_read, mut bytes_written) = (totals.copied_out_bytes, totals.copied_in_bytes);
        for (slot, tally) in &totals.calls {
            let Some(call) = slot.checked_sub(1).and_then(|index| CALLS.get(index)) else {
                continue;
            };
            calls.insert(call.name, tally.count);
            if tally.errors > 0 {
                errors.insert(call.name, tally.errors);
            }
            if let Some(sum) = seconds_ns.get_mut(call.kind as usize) {
                *sum += tally.time_ns;
            }
            match call.kind {
                Kind::Read => bytes_read += tally.bytes,
                Kind::Write => bytes_written += tally.bytes,
                _ => {}
            }
        }
        let parent = known.parent.and_then(|parent| numbers.get(&parent));
        let (executable, arguments) = self.names_of(image, all);
        let (user, system) = processor_time(totals, known);
        Image {
            copy: known.copy,
            process: numbers.get(&image).map_or(0, |numbers| numbers.1),
            parent: parent.map(|numbers| numbers.1),
            pid: known.pid,
            executable,
            arguments,
            started_ns: self.since_start(known.started_ns),
            ended_ns: known.ended_ns.map(|time| self.since_start(time)),
            end: known.end,
            status: known.status,
            threads: totals.threads,
            bytes_read,
            bytes_written,
            mapped: calls.contains_key("mmap"),
            faults: totals.faults,
            unseen: (totals.threads > 0 && totals.not_held == 0).then_some(totals.unseen),
            ring_used: calls.keys().any(|name| name.starts_with("io_uring")),
            asynchronous_used: calls.contains_key("io_submit"),
            uncollected: totals.uncollected
                + self.uncollected.get(&image).copied().unwrap_or_default(),
            foreign: known.foreign,
            calls,
            errors,
            seconds_ns,
            latencies: latencies(totals),
            cpu_user_ns: user,
            cpu_system_ns: system,
        }
    }

    /// The program that an image runs: its own, or after a fork without exec that of who forked it.
    fn names_of(&self, image: u32, known: &BTreeMap<u32, Known>) -> (String, Vec<String>) {
        let mut image = image;
        while !self.collected.executables.contains_key(&image) {
            match known.get(&image).and_then(|known| known.parent) {
                Some(parent) => image = parent,
                None => return (String::new(), Vec::new()),
            }
        }
        let arguments = self
            .collected
            .arguments
            .get(&image)
            .cloned()
            .unwrap_or_default();
        (self.collected.executables[&image].clone(), arguments)
    }

    fn since_start(&self, time_ns: u64) -> i64 {
        (time_ns as i64 - self.started_ns as i64).max(0)
    }

    fn files(
        &self,
        rows: impl Iterator<Item = (u32, Row)>,
        numbers: &HashMap<u32, (i32, i32)>,
        paths: &mut Paths,
    ) -> Vec<FileRow> {
        let mut files: Vec<FileRow> = Vec::new();
        let mut places: HashMap<(i32, i32, i32), usize> = HashMap::new();
        for (number, row) in rows {
            let Some(&(copy, process)) = numbers.get(&row.image) else {
                continue;
            };
            let path = self
                .collected
                .names
                .get(&number)
                .cloned()
                .unwrap_or_else(|| unnamed(&row));
            let file = paths.number(path.clone(), number);
            let found = FileRow {
                copy,
                process,
                file,
                path,
                counters: row.counters,
                times_ns: self.times(&row),
            };
            match places.get(&(copy, process, file)) {
                Some(&place) => merge(&mut files[place], &found),
                None => {
                    places.insert((copy, process, file), files.len());
                    files.push(found);
                }
            }
        }
        files
    }

    fn times(&self, row: &Row) -> [Option<i64>; TIMES.len()] {
        let mut times = [None; TIMES.len()];
        for ((time, value), name) in times.iter_mut().zip(row.times_ns).zip(TIMES) {
            *time = match (is_stamp(name), value) {
                (true, 0) => None,
                (true, _) => Some(self.since_start(value)),
                (false, _) => Some(value as i64),
            };
        }
        times
    }
}

/// Files by path, numbered in the order in which they were met.
#[derive(Default)]
struct Paths {
    numbers: HashMap<String, i32>,
    of_row: HashMap<u32, i32>,
}

impl Paths {
    fn number(&mut self, path: String, row: u32) -> i32 {
        let next = self.numbers.len() as i32;
        let number = *self.numbers.entry(path).or_insert(next);
        self.of_row.insert(row, number);
        number
    }
}

fn unnamed(row: &Row) -> String {
    format!(
        "(device {}:{} inode {})",
        row.device >> 20,
        row.device & 0xf_ffff,
        row.inode
    )
}

fn begin(known: &mut BTreeMap<u32, Known>, event: &ProcessEvent) {
    let copy = known.get(&event.before).map_or(0, |before| before.copy);
    let executed = event.event == EVENT_EXEC;
    if executed && let Some(before) = known.get_mut(&event.before) {
        (before.end, before.ended_ns) = ("exec", Some(event.time_ns));
    }
    let begun = Known {
        pid: event.pid,
        copy,
        parent: Some(event.before),
        started_ns: event.time_ns,
        end: "running",
        foreign: event.foreign != 0,
        ..Known::default()
    };
    known.insert(event.image, begun);
}

fn end(known: &mut BTreeMap<u32, Known>, event: &ProcessEvent) {
    let Some(image) = known.get_mut(&event.image) else {
        return;
    };
    image.ended_ns = Some(event.time_ns);
    let signal = event.status & 0x7f;
    (image.end, image.status) = if signal != 0 {
        ("signal", Some(signal))
    } else {
        ("exit", Some((event.status >> 8) & 0xff))
    };
}

/// The time that ran, split as the kernel's clock ticks saw it. Not known while threads still run.
fn processor_time(totals: &Totals, known: &Known) -> (Option<u64>, Option<u64>) {
    if known.end == "running" || totals.threads == 0 {
        return (None, None);
    }
    let seen = totals.user_ns + totals.system_ns;
    let user = if seen == 0 {
        totals.runtime_ns
    } else {
        (u128::from(totals.runtime_ns) * u128::from(totals.user_ns) / u128::from(seen)) as u64
    };
    (Some(user), Some(totals.runtime_ns - user))
}

fn latencies(totals: &Totals) -> Vec<Latencies> {
    let counts = |buckets: &BTreeMap<usize, u64>| {
        buckets
            .iter()
            .map(|(bucket, count)| (bucket_middle_ns(*bucket), *count))
            .collect()
    };
    let kinds = totals
        .histograms
        .iter()
        .enumerate()
        .filter(|(_, buckets)| !buckets.is_empty());
    kinds
        .map(|(kind, buckets)| Latencies {
            kind,
            counts: counts(buckets),
        })
        .collect()
}

fn is_stamp(name: &str) -> bool {
    name.ends_with("_TIMESTAMP")
}

/// A file that was met again under its name, after it was replaced.
fn merge(into: &mut FileRow, more: &FileRow) {
    for ((sum, value), name) in into.counters.iter_mut().zip(more.counters).zip(COUNTERS) {
        *sum = if name.starts_with("MAX_") || name == "FILE_ALIGNMENT" {
            (*sum).max(value)
        } else {
            *sum + value
        };
    }
    for ((sum, value), name) in into.times_ns.iter_mut().zip(more.times_ns).zip(TIMES) {
        *sum = match (*sum, value) {
            (Some(one), Some(other)) if name.ends_with("START_TIMESTAMP") => Some(one.min(other)),
            (Some(one), Some(other)) if is_stamp(name) || name.contains("_MAX_") => {
                Some(one.max(other))
            }
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
    }
}
