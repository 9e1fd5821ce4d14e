//! Every call that the agent answers, by its name, with its arguments read.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use leadline_engine::sys::clock::{monotonic_ns, unix_ns};
use rmpv::Value;

use crate::children::Children;
use crate::errors::{Outcome, Refusal};
use crate::host::VERSION;
use crate::private::PrivateDirectory;
use crate::{doctor, host, probe};

pub const PROTOCOL: u64 = 1;
const HELLO: &str = "hello";
/// A long poll at most.
const WAIT_MAX_S: f64 = 60.0;
const DEADLINE_MAX_S: f64 = 600.0;
const SPACE_DEADLINE: Duration = Duration::from_secs(5);
const PATHS_MAX: usize = 4096;

/// What calls work with.
pub struct Agent {
    pub directory: PrivateDirectory,
    pub children: Children,
    greeted: AtomicBool,
}

impl Agent {
    pub fn new(directory: PrivateDirectory) -> Self {
        Self {
            directory,
            children: Children::new(),
            greeted: AtomicBool::new(false),
        }
    }

    /// Both sides are of one version, or nothing is done.
    fn greet(&self, version: &str, protocol: u64) -> Outcome<()> {
        if version != VERSION || protocol != PROTOCOL {
            return Err(Refusal::new(
                format!(
                    "this agent is of leadline {VERSION} with protocol {PROTOCOL}, and the command is of \
                     {version} with protocol {protocol}"
                ),
                "let the command copy its own agent to this host",
            ));
        }
        self.greeted.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// What a call gives; the first is hello.
    pub fn answer(&self, name: &str, arguments: &[Value]) -> Outcome<Value> {
        if name != HELLO && !self.greeted.load(Ordering::Relaxed) {
            return Err(Refusal::new(
                "the first call is hello",
                "report this as a defect",
            ));
        }
        answer(self, name, arguments)
    }
}

/// What each call gives. It takes exactly its arguments.
fn answer(agent: &Agent, name: &str, arguments: &[Value]) -> Outcome<Value> {
    let mut given = Arguments {
        name,
        left: arguments.iter(),
    };
    let answer = match name {
        HELLO => agent
            .greet(given.text()?, given.whole()?)
            .map(|()| Value::Nil),
        "clock" => Ok(clock()),
        "host" => Ok(as_answer(&host::identity())),
        "doctor" => Ok(as_answer(&doctor::facts())),
        "engines" => Ok(Value::Array(
            doctor::engines().iter().map(as_answer).collect(),
        )),
        "read_texts" => host::read_texts(&given.paths()?, given.whole()?),
        "read_links" => host::read_links(&given.paths()?),
        "list_names" => host::list_names(given.bytes()?),
        "statfs" => statfs(agent, given.path()?),
        "probe" => probe_target(
            agent,
            given.path()?,
            given.seconds(DEADLINE_MAX_S)?,
            given.flag_or(false)?,
        ),
        "read_file" => agent
            .directory
            .read(given.path()?, given.whole()?, given.whole()?)
            .map(Value::Binary),
        "write_file" => {
            let (path, bytes, append) = (given.path()?, given.bytes()?, given.flag_or(false)?);
            agent
                .directory
                .write(path, bytes, append)
                .map(|()| Value::Nil)
        }
        "remove_file" => agent.directory.forget(given.path()?).map(|()| Value::Nil),
        _ => of_children(agent, &mut given),
    };
    let answer = answer?;
    given.end()?;
    Ok(answer)
}

/// The calls about processes that the agent starts.
fn of_children(agent: &Agent, given: &mut Arguments) -> Outcome<Value> {
    match given.name {
        "spawn" => spawn(agent, given.text()?, given.texts()?),
        "write" => agent
            .children
            .get(given.whole()?)?
            .write(given.bytes()?)
            .map(|()| Value::Nil),
        "close" => {
            agent.children.get(given.whole()?)?.close();
            Ok(Value::Nil)
        }
        "read" => {
            let read = agent
                .children
                .get(given.whole()?)?
                .read(given.seconds(WAIT_MAX_S)?);
            Ok(read.map_or(Value::Nil, Value::Binary))
        }
        "errors" => Ok(Value::Binary(agent.children.get(given.whole()?)?.errors())),
        "signal" => {
            let (id, number) = (given.whole()?, given.whole()?);
            agent
                .children
                .get(id)?
                .signal(i32::try_from(number).unwrap_or(0))
                .map(|()| Value::Nil)
        }
        "wait" => {
            let ended = agent
                .children
                .get(given.whole()?)?
                .wait(given.seconds(WAIT_MAX_S)?);
            Ok(ended.map_or(Value::Nil, Value::from))
        }
        "release" => {
            agent.children.release(given.whole()?);
            Ok(Value::Nil)
        }
        name => Err(Refusal::new(format!("'{name}' is no call"), "")),
    }
}

/// Both clocks of this host at one moment.
fn clock() -> Value {
    Value::Map(vec![
        ("monotonic_ns".into(), monotonic_ns().into()),
        ("unix_ns".into(), unix_ns().into()),
    ])
}

/// The arguments of a call, one after another.
struct Arguments<'a> {
    name: &'a str,
    left: std::slice::Iter<'a, Value>,
}

impl<'a> Arguments<'a> {
    fn wrong(&self, what: &str) -> Refusal {
        Refusal::new(
            format!("{}: an argument is no {what}", self.name),
            "report this as a defect",
        )
    }

    fn next<T>(&mut self, what: &str, read: impl FnOnce(&'a Value) -> Option<T>) -> Outcome<T> {
        self.left
            .next()
            .and_then(read)
            .ok_or_else(|| self.wrong(what))
    }

    fn text(&mut self) -> Outcome<&'a str> {
        self.next("text", Value::as_str)
    }

    fn whole(&mut self) -> Outcome<u64> {
        self.next("whole number", Value::as_u64)
    }

    /// Seconds, at most `longest`.
    fn seconds(&mut self, longest: f64) -> Outcome<Duration> {
        let seconds = self.next("number of seconds", Value::as_f64)?;
        if seconds.is_nan() {
            return Err(self.wrong("number of seconds"));
        }
        Ok(Duration::from_secs_f64(seconds.clamp(0.0, longest)))
    }

    fn flag_or(&mut self, absent: bool) -> Outcome<bool> {
        match self.left.len() {
            0 => Ok(absent),
            _ => self.next("true or false", Value::as_bool),
        }
    }

    /// Bytes, or a text as its bytes, which need not be UTF-8.
    fn bytes(&mut self) -> Outcome<&'a [u8]> {
        self.next("bytes", bytes_of)
    }

    fn path(&mut self) -> Outcome<&'a Path> {
        self.bytes()
            .map(|bytes| Path::new(OsStr::from_bytes(bytes)))
    }

    fn paths(&mut self) -> Outcome<Vec<Vec<u8>>> {
        let read = |value: &'a Value| {
            let list = value.as_array()?;
            let paths: Option<Vec<_>> = list
                .iter()
                .map(|one| bytes_of(one).map(<[u8]>::to_vec))
                .collect();
            paths.filter(|paths| paths.len() <= PATHS_MAX)
        };
        self.next("list of paths", read)
    }

    fn texts(&mut self) -> Outcome<Vec<OsString>> {
        let list = self.paths()?;
        Ok(list
            .iter()
            .map(|bytes| OsStr::from_bytes(bytes).to_owned())
            .collect())
    }

    fn end(&mut self) -> Outcome<()> {
        match self.left.len() {
            0 => Ok(()),
            left => Err(Refusal::new(
                format!("{}: {left} arguments too many", self.name),
                "report this as a defect",
            )),
        }
    }
}

fn bytes_of(value: &Value) -> Option<&[u8]> {
    match value {
        Value::String(text) => Some(text.as_bytes()),
        Value::Binary(bytes) => Some(bytes),
        _ => None,
    }
}

fn as_answer(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Nil,
        serde_json::Value::Bool(value) => (*value).into(),
        serde_json::Value::String(value) => value.as_str().into(),
        serde_json::Value::Number(value) => match (value.as_u64(), value.as_i64()) {
            (Some(value), _) => value.into(),
            (None, Some(value)) => value.into(),
            (None, None) => value.as_f64().map_or(Value::Nil, Value::from),
        },
        serde_json::Value::Array(values) => Value::Array(values.iter().map(as_answer).collect()),
        serde_json::Value::Object(pairs) => {
            let pair = |(name, value): (&String, &serde_json::Value)| {
                (name.as_str().into(), as_answer(value))
            };
            Value::Map(pairs.iter().map(pair).collect())
        }
    }
}

/// This program with other words; where its file has gone meanwhile the kernel still knows it.
fn own_program(words: impl IntoIterator<Item = OsString>) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(words);
    command
}

fn spawn(agent: &Agent, role: &str, arguments: Vec<OsString>) -> Outcome<Value> {
    if !["worker", "observe"].contains(&role) {
        return Err(Refusal::new(
            format!("'{role}' is nothing that the agent starts"),
            "",
        ));
    }
    if !arguments.is_empty() {
        return Err(Refusal::new(format!("{role} takes no arguments"), ""));
    }
    let words = [
        role.to_owned(),
        "--parent".to_owned(),
        std::process::id().to_string(),
    ];
    let (id, process) = agent
        .children
        .start(own_program(words.map(OsString::from)))?;
    Ok(Value::Map(vec![
        ("id".into(), id.into()),
        ("pid".into(), process.pid().into()),
    ]))
}

/// Has a child look at a target: its lines, and its exit code, `None` where it did not end by the deadline.
fn probe_target(agent: &Agent, target: &Path, deadline: Duration, writes: bool) -> Outcome<Value> {
    let (lines, code) = look(agent, probe::words(target.as_os_str(), writes), deadline)?;
    Ok(Value::Map(vec![
        ("lines".into(), Value::Array(lines)),
        ("code".into(), code.map_or(Value::Nil, Value::from)),
    ]))
}

fn statfs(agent: &Agent, path: &Path) -> Outcome<Value> {
    let words = [
        "probe".into(),
        "--space".into(),
        path.as_os_str().to_owned(),
    ];
    let (lines, _) = look(agent, words.to_vec(), SPACE_DEADLINE)?;
    lines.into_iter().next().ok_or_else(|| {
        Refusal::new(
            format!(
                "{}: no answer within {} s",
                path.display(),
                SPACE_DEADLINE.as_secs()
            ),
            "see whether its server or cluster is up",
        )
    })
}

fn look(
    agent: &Agent,
    words: Vec<OsString>,
    deadline: Duration,
) -> Outcome<(Vec<Value>, Option<i32>)> {
    let (id, process) = agent.children.start(own_program(words))?;
    process.close();
    let until = Instant::now() + deadline;
    let left = || until.saturating_duration_since(Instant::now());
    let mut text = Vec::new();
    while let Some(bytes) = process.read(left()) {
        if bytes.is_empty() {
            break; // the deadline
        }
        text.extend(bytes);
    }
    let code = process.wait(left());
    agent.children.release(id);
    let lines = text
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok());
    Ok((lines.map(|line| as_answer(&line)).collect(), code))
}
