//! The trial of a transfer, in the runner's hands: as one of data, and the log of acknowledgements beside.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leadline_record::{RecordError, Writer};
use serde::Serialize;
use serde_json::{Value, json};

use super::acks::{Log, Ring};
use super::job::{Transfer, TransferJob};
use crate::Interrupts;
use crate::error::EngineError;
use crate::sync::lock;
use crate::sys::clock::Clock;
use crate::sys::process::PeakMemory;
use crate::trial::Ending;
use crate::trial::context::{Context, ThreadEnd};
use crate::trial::data::{self, DataTrial};
use crate::trial::layout::{self, LaidOut};
use crate::trial::meeting::Meeting;
use crate::trial::runner::Progress;
use crate::trial::runner::{self, Crew, Runner, Terms, Trial};
use crate::trial::watch::Alarm;

/// Runs `job`, writing its record to `record_path` and its acknowledgements as it goes; returns the summary.
///
/// Errors: a record or a log that cannot be written, threads that cannot be started. Failures of the trial's own
/// requests are in the summary.
pub fn run(
    job: TransferJob,
    work: fn(&Transfers, u32),
    record_path: &Path,
    meeting: Option<&Meeting>,
    signal: Interrupts,
) -> Result<Value, EngineError> {
    let terms = Terms::accept(job.parent_pid, job.deadline_ns, meeting)?;
    let log = Log::create(job.acks.as_deref(), job.streams, job.acks_max)?;
    let memory = PeakMemory::from_here();
    let crew = TransferCrew {
        shared: Transfers::new(job),
        work,
        log: std::sync::Mutex::new(log),
        memory,
    };
    runner::run(crew, terms, record_path, signal)
}

/// Writes the files that the streams of `job` read, as those of a job of data.
pub fn lay_out(job: &TransferJob, signal: Interrupts) -> Result<LaidOut, EngineError> {
    let read = match job.transfer {
        Transfer::Write => job.streams..job.streams,
        Transfer::Read | Transfer::Duplex => job.writers()..job.streams,
    };
    layout::lay_out_some(&job.as_data(), read, signal)
}

struct TransferCrew {
    shared: Transfers,
    /// What each thread does with the job's engine.
    work: fn(&Transfers, u32),
    /// The runner's thread alone takes it.
    log: std::sync::Mutex<Log>,
    memory: PeakMemory,
}

impl Crew for TransferCrew {
    const DRAIN_AFTER_DEADLINE: Duration = data::DRAIN_AFTER_DEADLINE;

    fn job(&self) -> &impl Serialize {
        &self.shared.job
    }
    fn clock(&self) -> &Clock {
        &self.shared.context.clock
    }
    fn alarm(&self) -> &Alarm {
        &self.shared.context.alarm
    }
    fn threads(&self) -> usize {
        self.shared.job.streams as usize
    }
    fn threads_in_words(&self) -> String {
        format!("streams={}", self.shared.job.streams)
    }
    fn work(&self, thread: usize) {
        (self.work)(&self.shared, thread as u32);
    }
    fn dismiss(&self) {
        self.shared.context.start();
    }
    fn trial(&self, writer: Writer) -> impl Trial {
        TransferTrial {
            crew: self,
            data: DataTrial::new(&self.shared.context, writer),
        }
    }
}

struct TransferTrial<'a> {
    crew: &'a TransferCrew,
    data: DataTrial<'a>,
}

impl TransferTrial<'_> {
    /// What the threads met; a log that cannot be written ends the trial.
    fn take_acks(&self) {
        let taken = lock(&self.crew.log).take(self.crew.shared.rings.iter());
        self.log_was_written(taken);
    }

    fn log_was_written(&self, outcome: std::io::Result<()>) {
        if let Err(error) = outcome {
            let path = self.crew.shared.job.acks.as_deref().unwrap_or("".as_ref());
            let error = EngineError::system(&error, "write the log of acks", path);
            runner::fail_engine(self.crew.alarm(), &error.to_string());
        }
    }

    fn keys(&self) -> Value {
        let crew = self.crew;
        let rows = crew.shared.rows.iter().map(|row| lock(row).clone());
        let (acks, lost) = lock(&crew.log).counted();
        json!({
            "streams": rows.collect::<Vec<_>>(),
            "acks": acks,
            "acks_lost": lost,
            "buffers_bytes": crew.shared.job.buffers_bytes(),
            "memory_max_bytes": crew.memory.grown_bytes(),
        })
    }
}

impl Trial for TransferTrial<'_> {
    type End = ThreadEnd;

    fn work(&mut self, runner: &mut Runner) -> Result<(), RecordError> {
        runner.wait_until(self, |trial| trial.data.is_ready());
        self.data.begin(runner);
        let waited = runner.wait_for_ends(self);
        self.data.count_cpu();
        waited.map(drop)
    }

    fn ends(&self) -> Vec<Option<ThreadEnd>> {
        self.data.ends()
    }

    fn collect(&mut self) -> Result<(), RecordError> {
        self.take_acks();
        self.data.collect()
    }

    fn tell(&self, progress: &mut Progress) {
        self.data.tell(progress);
    }

    fn abandon(&self) -> Duration {
        self.data.abandon()
    }

    fn close(&mut self, runner: &Runner) -> Result<(), RecordError> {
        self.take_acks();
        let finished = lock(&self.crew.log).finish();
        self.log_was_written(finished);
        let waited = self.crew.shared.acks_waited.load(Ordering::Relaxed);
        if waited > 0 {
            self.data.note(format!(
                "{waited} acknowledgements came faster than their log could be written: streams waited for it"
            ));
        }
        self.data.close(runner)
    }

    fn finish(
        self,
        ends: &[Option<ThreadEnd>],
        ending: &Ending,
    ) -> Result<(Writer, Value), RecordError> {
        let own = self.keys();
        let (writer, mut summary) = self.data.finish(ends, ending)?;
        if let (Some(summary), Value::Object(own)) = (summary.as_object_mut(), own) {
            summary.extend(own);
        }
        Ok((writer, summary))
    }
}

/// One stream as the summary has it. Times are ns since the trial's start; `None`: it did not come to that.
#[derive(Debug, Clone, Default, Serialize)]
pub struct StreamRow {
    pub stream: u32,
    pub direction: &'static str,
    /// Acknowledged, from the start on.
    pub bytes: u64,
    pub requests: u64,
    pub first_submitted_ns: Option<u64>,
    pub last_submitted_ns: Option<u64>,
    pub last_acked_ns: Option<u64>,
    /// When the end of the sync after the last acknowledgement was met.
    pub synced_ns: Option<u64>,
    /// `None` of a thread that never came back.
    pub ended_ns: Option<u64>,
    /// In hexadecimal, of `checksum_bytes` from the file's beginning, of the last whole pass where there was one.
    pub checksum: Option<String>,
    pub checksum_bytes: u64,
    /// Spent on reading sources, on making data, and on checksums, between requests.
    pub source_wait_ns: u64,
    pub fill_ns: u64,
    pub checksum_ns: u64,
}

/// All that the threads share.
pub struct Transfers {
    pub job: TransferJob,
    pub context: Context,
    pub rings: Vec<Ring>,
    pub rows: Vec<Mutex<StreamRow>>,
    /// Times that streams waited as their acknowledgements were not taken as fast as they came.
    pub acks_waited: AtomicU64,
}

impl Transfers {
    pub fn new(job: TransferJob) -> Self {
        let row = |stream| StreamRow {
            stream,
            direction: job.direction(stream).name(),
            ..StreamRow::default()
        };
        let (streams, context) = (job.streams, Context::new(job.as_data(), None));
        Self {
            context,
            rings: (0..streams).map(|_| Ring::new(streams)).collect(),
            rows: (0..streams).map(|stream| Mutex::new(row(stream))).collect(),
            job,
            acks_waited: AtomicU64::new(0),
        }
    }
}
