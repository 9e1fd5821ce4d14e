//! `smb://`: a share of an SMB server.

mod volume;

use std::sync::Arc;

use super::options::{first, wrong_climb, wrong_timeout};
use super::{Choice, Engine, Memory, Scheme, Wrong};
use crate::sys::smb::Libsmbclient;
use crate::volume::names::Operation;

const WORDS: &str = "a share of an SMB server through libsmbclient: a connection and a thread for each operation in flight";

pub static SCHEME: Scheme = Scheme {
    example: "smb://user@host:445/share/directory?credentials=/etc/smb-credentials",
    package: "libsmbclient",
    choices: CHOICES,
    operations: Operation::ALL,
    syncs: false,
    ack_means: "taken by the SMB server, which need not have stored it",
    check: |location| {
        let host = location.user_and_host().1;
        let known = matches!(location.text("encrypt"), "yes" | "no");
        first([
            host.is_empty()
                .then_some(Wrong::Form("the host is missing")),
            location
                .path
                .is_empty()
                .then_some(Wrong::Form("the share is missing")),
            wrong_climb(location),
            (!known).then_some(Wrong::Value("encrypt must be yes or no")),
            wrong_timeout(location.number("timeout")),
        ])
    },
    describe: |location| {
        let (user, server) = location.user_and_host();
        let who = match (user, location.text("credentials")) {
            ("", "") => "guest",
            ("", _) => "its credentials",
            (user, _) => user,
        };
        vec![format!("SMB through libsmbclient, {server} as {who}").into()]
    },
    missing: || Libsmbclient::get().err(),
    connect: Some(|location| Ok(Arc::new(volume::Share::connect(location)?))),
    ..Scheme::new(
        "smb",
        WORDS,
        &[Engine {
            memory: Memory::COPIED,
            ..Engine::new("libsmbclient", WORDS)
        }],
    )
};

const CHOICES: &[Choice] = &[
    Choice::text(
        "credentials",
        "",
        "a file with username=, password= and domain= lines; empty: LEADLINE_SMB_PASSWORD has the password",
    ),
    Choice::text("domain", "", "the user's domain or workgroup"),
    Choice::text(
        "protocol",
        "",
        "the highest dialect, for example SMB2_10 or SMB3_11; empty: the library's highest",
    ),
    Choice::text("encrypt", "no", "yes: nothing goes over the wire in clear"),
    Choice::number(
        "timeout",
        "20",
        "seconds that a request waits for its answer",
    ),
    Choice::text("smb_conf", "", "a smb.conf to follow; empty: none is read"),
];
