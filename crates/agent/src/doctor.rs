//! Shows what this host has for leadline: its kernel, the engines and libraries, and what would be in the way.

use std::io::Write;
use std::process::ExitCode;

use leadline_engine::schemes::{self, Capability};
use rustix::fs::StatVfsMountFlags;
use rustix::process::Resource;
use serde_json::{Value, json};

use crate::{host, trace};

const RING: &str = "io_uring";
/// A ring's buffers and queues of an ordinary trial; from Linux 5.12 on they do not count as locked memory.
const LOCKED_LEAST_BYTES: u64 = 1 << 20;

/// All engines, and whether this host can run them.
pub fn engines() -> Vec<Value> {
    let plain = |one: &Capability| {
        json!({
            "name": one.name, "blocking": one.blocking, "schemes": one.schemes,
            "available": one.available, "reason": one.reason, "words": one.words,
        })
    };
    schemes::capabilities().iter().map(plain).collect()
}

/// What is known, as one object.
pub fn facts() -> Value {
    let mut found = host::identity();
    let locked = rustix::process::getrlimit(Resource::Memlock).current;
    let place = std::env::temp_dir();
    let mounted = rustix::fs::statvfs(&place).map(|found| found.f_flag).ok();
    found["leadline"] = host::VERSION.into();
    found["engines"] = Value::Array(engines());
    found["memory_lock_bytes"] = json!(locked);
    found["temporary_directory"] = json!(place.to_string_lossy());
    found["temporary_noexec"] =
        json!(mounted.map(|flags| flags.contains(StatVfsMountFlags::NOEXEC)));
    found["tracer"] = json!(trace::is_there());
    found
}

/// Prints it, for people or as JSON.
pub fn doctor(as_json: bool) -> ExitCode {
    let found = facts();
    let text = if as_json {
        format!("{found}\n")
    } else {
        words(&found)
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn words(found: &Value) -> String {
    let text = |key: &str| found[key].as_str().unwrap_or("not known").to_owned();
    let mut lines = vec![
        format!("leadline-agent {}", text("leadline")),
        format!(
            "host       {}, {}, kernel {}, {}",
            text("node"),
            text("machine"),
            text("kernel"),
            text("libc")
        ),
    ];
    let engines = found["engines"].as_array().cloned().unwrap_or_default();
    for engine in &engines {
        let name = engine["name"].as_str().unwrap_or_default();
        let state = match engine["reason"].as_str() {
            None => "available".to_owned(),
            Some(why) => format!("not available: {why}"),
        };
        lines.push(format!("engine     {name}: {state}"));
    }
    let is_lacking = |engine: &Value| engine["name"] == RING && engine["available"] == false;
    if engines.iter().any(is_lacking) {
        lines.push("           trials that ask for it fail here: plan them with psync, one request a thread".to_owned());
    }
    lines.push(match found["memory_lock_bytes"].as_u64() {
        None => "memory     locked memory has no limit".to_owned(),
        Some(limit) if limit < LOCKED_LEAST_BYTES => format!(
            "memory     {} KiB may be locked: io_uring needs more before Linux 5.12; raise it by ulimit -l",
            limit >> 10
        ),
        Some(limit) => format!("memory     {} KiB may be locked", limit >> 10),
    });
    if found["temporary_noexec"] == true {
        lines.push(format!(
            "programs   {} is mounted noexec: keep the agent and traces elsewhere (TMPDIR, --out)",
            text("temporary_directory")
        ));
    }
    lines.push(if found["tracer"] == true {
        "tracer     in this program: leadline-agent trace --out DIRECTORY -- COMMAND".to_owned()
    } else {
        "tracer     not in this program: it was built without".to_owned()
    });
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_has_its_line_and_a_reason_where_it_is_not_available() {
        let found = facts();
        let shown = words(&found);
        for engine in engines() {
            let name = engine["name"].as_str().unwrap();
            assert!(shown.contains(&format!("engine     {name}: ")), "{shown}");
            assert_eq!(engine["available"] == false, engine["reason"].is_string());
        }
        assert!(shown.contains("kernel ") && shown.contains("tracer "));
    }

    #[test]
    fn what_is_in_the_way_is_said() {
        let found = json!({
            "engines": [{"name": RING, "available": false, "reason": "this kernel has no io_uring"}],
            "memory_lock_bytes": 65536, "temporary_noexec": true, "temporary_directory": "/tmp",
        });
        let shown = words(&found);
        for part in [
            "no io_uring",
            "plan them with psync",
            "64 KiB may be locked: ",
            "/tmp is mounted noexec",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let well = json!({"engines": [{"name": RING, "available": true, "reason": null}]});
        assert!(!words(&well).contains("psync") && !words(&well).contains("noexec"));
    }
}
