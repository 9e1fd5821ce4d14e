//! Processes of this host: the worker's I/O and CPU time, and whose CPU time is whose.

use std::collections::{BTreeMap, BTreeSet};

use super::counted::{Counters, Row, rate};
use super::host::{text, tick_ns};
use super::proc::{TaskStat, parse_flat, parse_task_stat};
use super::target::Target;
use leadline_engine::schemes::Storage;

const PROCESS: &str = "process";
const WORKER: [(&str, &str); 2] = [
    ("process_read_bytes", "read_bytes"),
    ("process_written_bytes", "write_bytes"),
];
const OWN: [(&str, &str); 2] = [
    ("own_read_bytes", "read_bytes"),
    ("own_written_bytes", "write_bytes"),
];
const EXPLAINED: &str = "explained_cpu_ns";
const BUSIEST: &str = "busiest_other";
/// On a cluster whose daemons run on this host, what they use is the target's own work.
const CEPH_DAEMONS: [&str; 5] = ["ceph-osd", "ceph-mon", "ceph-mgr", "ceph-mds", "ceph-fuse"];
/// A process of this host serves these block devices.
const SERVED_DEVICES: [&str; 2] = ["nbd", "ublk"];

fn stat_of(pid: i32) -> Option<TaskStat> {
    parse_task_stat(&text(&format!("/proc/{pid}/stat")))
}

/// The worker of the trial that runs, from the mark on that named it.
#[derive(Default)]
pub struct Worker {
    pid: Option<i32>,
    before: Option<(u64, u64, BTreeMap<String, u64>)>,
}

impl Worker {
    /// CPU (shares of one core), memory, and bytes to and from storage.
    pub fn sample(&mut self, now_ns: u64) -> Vec<Row> {
        let Some((pid, stat)) = self.pid.and_then(|pid| Some((pid, stat_of(pid)?))) else {
            self.before = None;
            return Vec::new();
        };
        let io = parse_flat(&text(&format!("/proc/{pid}/io")));
        let mut rows = Vec::new();
        let mut add = |metric: &str, value: f64, unit| {
            rows.push((PROCESS, "worker".to_owned(), metric.to_owned(), value, unit));
        };
        let page = rustix::param::page_size() as u64;
        add("resident", (stat.resident_pages * page) as f64, "B");
        if let Some((then_ns, ticks, old)) = &self.before {
            let seconds = now_ns.saturating_sub(*then_ns) as f64 / 1e9;
            if let Some(ticks) = rate(Some(*ticks), stat.cpu_ticks, seconds) {
                add("cpu", ticks * tick_ns() as f64 / 1e9, "cores");
            }
            for (metric, key) in [("read", "read_bytes"), ("written", "write_bytes")] {
                let now = io.get(key).copied();
                if let Some(value) = now.and_then(|now| rate(old.get(key).copied(), now, seconds)) {
                    add(metric, value, "B/s");
                }
            }
        }
        self.before = Some((now_ns, stat.cpu_ticks, io));
        rows
    }

    /// The worker's storage I/O; a client daemon's CPU time is not looked at.
    pub fn count(&mut self, pid: Option<i32>, into: &mut Counters) {
        into.lack(
            &["client_cpu_ns"],
            "the agent does not look for client daemons",
        );
        let names = WORKER.map(|(name, _)| name);
        let Some(pid) = pid else {
            into.lack(&names, "no worker process was named");
            return;
        };
        if self.pid != Some(pid) {
            (self.pid, self.before) = (Some(pid), None);
        }
        let path = format!("/proc/{pid}/io");
        match std::fs::read_to_string(&path) {
            Ok(found) => {
                let amounts = parse_flat(&found);
                for (name, key) in WORKER {
                    match amounts.get(key) {
                        Some(value) => into.know(name, *value, path.clone()),
                        None => into.lack(&[name], &format!("{path} has no {key}")),
                    }
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                into.lack(&names, &format!("process {pid} has ended"));
            }
            Err(error) => into.lack(&names, &format!("{path}: {error}")),
        }
    }
}

type Table = BTreeMap<i32, TaskStat>;

fn read_table() -> Table {
    let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = names.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some((pid, stat_of(pid)?))).collect()
}

/// A process and all that it started.
fn below(table: &Table, root: i32) -> BTreeSet<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (pid, stat) in table {
        children.entry(stat.parent).or_default().push(*pid);
    }
    let mut found = BTreeSet::new();
    let mut waiting = vec![root];
    while let Some(pid) = waiting.pop() {
        if table.contains_key(&pid) && found.insert(pid) {
            waiting.extend(children.get(&pid).into_iter().flatten());
        }
    }
    found
}

/// CPU time that is explained: the run's own, the kernel's own threads', daemons' of the target. It only grows: what a
/// process that ended since the last look had used is not taken back.
#[derive(Default)]
struct Account {
    seen: BTreeMap<i32, (u64, u64)>,
    others: BTreeMap<i32, (u64, u64)>,
    own_ticks: u64,
    ticks: u64,
}

impl Account {
    fn add(
        &mut self,
        table: &Table,
        own: &BTreeSet<i32>,
        is_targets: &dyn Fn(&TaskStat) -> bool,
    ) -> u64 {
        let used = |pid: &i32| {
            table
                .get(pid)
                .map_or(0, |stat| stat.cpu_ticks + stat.children_ticks)
        };
        let own_ticks: u64 = own.iter().map(used).sum();
        // A child that is reaped hands its time on to its parent, so that the sum only grows.
        self.ticks += own_ticks.saturating_sub(self.own_ticks);
        self.own_ticks = own_ticks.max(self.own_ticks);
        let first = self.seen.is_empty();
        let mut seen = BTreeMap::new();
        for (pid, stat) in table {
            if own.contains(pid) || !(stat.is_kernel || is_targets(stat)) {
                continue;
            }
            let before = match self.seen.get(pid) {
                Some((started, ticks)) if *started == stat.started_ticks => *ticks,
                None if first => stat.cpu_ticks,
                _ => 0,
            };
            self.ticks += stat.cpu_ticks.saturating_sub(before);
            seen.insert(*pid, (stat.started_ticks, stat.cpu_ticks));
        }
        self.seen = seen;
        self.ticks
    }

    /// The process of somebody else that used most since the last look.
    fn busiest(
        &mut self,
        table: &Table,
        own: &BTreeSet<i32>,
        is_targets: &dyn Fn(&TaskStat) -> bool,
    ) -> Option<String> {
        let first = self.others.is_empty();
        let mut others = BTreeMap::new();
        let mut most = (0, 0);
        for (pid, stat) in table {
            if own.contains(pid) || stat.is_kernel || is_targets(stat) {
                continue;
            }
            let ticks = stat.cpu_ticks + stat.children_ticks;
            let before = match self.others.get(pid) {
                Some((started, ticks)) if *started == stat.started_ticks => *ticks,
                None if first => ticks,
                _ => 0,
            };
            most = most.max((ticks.saturating_sub(before), *pid));
            others.insert(*pid, (stat.started_ticks, ticks));
        }
        self.others = others;
        let (ticks, pid) = most;
        let name = &table.get(&pid)?.name;
        (ticks > 0).then(|| format!("{} (process {pid})", name.escape_debug()))
    }
}

/// All processes of this host as a source of marks; `root` is the run's first process here.
pub struct Processes {
    root: i32,
    /// By whether daemons of a cluster count.
    accounts: BTreeMap<bool, Account>,
}

impl Processes {
    pub fn new(root: i32) -> Self {
        Self {
            root,
            accounts: BTreeMap::new(),
        }
    }

    /// CPU time that is accounted for, and the run's own bytes to and from storage.
    pub fn count(&mut self, target: &Target, server_is_here: bool, into: &mut Counters) {
        let table = read_table();
        let own = below(&table, self.root);
        count_own(&own, into);
        let clustered = matches!(target.storage, Storage::Cluster | Storage::Server);
        let is_targets = |stat: &TaskStat| clustered && CEPH_DAEMONS.contains(&stat.name.as_str());
        let account = self.accounts.entry(clustered).or_default();
        let ticks = account.add(&table, &own, &is_targets);
        let busiest = account.busiest(&table, &own, &is_targets);
        if let Some(why) = why_unknown(target, server_is_here, &table, &own) {
            into.lack(&[EXPLAINED], why);
            return;
        }
        let daemons = if clustered { ", daemons of Ceph" } else { "" };
        into.know(
            EXPLAINED,
            ticks * tick_ns(),
            format!("/proc: this run, kernel threads{daemons}"),
        );
        if let Some(busiest) = busiest {
            into.sources.insert(BUSIEST.to_owned(), busiest);
        }
    }
}

fn why_unknown(
    target: &Target,
    server_is_here: bool,
    table: &Table,
    own: &BTreeSet<i32>,
) -> Option<&'static str> {
    let device = target.device.as_deref().unwrap_or_default();
    if own.is_empty() {
        return Some("the run's own processes are not to be seen in /proc");
    }
    if !table.values().any(|stat| stat.is_kernel) {
        return Some(
            "this container does not see the kernel's threads, which work for the target too",
        );
    }
    if target.is_local() && target.file_system.starts_with("fuse") {
        return Some("the daemon of this FUSE file system works for the target, and is not known");
    }
    if SERVED_DEVICES.iter().any(|name| device.starts_with(name)) {
        return Some("the daemon behind the target's device works for it, and is not known");
    }
    server_is_here
        .then_some("the target's server runs on this host, and its processes are not known")
}

fn count_own(own: &BTreeSet<i32>, into: &mut Counters) {
    let mut totals = [0_u64; OWN.len()];
    for pid in own {
        match std::fs::read_to_string(format!("/proc/{pid}/io")) {
            Ok(found) => {
                let amounts = parse_flat(&found);
                for (total, (_, key)) in totals.iter_mut().zip(OWN) {
                    *total += amounts.get(key).copied().unwrap_or(0);
                }
            }
            // It ended meanwhile; its parent's figure has its bytes.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)) => {}
            Err(error) => {
                into.lack(
                    &OWN.map(|(name, _)| name),
                    &format!("/proc/{pid}/io: {error}"),
                );
                return;
            }
        }
    }
    for (total, (name, _)) in totals.into_iter().zip(OWN) {
        into.know(name, total, "/proc/PID/io of all processes of this run");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn stat(name: &str, parent: i32, cpu_ticks: u64) -> TaskStat {
        TaskStat {
            name: name.into(),
            parent,
            cpu_ticks,
            ..TaskStat::default()
        }
    }

    #[test]
    fn a_tree_is_a_process_and_all_that_it_started() {
        let table = Table::from([
            (1, stat("init", 0, 0)),
            (5, stat("agent", 1, 0)),
            (6, stat("worker", 5, 0)),
            (7, stat("deep", 6, 0)),
            (8, stat("other", 1, 0)),
        ]);
        assert_eq!(below(&table, 5), BTreeSet::from([5, 6, 7]));
        assert!(below(&table, 99).is_empty());
    }

    #[test]
    fn an_account_counts_what_grew_and_keeps_what_ended() {
        let mut account = Account::default();
        let kernel = |ticks| TaskStat {
            is_kernel: true,
            ..stat("kworker", 2, ticks)
        };
        let own = BTreeSet::from([5]);
        let nobody = |_: &TaskStat| false;
        let first = Table::from([
            (5, stat("agent", 1, 10)),
            (9, kernel(1000)),
            (8, stat("other", 1, 70)),
        ]);
        let began = account.add(&first, &own, &nobody);
        assert_eq!(account.busiest(&first, &own, &nobody), None);
        let then = Table::from([
            (5, stat("agent", 1, 30)),
            (9, kernel(1004)),
            (8, stat("other", 1, 75)),
        ]);
        assert_eq!(account.add(&then, &own, &nobody) - began, 24);
        assert_eq!(
            account.busiest(&then, &own, &nobody).as_deref(),
            Some("other (process 8)")
        );
        let gone = Table::from([(5, stat("agent", 1, 30))]);
        assert_eq!(account.add(&gone, &own, &nobody) - began, 24);
    }

    #[test]
    fn daemons_of_the_target_are_explained_and_not_the_busiest() {
        let mut account = Account::default();
        let daemons = |stat: &TaskStat| stat.name == "ceph-osd";
        let own = BTreeSet::new();
        let at = |ticks| Table::from([(3, stat("ceph-osd", 1, ticks))]);
        let began = account.add(&at(100), &own, &daemons);
        account.busiest(&at(100), &own, &daemons);
        assert_eq!(account.add(&at(160), &own, &daemons) - began, 60);
        assert_eq!(account.busiest(&at(160), &own, &daemons), None);
    }

    #[test]
    fn this_process_is_the_worker_and_the_run() {
        let pid = std::process::id() as i32;
        let mut worker = Worker::default();
        let mut found = Counters::default();
        worker.count(Some(pid), &mut found);
        assert!(found.values["process_read_bytes"].is_some());
        let rows = worker.sample(1);
        assert!(rows.iter().any(|row| row.2 == "resident" && row.3 > 1e5));
        let mut processes = Processes::new(pid);
        let target = Target::read(&json!({"access": "local", "file_system": "fuse.x"}));
        processes.count(&target, false, &mut found);
        assert!(found.values["own_read_bytes"].is_some());
        assert!(
            found.reasons[EXPLAINED].contains("FUSE")
                || found.reasons[EXPLAINED].contains("container")
        );
        worker.count(Some(-5), &mut found);
        let mut absent = Counters::default();
        worker.count(Some(i32::MAX), &mut absent);
        assert!(absent.reasons["process_read_bytes"].contains("has ended"));
    }
}
