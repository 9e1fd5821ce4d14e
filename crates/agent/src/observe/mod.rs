//! The observers: a process that samples this host and answers marks, in the JSON lines of `observe/agent.py`.
//!
//! The first line of standard input is the configuration, each later one a command. It reads /proc and /sys alone, which
//! do not hang as a target can. What it does not look at, Ceph's daemons and clients, is absent with the reason.

mod counted;
mod host;
mod network;
mod proc;
mod processes;
mod target;

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use leadline_engine::sys::clock::{monotonic_ns, unix_ns};
use leadline_engine::sys::process::{die_with_parent, process_cpu};
use serde_json::{Value, json};

use counted::{Counters, Row};
use host::Host;
use processes::{Processes, Worker};
use target::Target;

const INTERVAL_S: f64 = 1.0;
const INTERVAL_LEAST_S: f64 = 0.01;
const LINE_BYTES_MAX: u64 = 16 << 20;
const USAGE: u8 = 2;
const ROUNDS: usize = 5;
/// Everything that no source of the agent reads.
const NOT_ASKED: &str =
    "the agent reads the host alone: Ceph's daemons and clients are asked by leadline itself";

/// The time of day as it was when this began, on a clock that nobody sets.
#[derive(Clone, Copy)]
struct Clock {
    offset_ns: u64,
}

impl Clock {
    /// The shortest of some rounds counts, as the CPU can be lost between two reads.
    fn new() -> Self {
        let rounds = (0..ROUNDS).map(|_| {
            let (before, now, after) = (monotonic_ns(), unix_ns(), monotonic_ns());
            (
                after - before,
                now.saturating_sub(before + (after - before) / 2),
            )
        });
        Self {
            offset_ns: rounds.min().map_or(0, |(_, offset)| offset),
        }
    }

    fn now_ns(self) -> u64 {
        self.offset_ns + monotonic_ns()
    }
}

/// All sources of this host.
struct Observers {
    targets: BTreeMap<String, Target>,
    host: Host,
    worker: Worker,
    processes: Processes,
    due: u64,
    missed: u64,
}

impl Observers {
    fn new(config: &Value, root: i32) -> Self {
        let targets = config
            .get("targets")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        Self {
            targets: targets
                .iter()
                .map(|(name, facts)| (name.clone(), Target::read(facts)))
                .collect(),
            host: Host::new(),
            worker: Worker::default(),
            processes: Processes::new(root),
            due: 0,
            missed: 0,
        }
    }

    fn sample(&mut self, now_ns: u64) -> Vec<Row> {
        let mut rows = self.host.sample(now_ns);
        rows.extend(self.worker.sample(now_ns));
        rows
    }

    /// All counters of a target now; `None` where there is no such target.
    fn mark(&mut self, target: &str, pid: Option<i32>) -> Option<Counters> {
        let target = self.targets.get(target)?.clone();
        let interfaces = network::interfaces_of(&target);
        let mut found = Counters::default();
        self.host.count(&target, &mut found);
        self.worker.count(pid, &mut found);
        let here = network::is_here(&target, &interfaces);
        self.processes
            .count(&target, here && target.is_remote(), &mut found);
        network::count(&target, &interfaces, &mut found);
        found.know("samples_due", self.due, "the observers' own sources");
        found.know("samples_missed", self.missed, "the observers' own sources");
        found.reasons.insert("*".to_owned(), NOT_ASKED.to_owned());
        found
            .reasons
            .insert("state".to_owned(), NOT_ASKED.to_owned());
        Some(found)
    }
}

fn lock(observers: &Mutex<Observers>) -> MutexGuard<'_, Observers> {
    observers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves until told to stop, or its input ends.
pub fn observe(parent: i32) -> ExitCode {
    if die_with_parent(parent).is_err() {
        return ExitCode::FAILURE;
    }
    let clock = Clock::new();
    let config: Value = match next_line().map(|line| serde_json::from_slice(&line)) {
        Some(Ok(config)) => config,
        _ => {
            let _ = writeln!(
                std::io::stderr(),
                "the observers' configuration is not valid"
            );
            return ExitCode::from(USAGE);
        }
    };
    let interval_s = config
        .get("interval_s")
        .and_then(Value::as_f64)
        .unwrap_or(INTERVAL_S);
    let interval = Duration::from_secs_f64(interval_s.clamp(INTERVAL_LEAST_S, 3600.0));
    let observers = Arc::new(Mutex::new(Observers::new(&config, parent)));
    let sampled = Arc::clone(&observers);
    std::thread::spawn(move || sample_always(&sampled, interval, clock));
    say(json!({"kind": "ready"}));
    while let Some(line) = next_line() {
        let Ok(command) = serde_json::from_slice::<Value>(&line) else {
            continue;
        };
        if command.get("stop").and_then(Value::as_bool) == Some(true) {
            break;
        }
        say(answer(&observers, &command, clock));
    }
    say(json!({"kind": "end"}));
    ExitCode::SUCCESS
}

fn answer(observers: &Mutex<Observers>, command: &Value, clock: Clock) -> Value {
    let target = command
        .get("target")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let pid = command
        .get("pid")
        .and_then(Value::as_i64)
        .and_then(|pid| i32::try_from(pid).ok());
    let t_ns = clock.now_ns();
    let found = lock(observers).mark(target, pid).unwrap_or_else(|| {
        let mut none = Counters::default();
        none.reasons.insert(
            "*".to_owned(),
            format!("the observers know no target {target}"),
        );
        none
    });
    let (counters, sources, reasons) = found.as_json();
    json!({
        "kind": "mark", "id": command.get("mark"), "t_ns": t_ns, "counters": counters, "sources": sources,
        "reasons": reasons, "state": null,
    })
}

/// The next line; `None` at the end of input.
fn next_line() -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let mut input = std::io::Read::take(std::io::stdin().lock(), LINE_BYTES_MAX);
    let count = input.read_until(b'\n', &mut line).ok()?;
    (count > 0 && line.last() == Some(&b'\n')).then_some(line)
}

/// One line, whole; ends the process where nobody listens any more.
fn say(mut value: Value) {
    let cpu = process_cpu();
    value["cpu_ns"] = json!(cpu.user_ns + cpu.system_ns);
    let mut output = std::io::stdout().lock();
    let said = output
        .write_all(format!("{value}\n").as_bytes())
        .and_then(|()| output.flush());
    if said.is_err() {
        std::process::exit(0);
    }
}

/// A source that was late goes on from now: samples are not made up for in a burst.
fn sample_always(observers: &Mutex<Observers>, interval: Duration, clock: Clock) {
    let mut due = Instant::now();
    loop {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let now_ns = clock.now_ns();
        let rows = {
            let mut observers = lock(observers);
            let rows = observers.sample(now_ns);
            let missed = (due.elapsed().as_nanos() / interval.as_nanos().max(1)) as u64;
            observers.due += 1 + missed;
            observers.missed += missed;
            rows
        };
        if !rows.is_empty() {
            say(json!({"kind": "sample", "t_ns": now_ns, "rows": rows}));
        }
        due = (due + interval).max(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observers() -> Observers {
        let local = json!({"access": "local", "file_system": "ext4", "device": null});
        Observers::new(
            &json!({"targets": {"disk": local}}),
            std::process::id() as i32,
        )
    }

    #[test]
    fn a_mark_has_this_hosts_counters_and_says_what_it_does_not_ask() {
        let mut all = observers();
        let found = all.mark("disk", Some(std::process::id() as i32)).unwrap();
        for name in [
            "cpu_total_ns",
            "process_read_bytes",
            "own_written_bytes",
            "samples_due",
        ] {
            assert!(found.values[name].is_some(), "{name}");
        }
        assert!(found.reasons["wire_sent_bytes"].contains("no network"));
        assert!(found.reasons["*"].contains("Ceph"));
        assert!(all.mark("other", None).is_none());
    }

    #[test]
    fn an_answer_has_the_marks_form() {
        let clock = Clock::new();
        let all = Mutex::new(observers());
        let said = answer(
            &all,
            &json!({"mark": "t1-start", "target": "disk", "pid": null}),
            clock,
        );
        assert_eq!(
            (&said["kind"], &said["id"]),
            (&json!("mark"), &json!("t1-start"))
        );
        assert!(said["counters"]["cpu_busy_ns"].is_u64());
        assert!(
            said["reasons"]["process_read_bytes"]
                .as_str()
                .unwrap()
                .contains("no worker")
        );
        let none = answer(&all, &json!({"mark": "x", "target": 7}), clock);
        assert_eq!(none["counters"], json!({}));
    }

    #[test]
    fn its_clock_is_the_time_of_day_and_goes_on() {
        let clock = Clock::new();
        let first = clock.now_ns();
        assert!(first.abs_diff(unix_ns()) < 1_000_000_000);
        assert!(clock.now_ns() >= first);
    }
}
