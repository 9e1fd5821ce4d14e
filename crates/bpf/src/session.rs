//! From the first process that is followed to the counts of all: load, follow, finish.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use aya::Ebpf;
use aya::maps::{Array, HashMap, Map, MapData, RingBuf};

use crate::events::Collected;
use crate::layout::{Asked, AskedKey, Row, Segment, Thread};
use crate::loader::{self, Limits};
use crate::outcome::{Root, Sources, Trace};
use crate::support::BpfError;
use crate::vocabulary::LOST;

/// Numbers of images below this are given to the processes that `follow` names, those above by the program.
const ROOTS_MAX: u32 = 4096;
const TOTAL_IMAGES: u32 = LOST.len() as u32;
const TOTAL_ROWS: u32 = TOTAL_IMAGES + 1;
/// How long events may wait. At the highest rates seen the rings hold a second of them.
const READ_EVERY: Duration = Duration::from_millis(5);

/// What a session may use.
#[derive(Debug, Clone)]
pub struct Options {
    /// Most bytes of segments to keep; None keeps none.
    pub segments_bytes: Option<u64>,
    pub memory_bytes: u64,
    pub kernel_types: PathBuf,
}

impl Options {
    pub fn new(segments_bytes: Option<u64>, memory_bytes: u64) -> Self {
        Self {
            segments_bytes,
            memory_bytes,
            kernel_types: crate::support::KERNEL_TYPES.into(),
        }
    }
}

/// The attached tracer. Dropping it detaches it.
pub struct Session {
    program: Option<Ebpf>,
    rings: bool,
    limits: Limits,
    threads: HashMap<MapData, u32, Thread>,
    graves: HashMap<MapData, u64, Thread>,
    asked: HashMap<MapData, AskedKey, Asked>,
    rows: Array<MapData, Row>,
    totals: Array<MapData, u64>,
    roots: Vec<Root>,
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<Collected>>,
}

impl Session {
    /// Loads and attaches the tracer; nothing is followed yet.
    pub fn start(options: &Options) -> Result<Self, BpfError> {
        if let Some(why) = crate::support::unavailable(&options.kernel_types) {
            return Err(why);
        }
        let limits = Limits::of(options.memory_bytes, options.segments_bytes);
        let loader::Loaded { mut program, rings } = loader::load(&options.kernel_types, &limits)?;
        let events = RingBuf::try_from(take(&mut program, "events")?).map_err(unusable)?;
        let segments = RingBuf::try_from(take(&mut program, "segments")?).map_err(unusable)?;
        let mut totals: Array<_, u64> =
            Array::try_from(take(&mut program, "totals")?).map_err(unusable)?;
        totals
            .set(TOTAL_IMAGES, u64::from(ROOTS_MAX), 0)
            .map_err(unusable)?;
        let collected = Collected {
            segments_max: (options.segments_bytes.unwrap_or(0) / size_of::<Segment>() as u64)
                as usize,
            ..Collected::default()
        };
        let stop = Arc::new(AtomicBool::new(false));
        let mut session = Self {
            threads: HashMap::try_from(take(&mut program, "threads")?).map_err(unusable)?,
            graves: HashMap::try_from(take(&mut program, "graves")?).map_err(unusable)?,
            asked: HashMap::try_from(take(&mut program, "asked")?).map_err(unusable)?,
            rows: Array::try_from(take(&mut program, "rows")?).map_err(unusable)?,
            totals,
            program: Some(program),
            rings,
            limits,
            roots: Vec::new(),
            stop: Arc::clone(&stop),
            reader: None,
        };
        session.reader = Some(std::thread::spawn(move || {
            read(events, segments, collected, &stop)
        }));
        Ok(session)
    }

    /// Follows a process that waits before its exec, and all its descendants.
    pub fn follow(&mut self, pid: u32, copy: i32) -> Result<(), BpfError> {
        let image = self.next_root()?;
        self.insert(pid, &Thread::waiting(image, pid))?;
        self.roots.push(Root {
            image,
            pid,
            copy,
            running: false,
        });
        Ok(())
    }

    /// Follows a process that runs already, with its threads, and all that it starts from now on. False where
    /// it has ended meanwhile. Its CPU time is not known: the counts begin in the middle of its life.
    pub fn attach(&mut self, pid: u32) -> Result<bool, BpfError> {
        let image = self.next_root()?;
        let mut seen = BTreeSet::new();
        // A thread that starts while the list is read is met in the next round, or followed from its parent.
        loop {
            let new: Vec<u32> = tasks(pid).filter(|tid| !seen.contains(tid)).collect();
            if new.is_empty() {
                break;
            }
            for tid in new {
                self.insert(tid, &Thread::running(image, pid, tid))?;
                seen.insert(tid);
            }
        }
        if seen.is_empty() {
            return Ok(false);
        }
        self.roots.push(Root {
            image,
            pid,
            copy: 0,
            running: true,
        });
        Ok(true)
    }

    fn next_root(&self) -> Result<u32, BpfError> {
        let image = self.roots.len() as u32 + 1;
        if image >= ROOTS_MAX {
            return Err(BpfError::new(
                "more than 4,095 processes to follow",
                "follow fewer of them",
            ));
        }
        Ok(image)
    }

    fn insert(&mut self, tid: u32, thread: &Thread) -> Result<(), BpfError> {
        self.threads
            .insert(tid, thread, 0)
            .map_err(|error| BpfError::failed(&format!("process {tid} cannot be followed"), &error))
    }

    /// Detaches, and gives what was counted. Times count from `started_monotonic_ns`.
    pub fn finish(mut self, started_monotonic_ns: u64) -> Result<Trace, BpfError> {
        drop(self.program.take());
        self.stop.store(true, Ordering::Release);
        let reader = self.reader.take();
        let mut collected = reader
            .and_then(|reader| reader.join().ok())
            .ok_or_else(|| {
                BpfError::new("the reader of the tracer's events failed", "report this")
            })?;
        for (_, thread) in self.graves.iter().flatten() {
            collected
                .totals
                .entry(thread.image)
                .or_default()
                .add(&thread);
        }
        for (_, mut thread) in self.threads.iter().flatten() {
            // What it ran so far is not known: these hold where it began.
            (
                thread.runtime_ns,
                thread.user_ns,
                thread.system_ns,
                thread.faults,
            ) = (0, 0, 0, 0);
            thread.is_held = 0;
            collected
                .totals
                .entry(thread.image)
                .or_default()
                .add(&thread);
        }
        let mut lost = [0; LOST.len()];
        for (index, count) in lost.iter_mut().enumerate() {
            *count = self.totals.get(&(index as u32), 0).map_err(unusable)?;
        }
        let mut uncollected: BTreeMap<u32, u64> = BTreeMap::new();
        for (_, request) in self.asked.iter().flatten() {
            *uncollected.entry(request.image).or_default() += 1;
        }
        let used = self.totals.get(&TOTAL_ROWS, 0).map_err(unusable)?;
        let last = used.min(u64::from(self.limits.rows) - 1) as u32;
        let rows = (1..=last).filter_map(|number| Some((number, self.rows.get(&number, 0).ok()?)));
        let sources = Sources {
            collected,
            roots: std::mem::take(&mut self.roots),
            lost,
            uncollected,
            rings: self.rings,
            started_ns: started_monotonic_ns,
        };
        Ok(sources.trace(rows.filter(|(_, row)| row.image != 0)))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.program.take());
        self.stop.store(true, Ordering::Release);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// The threads of a process, none where it has ended.
fn tasks(pid: u32) -> impl Iterator<Item = u32> {
    std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn take(program: &mut Ebpf, name: &str) -> Result<Map, BpfError> {
    program.take_map(name).ok_or_else(|| {
        BpfError::new(
            format!("the tracer's program has no map {name}"),
            "report this",
        )
    })
}

fn unusable(error: aya::maps::MapError) -> BpfError {
    BpfError::failed("a map of the tracer cannot be used", &error)
}

fn read(
    mut events: RingBuf<MapData>,
    mut segments: RingBuf<MapData>,
    mut collected: Collected,
    stop: &AtomicBool,
) -> Collected {
    loop {
        let last = stop.load(Ordering::Acquire);
        collected.drain(&mut events, &mut segments);
        if last {
            return collected;
        }
        std::thread::sleep(READ_EVERY);
    }
}
