//! `nfs://`: an NFS export without the kernel.

mod volume;

use std::sync::Arc;

use super::options::{climbs, is_timeout};
use super::{Choice, Engine, Location, Memory, Scheme, Wrong};
use crate::sys::libnfs::Libnfs;
use crate::volume::names::Operation;
pub use volume::{open_in, session};

const WORDS: &str = "an NFS export through libnfs, asynchronous, without the kernel and its cache";

pub static SCHEME: Scheme = Scheme {
    example: "nfs://server:2049/export/directory?version=4",
    package: "libnfs13",
    choices: CHOICES,
    operations: Operation::ALL,
    ack_means: "taken by the NFS server, which may store it only once it is synced",
    ack_means_direct: Some("stored by the NFS server, as it says"),
    check: |location| wrong_with(location).map_or(Ok(()), |what| Err(Wrong::Form(what))),
    describe: |location| {
        let (version, server) = (location.text("version"), &location.container);
        vec![format!("NFS version {version} of {server} through libnfs").into()]
    },
    server: |location| server(location).map(|(server, _)| server.to_owned()),
    missing: || Libnfs::get().err(),
    connect: Some(|location| Ok(Arc::new(volume::Export::connect(location)?))),
    ..Scheme::new(
        "nfs",
        WORDS,
        &[Engine {
            memory: Memory::COPIED,
            ..Engine::new("libnfs", WORDS)
        }],
    )
};

const CHOICES: &[Choice] = &[
    Choice::number("version", "4", "of the protocol: 4, or 3"),
    Choice::number(
        "uid",
        "",
        "the user's number that the server is told; empty: this process's",
    ),
    Choice::number(
        "gid",
        "",
        "the group's number that the server is told; empty: this process's",
    ),
    Choice::number(
        "nfsport",
        "",
        "the server's port, as behind its name; empty: 2049 (version 4), asked for (version 3)",
    ),
    Choice::number(
        "mountport",
        "",
        "the port of the server's mount daemon (version 3); empty: asked for",
    ),
    Choice::number(
        "timeout",
        "60",
        "seconds after which a request without an answer is an error",
    ),
];

/// The server of a container `server:port`, and the port; `None` where that is none.
fn server(location: &Location) -> Option<(&str, Option<u16>)> {
    match location.container.rsplit_once(':') {
        Some((server, port)) if !port.contains(']') => {
            Some((server, Some(port.parse().ok().filter(|port| *port > 0)?)))
        }
        _ => Some((&location.container, None)),
    }
}

fn wrong_with(location: &Location) -> Option<&'static str> {
    let port_of = |name: &str| location.number(name).is_none_or(|port| port < 65_536);
    match server(location) {
        _ if location.container.is_empty() => Some("the server is missing"),
        None => Some("the port is no number from 1 to 65535"),
        Some((server, _)) if server.contains('@') => Some("a user is given by uid="),
        Some((_, Some(_))) if !location.text("nfsport").is_empty() => {
            Some("the port is given twice")
        }
        _ if climbs(location) => Some("the path must not hold `.` or `..`"),
        _ if !matches!(location.text("version"), "3" | "4") => Some("version is 3 or 4"),
        _ if !port_of("nfsport") || !port_of("mountport") => Some("a port is at most 65535"),
        _ if !is_timeout(location.number("timeout")) => Some("timeout is from 1 to 3600 seconds"),
        _ => None,
    }
}
