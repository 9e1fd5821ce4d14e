//! What the command asks of this host by name: texts of the system's files, names, links, and who this is.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rmpv::Value;
use serde_json::json;

use crate::errors::{Outcome, Refusal};

/// The version of all of leadline.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Where files may be read: the system's, which cannot hang as a target can.
const SYSTEM: [&str; 5] = ["/proc", "/sys", "/etc", "/run", "/usr/lib"];
/// Of one text, and of all in one answer.
const TEXT_BYTES_MAX: u64 = 4 << 20;
const TEXTS_BYTES_MAX: u64 = 32 << 20;
pub const NAMES_MAX: usize = 1 << 14;

/// This host's names and numbers, as JSON and as an answer.
pub fn identity() -> serde_json::Value {
    let system = rustix::system::uname();
    let text = |value: &std::ffi::CStr| value.to_string_lossy().into_owned();
    json!({
        "node": text(system.nodename()),
        "kernel": text(system.release()),
        "machine": text(system.machine()),
        "libc": libc_name(),
        "page_bytes": rustix::param::page_size(),
        "ticks_per_s": rustix::param::clock_ticks_per_second(),
        "cpus": cpus(),
        "uid": rustix::process::geteuid().as_raw(),
        "gid": rustix::process::getegid().as_raw(),
        "pid": std::process::id(),
        "boot_id": std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim(),
    })
}

/// The C library that this program runs with.
fn libc_name() -> String {
    if cfg!(target_env = "musl") {
        return "musl".to_owned();
    }
    leadline_engine::sys::process::libc_version().map_or_else(
        || "not known".to_owned(),
        |version| format!("glibc {version}"),
    )
}

/// The processors that this process may run on.
fn cpus() -> Vec<usize> {
    rustix::thread::sched_getaffinity(None)
        .map(|set| {
            (0..rustix::thread::CpuSet::MAX_CPU)
                .filter(|cpu| set.is_set(*cpu))
                .collect()
        })
        .unwrap_or_default()
}

fn checked(path: &[u8]) -> Outcome<&Path> {
    let path = Path::new(OsStr::from_bytes(path));
    let plain = !path.components().any(|part| part == Component::ParentDir);
    if plain && SYSTEM.iter().any(|top| path.starts_with(top)) {
        return Ok(path);
    }
    Err(Refusal::new(
        format!("{} is no file of the system", path.display()),
        format!("files below {} can be read", SYSTEM.join(", ")),
    ))
}

fn number(error: &io::Error) -> Value {
    let errno = error.raw_os_error().unwrap_or(libc::EIO);
    Value::Map(vec![("errno".into(), errno.into())])
}

fn by_path(
    paths: &[Vec<u8>],
    mut read: impl FnMut(&Path) -> io::Result<Vec<u8>>,
) -> Outcome<Value> {
    let mut found = Vec::new();
    for path in paths {
        let value = match read(checked(path)?) {
            Ok(bytes) => Value::Binary(bytes),
            Err(error) => number(&error),
        };
        found.push((name(path), value));
    }
    Ok(Value::Map(found))
}

/// A name as text where it is some, else as bytes.
fn name(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => Value::Binary(bytes.to_owned()),
    }
}

/// The first `limit` bytes of each file, or its errno.
pub fn read_texts(paths: &[Vec<u8>], limit: u64) -> Outcome<Value> {
    let mut left = TEXTS_BYTES_MAX;
    by_path(paths, |path| {
        let mut bytes = Vec::new();
        let file = File::open(path)?;
        if file.metadata()?.file_type().is_dir() {
            return Err(io::Error::from_raw_os_error(libc::EISDIR));
        }
        file.take(limit.min(TEXT_BYTES_MAX).min(left))
            .read_to_end(&mut bytes)?;
        left -= bytes.len() as u64;
        Ok(bytes)
    })
}

/// Where each link leads, or its errno.
pub fn read_links(paths: &[Vec<u8>]) -> Outcome<Value> {
    by_path(paths, |path| {
        Ok(std::fs::read_link(path)?.as_os_str().as_bytes().to_owned())
    })
}

/// Names in a directory, sorted, or its errno.
pub fn list_names(path: &[u8]) -> Outcome<Value> {
    let entries = match std::fs::read_dir(checked(path)?) {
        Ok(entries) => entries,
        Err(error) => return Ok(number(&error)),
    };
    let mut names: Vec<Vec<u8>> = entries
        .take(NAMES_MAX)
        .flatten()
        .map(|entry| entry.file_name().as_bytes().to_owned())
        .collect();
    names.sort();
    Ok(Value::Array(
        names.iter().map(|bytes| name(bytes)).collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(value: &'a Value, key: &str) -> &'a Value {
        let Value::Map(pairs) = value else {
            panic!("no map: {value}");
        };
        &pairs
            .iter()
            .find(|(name, _)| name.as_str() == Some(key))
            .unwrap()
            .1
    }

    #[test]
    fn texts_of_the_system_are_read_and_what_is_absent_has_its_errno() {
        let paths = [
            b"/proc/self/comm".to_vec(),
            b"/proc/none-of-it".to_vec(),
            b"/proc".to_vec(),
        ];
        let found = read_texts(&paths, 4).unwrap();
        assert_eq!(of(&found, "/proc/self/comm").as_slice().unwrap().len(), 4);
        assert_eq!(
            of(of(&found, "/proc/none-of-it"), "errno").as_i64(),
            Some(2)
        );
        assert_eq!(
            of(of(&found, "/proc"), "errno").as_i64(),
            Some(i64::from(libc::EISDIR))
        );
    }

    #[test]
    fn nothing_but_the_systems_files_is_read() {
        for path in ["/tmp/x", "/proc/../tmp/x", "relative", "/procx", ""] {
            assert!(
                read_texts(&[path.as_bytes().to_vec()], 1).is_err(),
                "{path}"
            );
            assert!(list_names(path.as_bytes()).is_err(), "{path}");
        }
    }

    #[test]
    fn names_and_links_of_the_system() {
        let Value::Array(names) = list_names(b"/proc/self").unwrap() else {
            panic!("no names");
        };
        assert!(names.contains(&"stat".into()));
        let links = read_links(&[b"/proc/self/exe".to_vec()]).unwrap();
        assert!(!of(&links, "/proc/self/exe").as_slice().unwrap().is_empty());
    }

    #[test]
    fn this_host_has_a_name_and_a_processor() {
        let found = identity();
        assert!(!found["cpus"].as_array().unwrap().is_empty());
        assert!(found["page_bytes"].as_u64().unwrap() >= 4096);
        assert_eq!(found["boot_id"].as_str().unwrap().len(), 36);
    }
}
