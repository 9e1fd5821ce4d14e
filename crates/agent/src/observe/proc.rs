//! The kernel's counters under /proc, from text to numbers. All only grow, unless said; what is not there is left out.

use std::collections::BTreeMap;

/// Whatever the device's own sector is (kernel: Documentation/admin-guide/iostats.rst).
const SECTOR_BYTES: u64 = 512;
/// A thread of the kernel itself (kernel: include/linux/sched.h).
const PF_KTHREAD: u64 = 0x0020_0000;

/// One CPU's time by kind, in clock ticks. `user` has nice and guests, `system` has interrupts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    pub user: u64,
    pub system: u64,
    pub idle: u64,
    pub iowait: u64,
    pub steal: u64,
    pub interrupts: u64,
}

impl CpuTime {
    pub fn total(&self) -> u64 {
        self.busy() + self.idle + self.iowait + self.steal
    }

    /// Ticks in which this machine's own code ran.
    pub fn busy(&self) -> u64 {
        self.user + self.system
    }
}

fn numbers<'a>(fields: impl Iterator<Item = &'a str>) -> Option<Vec<u64>> {
    fields.map(|field| field.parse().ok()).collect()
}

/// /proc/stat: `cpu` (all), `cpu0`, `cpu1`…
pub fn parse_stat(text: &str) -> BTreeMap<String, CpuTime> {
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let mut fields = line.split_whitespace();
        let Some(name) = fields.next().filter(|name| name.starts_with("cpu")) else {
            break;
        };
        let Some(mut ticks) = numbers(fields.take(8)) else {
            continue;
        };
        ticks.resize(8, 0);
        let time = CpuTime {
            user: ticks[0] + ticks[1],
            system: ticks[2] + ticks[5] + ticks[6],
            idle: ticks[3],
            iowait: ticks[4],
            steal: ticks[7],
            interrupts: ticks[5] + ticks[6],
        };
        found.insert(name.to_owned(), time);
    }
    found
}

/// A block device's I/O. `in_flight` is a gauge, `waited_ms` the sum over requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Disk {
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub read_operations: u64,
    pub write_operations: u64,
    pub busy_ms: u64,
    pub in_flight: u64,
    pub waited_ms: u64,
}

/// /proc/diskstats by device name.
pub fn parse_diskstats(text: &str) -> BTreeMap<String, Disk> {
    let disk = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let values = numbers(fields.get(3..14)?.iter().copied())?;
        let disk = Disk {
            read_bytes: values[2].saturating_mul(SECTOR_BYTES),
            written_bytes: values[6].saturating_mul(SECTOR_BYTES),
            read_operations: values[0],
            write_operations: values[4],
            busy_ms: values[9],
            in_flight: values[8],
            waited_ms: values[10],
        };
        Some((fields[2].to_owned(), disk))
    };
    text.lines().filter_map(disk).collect()
}

/// A network interface's traffic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Interface {
    pub received_bytes: u64,
    pub received_packets: u64,
    pub received_errors: u64,
    pub received_drops: u64,
    pub sent_bytes: u64,
    pub sent_packets: u64,
    pub sent_errors: u64,
    pub sent_drops: u64,
}

/// /proc/net/dev by interface name.
pub fn parse_net_dev(text: &str) -> BTreeMap<String, Interface> {
    let interface = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        let values = numbers(rest.split_whitespace())?;
        let [rb, rp, re, rd, _, _, _, _, sb, sp, se, sd, ..] = values.as_slice() else {
            return None;
        };
        let interface = Interface {
            received_bytes: *rb,
            received_packets: *rp,
            received_errors: *re,
            received_drops: *rd,
            sent_bytes: *sb,
            sent_packets: *sp,
            sent_errors: *se,
            sent_drops: *sd,
        };
        Some((name.trim().to_owned(), interface))
    };
    text.lines().filter_map(interface).collect()
}

/// A file of /proc/pressure: `some` and `full`, microseconds stalled.
pub fn parse_pressure(text: &str) -> BTreeMap<String, u64> {
    let line = |line: &str| {
        let mut fields = line.split_whitespace();
        let kind = fields.next()?.to_owned();
        let total = fields.find_map(|field| field.strip_prefix("total="))?;
        Some((kind, total.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// /proc/meminfo in bytes; counts (HugePages) stay counts.
pub fn parse_meminfo(text: &str) -> BTreeMap<String, u64> {
    let line = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        let mut words = rest.split_whitespace();
        let value: u64 = words.next()?.parse().ok()?;
        let scale = if words.next() == Some("kB") { 1024 } else { 1 };
        Some((name.to_owned(), value.saturating_mul(scale)))
    };
    text.lines().filter_map(line).collect()
}

/// `name value` or `name: value` lines, as in cpu.stat and /proc/PID/io.
pub fn parse_flat(text: &str) -> BTreeMap<String, u64> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, value) = (words.next()?, words.next()?);
        let name = name.strip_suffix(':').unwrap_or(name);
        words.next().is_none().then_some(())?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// A process. `resident_pages` is a gauge; `started_ticks` counts from boot; `children_ticks` is the CPU time of children
/// that ended and were waited for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskStat {
    pub name: String,
    pub cpu_ticks: u64,
    pub resident_pages: u64,
    pub started_ticks: u64,
    pub parent: i32,
    pub children_ticks: u64,
    pub is_kernel: bool,
}

/// /proc/PID/stat; the name may hold spaces and parentheses.
pub fn parse_task_stat(text: &str) -> Option<TaskStat> {
    let (head, tail) = text.rsplit_once(')')?;
    let fields: Vec<&str> = tail.split_whitespace().collect();
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    let signed = |place: usize| fields.get(place)?.parse::<i64>().ok();
    Some(TaskStat {
        name: head.split_once('(')?.1.to_owned(),
        cpu_ticks: number(11)? + number(12)?,
        resident_pages: number(21)?,
        started_ticks: number(19)?,
        parent: i32::try_from(signed(1)?).ok()?,
        children_ticks: (signed(13)? + signed(14)?).max(0) as u64,
        is_kernel: number(6)? & PF_KTHREAD != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cpu_time_has_interrupts_in_system_and_nice_in_user() {
        let text = "cpu  10 1 20 300 5 2 3 4 0 0\ncpu0 1 0 2\nintr 5\ncpu9 1 1 1 1\n";
        let found = parse_stat(text);
        let all = found["cpu"];
        assert_eq!(
            (all.user, all.system, all.interrupts, all.steal),
            (11, 25, 5, 4)
        );
        assert_eq!((all.busy(), all.total()), (36, 345));
        assert_eq!(found["cpu0"].total(), 3);
        assert!(!found.contains_key("cpu9"));
    }

    #[test]
    fn a_disk_counts_sectors_of_512_bytes() {
        let text = " 254 0 vda 10 1 8 4 20 2 16 6 3 70 80 0 0 0 0 0 0\n 1 2 short 1\n";
        let found = parse_diskstats(text);
        let disk = found["vda"];
        assert_eq!((disk.read_bytes, disk.written_bytes), (4096, 8192));
        assert_eq!((disk.read_operations, disk.write_operations), (10, 20));
        assert_eq!((disk.busy_ms, disk.in_flight, disk.waited_ms), (70, 3, 80));
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn an_interface_has_both_directions() {
        let text = "Inter-| Receive\n eth0: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n";
        let found = parse_net_dev(text)["eth0"];
        assert_eq!((found.received_bytes, found.received_drops), (1, 4));
        assert_eq!(
            (found.sent_bytes, found.sent_packets, found.sent_drops),
            (5, 6, 8)
        );
    }

    #[test]
    fn lines_of_names_and_values() {
        assert_eq!(
            parse_flat("a: 1\nb 2\nc x\nd 1 2\n"),
            BTreeMap::from([("a".into(), 1), ("b".into(), 2)])
        );
        assert_eq!(
            parse_meminfo("MemTotal:  2 kB\nHugePages_Total: 3\n")["MemTotal"],
            2048
        );
        let pressure = parse_pressure("some avg10=0.00 total=7\nfull avg10=0.00 total=3\n");
        assert_eq!(
            pressure,
            BTreeMap::from([("some".into(), 7), ("full".into(), 3)])
        );
    }

    #[test]
    fn a_process_may_have_any_name() {
        let rest = "S 7 1 1 0 -1 2097152 0 0 0 0 30 12 5 -1 20 0 1 0 99 4096 123 0 0";
        let found = parse_task_stat(&format!("42 (a) b (c) {rest}")).unwrap();
        assert_eq!((found.name.as_str(), found.parent), ("a) b (c", 7));
        assert_eq!(
            (found.cpu_ticks, found.children_ticks, found.started_ticks),
            (42, 4, 99)
        );
        assert_eq!((found.resident_pages, found.is_kernel), (123, true));
        assert!(parse_task_stat("42 (a) S 1").is_none());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_left_out(text in "[ -~\n]{0,400}") {
            parse_stat(&text);
            parse_diskstats(&text);
            parse_net_dev(&text);
            parse_pressure(&text);
            parse_meminfo(&text);
            parse_flat(&text);
            parse_task_stat(&text);
        }
    }
}
