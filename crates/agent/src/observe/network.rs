//! Network interfaces of this host towards a target's servers: their addresses, bytes, and what their links carry.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use super::counted::Counters;
use super::host::text;
use super::proc::parse_net_dev;
use super::target::Target;

pub const WIRE: [&str; 2] = ["wire_sent_bytes", "wire_received_bytes"];
const INTERFACE: [&str; 2] = ["interface_sent_bytes", "interface_received_bytes"];
const LIMIT: &str = "wire_limit_bytes_per_s";
const LOOPBACK: &str = "lo";
const MBIT_BYTES_PER_S: u64 = 1_000_000 / 8;
/// VLAN on bond on bridge.
const STACK_DEPTH_MAX: usize = 4;
/// What system firmware names of machines that are not real; "Amazon EC2" is also on real ones.
const VIRTUAL_VENDORS: [&str; 17] = [
    "QEMU",
    "VMware",
    "Microsoft",
    "Xen",
    "innotek",
    "Parallels",
    "Amazon EC2",
    "Google",
    "OpenStack",
    "Red Hat",
    "Nutanix",
    "Alibaba",
    "DigitalOcean",
    "Bochs",
    "KVM",
    "oVirt",
    "Hetzner",
];

/// The interfaces towards the servers that the mount names; none where one of them is not known.
pub fn interfaces_of(target: &Target) -> Vec<String> {
    let mut found = Vec::new();
    for address in &target.addresses {
        match address.parse().ok().and_then(interface_towards) {
            Some(name) if found.contains(&name) => {}
            Some(name) => found.push(name),
            None => return Vec::new(),
        }
    }
    found
}

/// The interface that packets to an address leave by (`lo` where it is this host's own).
fn interface_towards(address: IpAddr) -> Option<String> {
    let any: SocketAddr = if address.is_ipv6() {
        ([0_u16; 8], 0).into()
    } else {
        ([0_u8; 4], 0).into()
    };
    let probe = UdpSocket::bind(any).ok()?;
    probe.connect((address, 9)).ok()?; // sends nothing: only asks the kernel for its route
    let own = probe.local_addr().ok()?.ip();
    if own == address {
        return Some(LOOPBACK.to_owned());
    }
    by_route(own, address)
}

/// The interface with the most exact route to an address, by the kernel's tables of IPv4 and IPv6.
fn by_route(own: IpAddr, address: IpAddr) -> Option<String> {
    match (own, address) {
        (IpAddr::V4(_), IpAddr::V4(address)) => {
            route_in(&text("/proc/net/route"), u32::from(address))
        }
        (IpAddr::V6(own), _) => interface_of_own(&text("/proc/net/if_inet6"), u128::from(own)),
        _ => None,
    }
}

/// /proc/net/route: interface, destination and mask as little-endian hexadecimal words.
fn route_in(table: &str, address: u32) -> Option<String> {
    let routes = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let word = |place: usize| {
            u32::from_str_radix(fields.get(place)?, 16)
                .ok()
                .map(u32::swap_bytes)
        };
        let (destination, mask) = (word(1)?, word(7)?);
        let metric: u32 = fields.get(6)?.parse().ok()?;
        (address & mask == destination).then(|| {
            (
                mask.count_ones(),
                u32::MAX - metric,
                (*fields.first().unwrap_or(&"")).to_owned(),
            )
        })
    });
    routes.max().map(|(_, _, name)| name)
}

/// /proc/net/if_inet6: address, number, prefix, scope, flags, interface.
fn interface_of_own(table: &str, own: u128) -> Option<String> {
    table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let address = u128::from_str_radix(fields.first()?, 16).ok()?;
        (address == own)
            .then(|| fields.get(5).map(|name| (*name).to_owned()))
            .flatten()
    })
}

/// Whether the target's server is on this host.
pub fn is_here(target: &Target, interfaces: &[String]) -> bool {
    target.server_here || interfaces.iter().any(|name| name == LOOPBACK)
}

/// Bytes of the interfaces towards the target's servers, everybody's traffic, and what these carry at most.
pub fn count(target: &Target, interfaces: &[String], into: &mut Counters) {
    if !target.is_remote() {
        let why = if target.is_local() {
            "a file system of this host uses no network"
        } else {
            "no storage is used"
        };
        into.lack(&[WIRE.as_slice(), &INTERFACE, &[LIMIT]].concat(), why);
        return;
    }
    let table = parse_net_dev(&text("/proc/net/dev"));
    let known: Option<Vec<_>> = interfaces.iter().map(|name| table.get(name)).collect();
    let unknown = "the network interface towards the servers is not known";
    let Some(known) = known.filter(|known| !known.is_empty()) else {
        into.lack(&[WIRE.as_slice(), &INTERFACE, &[LIMIT]].concat(), unknown);
        return;
    };
    let sent = known.iter().map(|one| one.sent_bytes).sum();
    let received = known.iter().map(|one| one.received_bytes).sum();
    let names = interfaces.join(" and ");
    let here = interfaces.iter().any(|name| name == LOOPBACK);
    // A packet on loopback is counted as sent and as received: either figure is the sum of both directions.
    let loopback = if here {
        ", servers on this host, both directions in each figure"
    } else {
        ""
    };
    let why = "no client daemon's own count can be read";
    let source = format!("network interface {names}, everybody's traffic{loopback} ({why})");
    into.know(WIRE[0], sent, source.clone());
    into.know(WIRE[1], received, source);
    if here {
        into.lack(
            &INTERFACE,
            "servers are on this host: loopback carries what they send each other, too",
        );
    } else {
        into.know(INTERFACE[0], sent, format!("network interface {names}"));
        into.know(INTERFACE[1], received, format!("network interface {names}"));
    }
    limit(interfaces, into);
}

/// What the interfaces carry in one direction, together.
fn limit(interfaces: &[String], into: &mut Counters) {
    if is_virtual() {
        into.lack(
            &[LIMIT],
            "a virtual machine's network interface does not bind to a speed",
        );
        return;
    }
    let mut total = 0_u64;
    for name in interfaces {
        match interface_speed(name, 0) {
            Some(speed) => total += speed,
            None => {
                into.lack(
                    &[LIMIT],
                    &format!("network interface {name} has no speed of a physical link"),
                );
                return;
            }
        }
    }
    let words = format!(
        "the link of {} ({} Gbit/s)",
        interfaces.join(" and "),
        total as f64 / 125e6
    );
    into.know(LIMIT, total, words);
}

/// True where this may be a virtual machine: its links and devices are then not what they say.
fn is_virtual() -> bool {
    let cpuinfo = text("/proc/cpuinfo");
    let flags = cpuinfo
        .lines()
        .find(|line| line.starts_with("flags"))
        .unwrap_or_default();
    let vendor = text("/sys/class/dmi/id/sys_vendor");
    flags.split_whitespace().any(|flag| flag == "hypervisor")
        || VIRTUAL_VENDORS.iter().any(|name| vendor.contains(name))
}

/// Bytes per second of a physical link, or of all links below a bond, VLAN or bridge; `None`: not known.
fn interface_speed(name: &str, depth: usize) -> Option<u64> {
    let base = format!("/sys/class/net/{name}");
    let entries = std::fs::read_dir(&base).ok()?.flatten();
    let below: BTreeSet<String> = entries
        .filter_map(|entry| {
            Some(
                entry
                    .file_name()
                    .to_str()?
                    .strip_prefix("lower_")?
                    .to_owned(),
            )
        })
        .collect();
    if !below.is_empty() && depth < STACK_DEPTH_MAX {
        return below
            .iter()
            .map(|one| interface_speed(one, depth + 1))
            .sum();
    }
    let speed: u64 = text(&format!("{base}/speed")).trim().parse().ok()?;
    let physical = std::path::Path::new(&base).join("device").exists();
    (physical && speed > 0).then_some(speed * MBIT_BYTES_PER_S)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_host_of_this_one_is_reached_by_loopback() {
        let facts = json!({"access": "some", "options": ["addr=127.0.0.1"]});
        let target = Target::read(&facts);
        let names = interfaces_of(&target);
        assert_eq!(names, [LOOPBACK]);
        assert!(is_here(&target, &names));
        let mut found = Counters::default();
        count(&target, &names, &mut found);
        assert!(found.values[WIRE[0]].is_some());
        assert!(found.sources[WIRE[0]].contains("both directions"));
        assert!(found.reasons[INTERFACE[0]].contains("loopback"));
    }

    #[test]
    fn what_has_no_network_or_no_known_server_says_so() {
        for (facts, words) in [
            (json!({"access": "local"}), "uses no network"),
            (json!({"access": "null"}), "no storage"),
            (json!({"access": "some"}), "is not known"),
            (
                json!({"access": "some", "options": ["addr=name.of.a.host"]}),
                "is not known",
            ),
        ] {
            let target = Target::read(&facts);
            let mut found = Counters::default();
            count(&target, &interfaces_of(&target), &mut found);
            for name in [WIRE[0], INTERFACE[1], LIMIT] {
                assert!(
                    found.reasons[name].contains(words),
                    "{facts}: {:?}",
                    found.reasons
                );
            }
        }
    }

    #[test]
    fn the_most_exact_route_counts_and_then_the_lowest_metric() {
        let table = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
                     eth0 00000000 0100000A 0003 0 0 100 00000000 0 0 0\n\
                     ib0 0000000A 00000000 0001 0 0 50 000000FF 0 0 0\n\
                     ib1 0000000A 00000000 0001 0 0 40 000000FF 0 0 0\n\
                     broken\n";
        let of = |address: [u8; 4]| route_in(table, u32::from_be_bytes(address));
        assert_eq!(of([10, 1, 2, 3]).as_deref(), Some("ib1"));
        assert_eq!(of([192, 168, 0, 1]).as_deref(), Some("eth0"));
        let own = "fd000000000000000000000000000001 02 40 00 80 eth7\n";
        let address: std::net::Ipv6Addr = "fd00::1".parse().unwrap();
        assert_eq!(
            interface_of_own(own, address.into()).as_deref(),
            Some("eth7")
        );
    }
}
