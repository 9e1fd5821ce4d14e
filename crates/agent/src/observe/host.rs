//! Samples this host: CPUs, memory, pressure, control group, disks and network interfaces.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::counted::{Counters, Row, rate};
use super::proc::{
    CpuTime, Disk, Interface, parse_diskstats, parse_flat, parse_meminfo, parse_net_dev,
    parse_pressure, parse_stat,
};
use super::target::Target;

const MEMORY: [(&str, &str); 4] = [
    ("available", "MemAvailable"),
    ("cached", "Cached"),
    ("dirty", "Dirty"),
    ("writeback", "Writeback"),
];
const HOST: &str = "host";
const DEVICE_LIMITS: [&str; 2] = [
    "device_read_limit_bytes_per_s",
    "device_write_limit_bytes_per_s",
];

/// A text of the system's; empty where it cannot be read.
pub fn text(path: &str) -> String {
    std::fs::read(path)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
}

/// Nanoseconds of a clock tick.
pub fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

/// All of this host's counters at one moment.
#[derive(Debug, Clone, Default)]
struct Reading {
    t_ns: u64,
    cpus: BTreeMap<String, CpuTime>,
    pressure: Vec<(&'static str, BTreeMap<String, u64>)>,
    disks: BTreeMap<String, Disk>,
    interfaces: BTreeMap<String, Interface>,
    group: BTreeMap<String, u64>,
}

/// The host as a source.
pub struct Host {
    groups: Vec<PathBuf>,
    before: Option<Reading>,
}

impl Host {
    pub fn new() -> Self {
        let groups = group_directories(&text("/proc/self/cgroup"), &text("/proc/self/mountinfo"));
        Self {
            groups,
            before: None,
        }
    }

    /// Shares of time, rates per second, and memory in bytes.
    pub fn sample(&mut self, now_ns: u64) -> Vec<Row> {
        let now = self.read(now_ns);
        let mut rows = Vec::new();
        if let Some(before) = &self.before {
            between(before, &now, &mut rows);
        }
        let memory = parse_meminfo(&text("/proc/meminfo"));
        for (metric, key) in MEMORY {
            if let Some(value) = memory.get(key) {
                rows.push((
                    HOST,
                    "memory".to_owned(),
                    metric.to_owned(),
                    *value as f64,
                    "B",
                ));
            }
        }
        self.before = Some(now);
        rows
    }

    /// CPU time, throttling, and the target's own block device.
    pub fn count(&self, target: &Target, into: &mut Counters) {
        let cpu = parse_stat(&text("/proc/stat"))
            .get("cpu")
            .copied()
            .unwrap_or_default();
        let source = "/proc/stat, all CPUs";
        for (name, ticks) in [
            ("cpu_total_ns", cpu.total()),
            ("cpu_busy_ns", cpu.busy()),
            ("cpu_steal_ns", cpu.steal),
            ("interrupt_cpu_ns", cpu.interrupts),
        ] {
            into.know(name, ticks * tick_ns(), source);
        }
        let memory = parse_meminfo(&text("/proc/meminfo"));
        if let (Some(dirty), Some(writeback)) = (memory.get("Dirty"), memory.get("Writeback")) {
            into.know(
                "dirty_at_start_bytes",
                dirty + writeback,
                "/proc/meminfo, Dirty and Writeback",
            );
        }
        match self.group_stat().get("nr_throttled") {
            Some(count) => {
                into.know(
                    "cgroup_throttled",
                    *count,
                    "cpu.stat of this process's control group",
                );
            }
            None => into.lack(
                &["cgroup_throttled"],
                "no control group of this process counts throttling",
            ),
        }
        into.lack(
            &DEVICE_LIMITS,
            "the agent does not look for limits of devices",
        );
        let disks = parse_diskstats(&text("/proc/diskstats"));
        match target
            .device
            .as_ref()
            .and_then(|device| disks.get(device).map(|disk| (device, disk)))
        {
            Some((device, disk)) => {
                let source = format!("block device {device}, everybody's I/O");
                into.know("device_read_bytes", disk.read_bytes, source.clone());
                into.know("device_written_bytes", disk.written_bytes, source);
            }
            None => into.lack(
                &["device_read_bytes", "device_written_bytes"],
                &target.why_no_device(),
            ),
        }
    }

    fn read(&self, t_ns: u64) -> Reading {
        let pressure = ["cpu", "memory", "io"];
        let of = |kind| {
            (
                kind,
                parse_pressure(&text(&format!("/proc/pressure/{kind}"))),
            )
        };
        Reading {
            t_ns,
            cpus: parse_stat(&text("/proc/stat")),
            pressure: pressure.into_iter().map(of).collect(),
            disks: parse_diskstats(&text("/proc/diskstats")),
            interfaces: parse_net_dev(&text("/proc/net/dev")),
            group: self.group_stat(),
        }
    }

    /// The cpu.stat of the nearest control group that counts throttling.
    fn group_stat(&self) -> BTreeMap<String, u64> {
        let stats = self
            .groups
            .iter()
            .map(|group| parse_flat(&text(&group.join("cpu.stat").to_string_lossy())));
        stats
            .into_iter()
            .find(|stat| stat.contains_key("nr_throttled"))
            .unwrap_or_default()
    }
}

/// The directories of this process's CPU control group, innermost first; of version 1 where it is mounted so.
fn group_directories(cgroup: &str, mountinfo: &str) -> Vec<PathBuf> {
    let group_of = |controller: &str| {
        cgroup.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let controllers = fields.next()?;
            let path = fields.next()?;
            controllers
                .split(',')
                .any(|one| one == controller)
                .then_some(path)
        })
    };
    let mount = |kind: &str, controller: &str| {
        mountinfo.lines().find_map(|line| {
            let (head, tail) = line.split_once(" - ")?;
            let mut tail = tail.split(' ');
            let is_kind = tail.next()? == kind;
            let options = tail.nth(1).unwrap_or_default();
            let has = controller.is_empty() || options.split(',').any(|one| one == controller);
            let mut head = head.split(' ').skip(3);
            let (root, point) = (head.next()?, head.next()?);
            (is_kind && has).then_some((root, point))
        })
    };
    for (kind, controller) in [("cgroup", "cpu"), ("cgroup2", "")] {
        if let (Some(group), Some((root, point))) = (group_of(controller), mount(kind, controller))
        {
            return upwards(Path::new(point), root, group);
        }
    }
    Vec::new()
}

fn upwards(top: &Path, root: &str, group: &str) -> Vec<PathBuf> {
    let inside = group
        .strip_prefix(if root == "/" { "" } else { root })
        .unwrap_or(group);
    let here = top.join(inside.trim_start_matches('/'));
    if inside.split('/').any(|part| part == "..") || !here.is_dir() {
        return vec![top.to_owned()]; // the group lies outside this container's view
    }
    here.ancestors()
        .take_while(|one| one.starts_with(top))
        .map(Path::to_owned)
        .collect()
}

/// What happened between two readings. What never did any I/O has no row.
fn between(before: &Reading, now: &Reading, rows: &mut Vec<Row>) {
    let seconds = now.t_ns.saturating_sub(before.t_ns) as f64 / 1e9;
    if seconds <= 0.0 {
        return;
    }
    cpu_rows(before, now, rows);
    for ((kind, totals), (_, old)) in now.pressure.iter().zip(&before.pressure) {
        for (level, total) in totals {
            let share = rate(old.get(level).copied(), *total, seconds);
            if let Some(stalled_us) = share {
                let metric = format!("{kind}_{level}");
                let share = (stalled_us / 1e6).min(1.0);
                rows.push((HOST, "pressure".to_owned(), metric, share, "share"));
            }
        }
    }
    let group = [("throttled", "nr_throttled"), ("periods", "nr_periods")].map(|(metric, key)| {
        let value = now.group.get(key);
        let value = value.and_then(|now| rate(before.group.get(key).copied(), *now, seconds));
        (metric, "1/s", value)
    });
    add("cgroup", group, rows);
    for (name, new) in &now.disks {
        if let Some(old) = before.disks.get(name)
            && new.read_operations + new.write_operations > 0
        {
            disk_rows(name, old, new, seconds, rows);
        }
    }
    for (name, new) in &now.interfaces {
        if let Some(old) = before.interfaces.get(name)
            && new.received_packets + new.sent_packets > 0
        {
            interface_rows(name, old, new, seconds, rows);
        }
    }
}

/// Metric, unit, and its value where that is known.
type Metric = (&'static str, &'static str, Option<f64>);

fn add(subject: &str, metrics: impl IntoIterator<Item = Metric>, rows: &mut Vec<Row>) {
    let known = metrics.into_iter().filter_map(|(metric, unit, value)| {
        Some((HOST, subject.to_owned(), metric.to_owned(), value?, unit))
    });
    rows.extend(known);
}

fn disk_rows(name: &str, old: &Disk, new: &Disk, seconds: f64, rows: &mut Vec<Row>) {
    let of = |field: fn(&Disk) -> u64| rate(Some(field(old)), field(new), seconds);
    let busy = of(|disk| disk.busy_ms).map(|ms| (ms / 1000.0).min(1.0));
    let queue = of(|disk| disk.waited_ms).map(|ms| ms / 1000.0);
    let metrics = [
        ("read", "B/s", of(|disk| disk.read_bytes)),
        ("written", "B/s", of(|disk| disk.written_bytes)),
        ("operations_read", "1/s", of(|disk| disk.read_operations)),
        (
            "operations_written",
            "1/s",
            of(|disk| disk.write_operations),
        ),
        ("busy", "share", busy),
        ("in_flight", "count", Some(new.in_flight as f64)),
        ("queue", "count", queue),
    ];
    add(name, metrics, rows);
}

fn interface_rows(name: &str, old: &Interface, new: &Interface, seconds: f64, rows: &mut Vec<Row>) {
    let of = |field: fn(&Interface) -> u64| rate(Some(field(old)), field(new), seconds);
    let metrics = [
        ("received", "B/s", of(|one| one.received_bytes)),
        ("sent", "B/s", of(|one| one.sent_bytes)),
        ("packets_received", "1/s", of(|one| one.received_packets)),
        ("packets_sent", "1/s", of(|one| one.sent_packets)),
        (
            "errors",
            "1/s",
            of(|one| one.received_errors + one.sent_errors),
        ),
        (
            "drops",
            "1/s",
            of(|one| one.received_drops + one.sent_drops),
        ),
    ];
    add(name, metrics, rows);
}

fn cpu_rows(before: &Reading, now: &Reading, rows: &mut Vec<Row>) {
    for (name, new) in &now.cpus {
        let Some(old) = before.cpus.get(name) else {
            continue;
        };
        let Some(total) = new
            .total()
            .checked_sub(old.total())
            .filter(|total| *total > 0)
        else {
            continue;
        };
        for (kind, then, ticks) in [
            ("busy", old.busy(), new.busy()),
            ("user", old.user, new.user),
            ("system", old.system, new.system),
            ("iowait", old.iowait, new.iowait),
            ("steal", old.steal, new.steal),
        ] {
            // iowait may go backwards on an idle CPU (proc(5)): then it is not known, and has no row.
            if let Some(grown) = ticks.checked_sub(then) {
                let share = (grown as f64 / total as f64).min(1.0);
                rows.push((HOST, name.clone(), kind.to_owned(), share, "share"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reading(t_ns: u64, cpu: CpuTime, disk: Disk) -> Reading {
        Reading {
            t_ns,
            cpus: BTreeMap::from([("cpu".into(), cpu)]),
            disks: BTreeMap::from([("vda".into(), disk)]),
            pressure: vec![("io", BTreeMap::from([("some".into(), t_ns / 2000)]))],
            ..Reading::default()
        }
    }

    fn value(rows: &[Row], subject: &str, metric: &str) -> Option<f64> {
        rows.iter()
            .find(|row| row.1 == subject && row.2 == metric)
            .map(|row| row.3)
    }

    #[test]
    fn rates_and_shares_are_of_the_time_between_two_readings() {
        let cpu = |user, idle, iowait| CpuTime {
            user,
            idle,
            iowait,
            ..CpuTime::default()
        };
        let disk = |bytes, busy_ms| Disk {
            read_bytes: bytes,
            read_operations: bytes / 4096,
            busy_ms,
            in_flight: 3,
            ..Disk::default()
        };
        let before = reading(2_000_000_000, cpu(100, 100, 50), disk(4096, 100));
        let now = reading(4_000_000_000, cpu(150, 250, 40), disk(4096 * 11, 1100));
        let mut rows = Vec::new();
        between(&before, &now, &mut rows);
        assert_eq!(value(&rows, "cpu", "busy"), Some(50.0 / 190.0));
        assert_eq!(value(&rows, "cpu", "iowait"), None);
        assert_eq!(value(&rows, "vda", "read"), Some(20480.0));
        assert_eq!(value(&rows, "vda", "operations_read"), Some(5.0));
        assert_eq!(value(&rows, "vda", "busy"), Some(0.5));
        assert_eq!(value(&rows, "vda", "in_flight"), Some(3.0));
        assert_eq!(value(&rows, "pressure", "io_some"), Some(0.5));
        let mut none = Vec::new();
        between(&now, &now, &mut none);
        assert!(none.is_empty());
    }

    #[test]
    fn this_host_is_counted() {
        let mut host = Host::new();
        let target = Target::read(&json!({"access": "local", "file_system": "ext4"}));
        let mut found = Counters::default();
        host.count(&target, &mut found);
        assert!(found.values["cpu_total_ns"] >= found.values["cpu_busy_ns"]);
        assert!(found.values["cpu_busy_ns"] > Some(0));
        assert!(found.reasons["device_read_bytes"].contains("no single block device"));
        let first = host.sample(1);
        assert!(value(&first, "memory", "available").is_some_and(|bytes| bytes > 1e6));
        assert_eq!(value(&first, "cpu", "busy"), None);
    }

    #[test]
    fn a_control_group_is_looked_for_upwards_in_its_own_mount() {
        let mounts = "30 20 0:26 / /proc/self rw - cgroup2 cgroup2 rw\n";
        let found = group_directories("0::/task\n", mounts);
        assert_eq!(
            found,
            [
                PathBuf::from("/proc/self/task"),
                PathBuf::from("/proc/self")
            ]
        );
        assert_eq!(
            group_directories("0::/../x\n", mounts),
            [PathBuf::from("/proc/self")]
        );
        let old = "31 20 0:27 / /proc rw - cgroup cgroup rw,cpu,cpuacct\n";
        assert_eq!(
            group_directories("4:cpu,cpuacct:/self\n", old)[0],
            PathBuf::from("/proc/self")
        );
        assert!(group_directories("", "").is_empty());
    }
}
