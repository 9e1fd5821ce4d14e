//! Looks at a target that may hang, step by step: a JSON line `{"begin": STEP, "path": PATH}` before each step, so that
//! whoever waits can name the one that never ended, and one with what was found. Nothing of it stays on the target.
//!
//! The steps and keys are those of `observe/probe.py`.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::net::ToSocketAddrs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use leadline_engine::error::errno_words;
use leadline_engine::schemes::{self, Location};
use leadline_engine::sys::buffer::AlignedBuffer;
use leadline_engine::sys::file::write_at;
use leadline_engine::volume::VolumeError;
use rustix::fs::{Access, AtFlags, Mode, OFlags};
use serde_json::{Map, Value, json};

use crate::errors::plain_words;

const ALIGNMENTS_BYTES: [usize; 3] = [512, 4096, 65536];
const LAYOUT_DEPTH_MAX: usize = 64;
const ATTRIBUTE_BYTES_MAX: usize = 4096;

/// Prints all steps of one path or URL; with `writes` a file without a name is made and written.
pub fn probe(target: &OsStr, writes: bool) -> ExitCode {
    let url = target.to_str().filter(|text| text.contains("://"));
    let found = match url {
        Some(url) => probe_url(url),
        None => probe_path(Path::new(target), writes),
    };
    say(&found);
    ExitCode::SUCCESS
}

/// Prints what a file system says of its space.
pub fn space(path: &OsStr) -> ExitCode {
    say(&match rustix::fs::statvfs(path) {
        Ok(found) => json!({
            "f_bsize": found.f_bsize, "f_frsize": found.f_frsize, "f_blocks": found.f_blocks,
            "f_bfree": found.f_bfree, "f_bavail": found.f_bavail, "f_files": found.f_files,
            "f_ffree": found.f_ffree, "f_favail": found.f_favail, "f_flag": found.f_flag.bits(),
            "f_namemax": found.f_namemax,
        }),
        Err(error) => json!({"errno": error.raw_os_error()}),
    });
    ExitCode::SUCCESS
}

fn say(value: &Value) {
    let mut output = io::stdout().lock();
    let _ = output.write_all(format!("{value}\n").as_bytes());
    let _ = output.flush();
}

fn doing(path: &Path, step: &str) {
    say(&json!({"begin": step, "path": path.to_string_lossy()}));
}

fn probe_path(path: &Path, writes: bool) -> Value {
    doing(path, "resolving the path");
    let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    doing(&place, "looking at the directory");
    let mut facts = identify(&place);
    facts.insert("path".to_owned(), json!(place.to_string_lossy()));
    if facts["kind"] != "directory" {
        return Value::Object(facts);
    }
    doing(&place, "asking for free space");
    facts.extend(space_of(&place));
    let tries = writes && facts.get("writable") == Some(&json!(true));
    doing(&place, "asking for the CephFS layout");
    let layout = layout(&place, tries);
    if !layout.is_empty() {
        doing(&place, "asking for the CephFS quota and snapshots");
        facts.extend(layout);
        facts.extend(ceph_facts(&place));
    }
    if tries {
        doing(&place, "writing one block with O_DIRECT");
        facts.extend(direct(&place));
    }
    Value::Object(facts)
}

fn identify(place: &Path) -> Map<String, Value> {
    let found = match place.metadata() {
        Ok(found) => found,
        Err(error) => {
            return object(json!({
                "kind": "missing", "errno": error.raw_os_error(), "why": plain_words(&error),
            }));
        }
    };
    let kind = found.file_type();
    let word = match kind {
        _ if kind.is_dir() => "directory",
        _ if kind.is_block_device() => "block device",
        _ if kind.is_char_device() => "character device",
        _ if kind.is_file() => "file",
        _ => "special file",
    };
    object(json!({
        "kind": word,
        "major": rustix::fs::major(found.dev()),
        "minor": rustix::fs::minor(found.dev()),
        "mount_id": mount_id(place),
    }))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn mount_id(place: &Path) -> Option<i64> {
    let opened = rustix::fs::open(place, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", opened.as_raw_fd())).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("mnt_id:"))?;
    line.trim().parse().ok()
}

fn space_of(place: &Path) -> Map<String, Value> {
    let writable = rustix::fs::access(place, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    match rustix::fs::statvfs(place) {
        Ok(found) => object(json!({
            "total_bytes": found.f_blocks.saturating_mul(found.f_frsize),
            "free_bytes": found.f_bavail.saturating_mul(found.f_frsize),
            "writable": writable,
        })),
        Err(error) => object(json!({
            "total_bytes": null, "free_bytes": null, "writable": writable,
            "space_why": plain_words(&error.into()),
        })),
    }
}

/// An open file below `place` that has no name (any more).
fn open_temporary(place: &Path, flags: OFlags) -> Result<OwnedFd, rustix::io::Errno> {
    let mode = Mode::from_raw_mode(0o600);
    let access = OFlags::RDWR | OFlags::CLOEXEC | flags;
    if let Ok(opened) = rustix::fs::open(place, OFlags::TMPFILE | access, mode) {
        return Ok(opened);
    }
    let directory = rustix::fs::open(place, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let name = PathBuf::from(format!(
        ".leadline-probe-{}-{:x}",
        std::process::id(),
        nanoseconds()
    ));
    let plain = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    let made = rustix::fs::openat(&directory, &name, plain, mode)?;
    let opened = rustix::fs::openat(&directory, &name, access | OFlags::NOFOLLOW, Mode::empty());
    let same = opened.and_then(|opened| {
        let (first, second) = (rustix::fs::fstat(&made)?, rustix::fs::fstat(&opened)?);
        if (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino) {
            Ok(opened)
        } else {
            Err(rustix::io::Errno::EXIST)
        }
    });
    drop(made);
    match rustix::fs::unlinkat(&directory, &name, AtFlags::empty()) {
        Ok(()) => same,
        Err(_) => {
            drop(same); // a file system that removes no open file
            rustix::fs::unlinkat(&directory, &name, AtFlags::empty())?;
            Err(rustix::io::Errno::BUSY)
        }
    }
}

fn nanoseconds() -> u128 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_nanos())
}

/// Whether O_DIRECT opens and writes, and the smallest block that it takes.
fn direct(place: &Path) -> Map<String, Value> {
    let no = |why: String| object(json!({"direct_io": false, "direct_why": why}));
    let opened = match open_temporary(place, OFlags::DIRECT) {
        Ok(opened) => std::fs::File::from(opened),
        Err(error) => return no(plain_words(&error.into())),
    };
    let whole = ALIGNMENTS_BYTES[ALIGNMENTS_BYTES.len() - 1] * 2;
    let mut memory = match AlignedBuffer::new(whole) {
        Ok(memory) => memory,
        Err(error) => return no(plain_words(&error)),
    };
    let mut why = errno_words(libc::EINVAL);
    for alignment in ALIGNMENTS_BYTES {
        // The block starts one block into a page: memory, length and offset are all just aligned.
        let block = &memory.as_mut_slice()[alignment..2 * alignment];
        let written = write_at(&opened, block, alignment as u64);
        if written == alignment as i64 {
            return object(json!({"direct_io": true, "direct_alignment_bytes": alignment}));
        }
        if written < 0 {
            why = plain_words(&io::Error::from_raw_os_error(-written as i32));
        }
    }
    no(why)
}

/// An extended attribute as text.
fn attribute(place: &Path, name: &str) -> Option<String> {
    let mut value = vec![0_u8; ATTRIBUTE_BYTES_MAX];
    let count = rustix::fs::getxattr(place, name, &mut value[..]).ok()?;
    Some(String::from_utf8_lossy(&value[..count]).into_owned())
}

/// `stripe_unit=4194304 stripe_count=1 object_size=4194304 pool=data`: sizes are bytes.
fn parse_layout(text: &str) -> Map<String, Value> {
    let (head, pool) = match text.split_once(" pool=") {
        Some((head, pool)) => (head, Some(pool)),
        None => (text, None),
    };
    let mut found = Map::new();
    let (pool, namespace) = match pool.and_then(|pool| pool.split_once(" pool_namespace=")) {
        Some((pool, namespace)) => (Some(pool), namespace),
        None => (pool, ""),
    };
    found.insert("pool".to_owned(), json!(pool));
    if !namespace.is_empty() {
        found.insert("namespace".to_owned(), json!(namespace));
    }
    let sizes = head.split_whitespace().filter_map(|part| {
        let (name, value) = part.split_once('=')?;
        Some((name.to_owned(), json!(value.parse::<u64>().ok()?)))
    });
    found.insert("layout".to_owned(), Value::Object(sizes.collect()));
    found
}

/// A directory and those above it, up to the top of its mount.
fn upwards(place: &Path) -> impl Iterator<Item = &Path> {
    let mount = mount_id(place);
    let same = move |here: &&Path| mount.is_some() && mount_id(here) == mount;
    place.ancestors().take(LAYOUT_DEPTH_MAX).take_while(same)
}

/// CephFS's layout for new files here: the nearest directory upwards that has one.
fn layout(place: &Path, writable: bool) -> Map<String, Value> {
    let found = upwards(place).find_map(|here| attribute(here, "ceph.dir.layout"));
    if let Some(text) = found {
        return parse_layout(&text);
    }
    // Only CephFS has such an attribute: elsewhere no file is made for it.
    let of_ceph = attribute(place, "ceph.dir.entries").is_some();
    let text = if writable && of_ceph {
        open_temporary(place, OFlags::empty())
            .ok()
            .and_then(|opened| {
                let path = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
                attribute(&path, "ceph.file.layout")
            })
    } else {
        None
    };
    text.map(|text| parse_layout(&text)).unwrap_or_default()
}

/// The nearest limits at or above a CephFS directory (0: none), its snapshots, and which of the kernel's clients serves
/// it, as /sys/kernel/debug/ceph names it.
fn ceph_facts(place: &Path) -> Map<String, Value> {
    let mut found = Map::new();
    for (name, key) in [
        ("quota_bytes", "ceph.quota.max_bytes"),
        ("quota_files", "ceph.quota.max_files"),
    ] {
        let limit = |here: &Path| attribute(here, key)?.trim().parse::<u64>().ok();
        let nearest = upwards(place).filter_map(limit).find(|limit| *limit > 0);
        found.insert(name.to_owned(), json!(nearest.unwrap_or(0)));
    }
    if let Ok(snapshots) = std::fs::read_dir(place.join(".snap")) {
        found.insert("snapshots".to_owned(), json!(snapshots.count()));
    }
    let words = ["ceph.cluster_fsid", "ceph.client_id"].map(|name| attribute(place, name));
    if let [Some(cluster), Some(client)] = words {
        found.insert(
            "kernel_client".to_owned(),
            json!(format!("{cluster}.{client}")),
        );
    }
    found
}

/// Connects to a URL's storage and asks: `space` (total, free; null where it does not say), or `why` not. `address` is
/// its server's, where it has one; `pool` the one behind a file system.
fn probe_url(url: &str) -> Value {
    doing(Path::new(&schemes::without_password(url)), "connecting");
    let location = match Location::parse(url) {
        Ok(location) => location,
        Err(error) => return json!({"why": error.to_string()}),
    };
    let address = (location.described().server)(&location).and_then(|server| address_of(&server));
    let asked = schemes::connect(&location).and_then(|volume| Ok((volume.space()?, volume.pool())));
    match asked {
        Ok((space, pool)) => {
            json!({"space": [space.total_bytes, space.free_bytes], "address": address, "pool": pool})
        }
        Err(error) if error.errno == libc::ENOTSUP => json!({"space": null, "address": address}),
        Err(error) => json!({"why": why(&error, url)}),
    }
}

fn why(error: &VolumeError, url: &str) -> String {
    let remedy = if error.remedy.is_empty() {
        String::new()
    } else {
        format!("; {}", error.remedy)
    };
    let subject = if error.subject.is_empty() || error.subject == url {
        String::new()
    } else {
        format!(" ({})", error.subject)
    };
    format!(
        "{}: {}{remedy}{subject}",
        error.operation,
        errno_words(error.errno)
    )
}

/// The first address of a server.
fn address_of(server: &str) -> Option<String> {
    let host = server.trim_start_matches('[').trim_end_matches(']');
    let mut found = (host, 0_u16).to_socket_addrs().ok()?;
    found.next().map(|address| address.ip().to_string())
}

/// The words by which a child of the agent does this.
pub fn words(target: &OsStr, writes: bool) -> Vec<OsString> {
    let mut words = vec![OsString::from("probe")];
    if writes {
        words.push(OsString::from("--write"));
    }
    words.push(target.to_owned());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_its_kind_space_and_mount() {
        let top = tempfile::tempdir().unwrap();
        let found = probe_path(top.path(), true);
        assert_eq!(found["kind"], "directory");
        assert_eq!(found["writable"], true);
        assert!(found["total_bytes"].as_u64().unwrap() >= found["free_bytes"].as_u64().unwrap());
        assert!(found["mount_id"].as_i64().is_some());
        assert!(found["direct_io"].is_boolean());
        assert_eq!(std::fs::read_dir(top.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_no_directory_ends_early_and_what_is_absent_says_why() {
        let top = tempfile::tempdir().unwrap();
        std::fs::write(top.path().join("file"), b"1").unwrap();
        assert_eq!(probe_path(&top.path().join("file"), false)["kind"], "file");
        let found = probe_path(&top.path().join("none"), false);
        assert_eq!(
            (&found["kind"], &found["errno"]),
            (&json!("missing"), &json!(2))
        );
        assert_eq!(found["why"], "No such file or directory");
    }

    #[test]
    fn a_layout_has_sizes_and_a_pool_with_its_namespace() {
        let found =
            parse_layout("stripe_unit=4194304 object_size=1 pool=my data pool_namespace=ns");
        assert_eq!(found["pool"], "my data");
        assert_eq!(found["namespace"], "ns");
        assert_eq!(
            found["layout"],
            json!({"stripe_unit": 4_194_304, "object_size": 1})
        );
        assert_eq!(parse_layout("")["pool"], Value::Null);
    }

    #[test]
    fn a_url_that_is_none_says_why() {
        assert!(
            probe_url("nonsense://x")["why"]
                .as_str()
                .is_some_and(|why| !why.is_empty())
        );
    }
}
