//! `root://`: files of an XRootD server.

mod volume;

use std::sync::Arc;

use super::options::{first, wrong_climb, wrong_timeout};
use super::{Choice, Engine, Scheme, ThirdParty, Wrong};
use crate::sys::xrootd::Xrootd;
use crate::volume::names::Operation;
pub use volume::Server;

const WORDS: &str =
    "files of an XRootD server through its own client, asynchronous, with vector reads";

pub static SCHEME: Scheme = Scheme {
    example: "root://host:1094//directory?timeout=60",
    package: "libxrdcl3",
    choices: CHOICES,
    operations: Operation::ALL,
    ack_means: "taken by the XRootD server, which has handed it to its own storage",
    third_party: Some(ThirdParty {
        copy: &["xrdcp", "--tpc", "only", "--nopbar", "--force"],
        size: &["xrdfs", "{server}", "stat", "{path}"],
        package: "xrootd-client",
        needs: "`ofs.tpc` in the configuration of both, and files of its own where a copy goes: not XrdCeph",
    }),
    check: |location| {
        let host = location.user_and_host().1;
        let within = |name: &str, most| {
            let number = location.number(name);
            number.is_some_and(|number| (1..=most).contains(&number))
        };
        first([
            host.is_empty()
                .then_some(Wrong::Form("the host is missing")),
            location
                .path
                .contains(['?', '&'])
                .then_some(Wrong::Form("the path must not hold `?` or `&`")),
            wrong_climb(location),
            (!within("streams", 16)).then_some(Wrong::Value("streams is from 1 to 16")),
            (!within("readv", 1024)).then_some(Wrong::Value("readv is from 1 to 1024")),
            wrong_timeout(location.number("timeout")),
            wrong_timeout(location.number("connect_timeout")),
        ])
    },
    describe: |location| {
        let vectors = match location.text("readv") {
            "1" => String::new(),
            most => format!(", vector reads of up to {most}"),
        };
        vec![format!("XRootD through its client, {}{vectors}", location.container).into()]
    },
    missing: || Xrootd::get().err(),
    connect: Some(|location| Ok(Arc::new(volume::Server::connect(location)?))),
    ..Scheme::new("root", WORDS, &[Engine::new("xrootd", WORDS)])
};

const CHOICES: &[Choice] = &[
    Choice::number(
        "timeout",
        "60",
        "seconds that a request waits for its answer",
    ),
    Choice::number(
        "connect_timeout",
        "10",
        "seconds that a connection may take",
    ),
    Choice::number(
        "streams",
        "1",
        "TCP connections to the server, from 1 to 16",
    ),
    Choice::number(
        "readv",
        "1",
        "reads handed over together that go as one vector read; 1: none do, 1024 at most",
    ),
];
