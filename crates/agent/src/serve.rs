//! Answers calls on standard streams, for a command that came by SSH.
//!
//! It says in one line what is here. Then each call is a frame, and each answer has the number of its call. It ends when
//! its input does, or when nobody has called for a while; its children and its directory end with it.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use leadline_engine::sys::process::SignalWatch;
use rmpv::Value;

use crate::calls::{Agent, PROTOCOL};
use crate::errors::Refusal;
use crate::host::VERSION;
use crate::private::PrivateDirectory;
use crate::{frames, host};

const DEFECT: &str = "report this as a defect";
const GREETING: &str = "leadline-agent/1";
/// A command calls at least once a minute.
const SILENT: Duration = Duration::from_secs(900);
const LOOK: Duration = Duration::from_millis(200);
/// Children that were ended are gone by then, unless the kernel holds them.
const END: Duration = Duration::from_secs(2);
/// Calls that are answered at once.
const CALLS_MAX: usize = 256;

/// The agent, and when it was last heard of.
struct Server {
    agent: Agent,
    calls: AtomicUsize,
    heard: Mutex<Instant>,
}

impl Server {
    fn new(directory: PrivateDirectory) -> Self {
        Self {
            agent: Agent::new(directory),
            calls: AtomicUsize::new(0),
            heard: Mutex::new(Instant::now()),
        }
    }

    fn hear(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn is_forgotten(&self) -> bool {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.elapsed() > SILENT
    }

    /// The answer to a call, a refusal included.
    fn answer(&self, call: frames::Call) -> Value {
        let asked = call.plain.map_err(|words| Refusal::new(words, ""));
        let answered = asked.and_then(|(name, arguments)| self.agent.answer(&name, &arguments));
        answered.unwrap_or_else(|refusal| refused(&refusal))
    }

    fn end(&self) {
        self.agent.children.end(END);
        self.agent.directory.remove();
    }
}

/// A refusal as an answer.
fn refused(refusal: &Refusal) -> Value {
    let mut pairs = vec![
        ("refused".into(), refusal.message.as_str().into()),
        ("remedy".into(), refusal.remedy.as_str().into()),
    ];
    if let Some(errno) = refusal.errno {
        pairs.push(("errno".into(), errno.into()));
    }
    Value::Map(pairs)
}

/// Serves until the input ends; what the agent keeps meanwhile lies below `below`.
pub fn serve(below: &Path) -> ExitCode {
    let directory = match PrivateDirectory::make(below) {
        Ok(directory) => directory,
        Err(refusal) => {
            let _ = writeln!(
                io::stderr(),
                "leadline-agent: {}; {}",
                refusal.message,
                refusal.remedy
            );
            return ExitCode::FAILURE;
        }
    };
    let server = Arc::new(Server::new(directory));
    let _ = rustix::process::setsid(); // what a terminal's end sends is not for it; its streams end then
    watch(&server);
    // A line of its own: what a login shell prints may stand before it.
    if write(format!("\n{GREETING} {}\n", greeting(&server.agent)).as_bytes()).is_ok() {
        answer_all(&server);
    }
    server.end();
    ExitCode::SUCCESS
}

fn greeting(agent: &Agent) -> serde_json::Value {
    let mut said = host::identity();
    said["leadline"] = VERSION.into();
    said["protocol"] = PROTOCOL.into();
    said["directory"] = agent.directory.path().to_string_lossy().into();
    said
}

/// Each call is answered in a thread of its own, for as long as it takes.
fn answer_all(server: &Arc<Server>) {
    let mut input = io::stdin().lock();
    while let Ok(Some(call)) = frames::read_call(&mut input) {
        server.hear();
        let number = call.number;
        if server.calls.fetch_add(1, Ordering::Relaxed) >= CALLS_MAX {
            server.calls.fetch_sub(1, Ordering::Relaxed);
            let many = Refusal::new(
                format!("{CALLS_MAX} calls are open already"),
                "wait for answers",
            );
            if send(number, &refused(&many)).is_err() {
                return;
            }
            continue;
        }
        let answering = Arc::clone(server);
        std::thread::spawn(move || {
            let done = catch_unwind(AssertUnwindSafe(|| answering.answer(call)));
            let answer = done.unwrap_or_else(|_| refused(&Refusal::new("internal error", DEFECT)));
            answering.calls.fetch_sub(1, Ordering::Relaxed);
            let _ = send(number, &answer); // who does not listen ends the input, too
        });
    }
}

fn send(number: u64, answer: &Value) -> io::Result<()> {
    write(&frames::packed(number, answer)?)
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(bytes)?;
    output.flush()
}

/// Ends the agent where a signal asks for it, or nobody calls any more: then the network did not say that whoever was to
/// call is gone.
fn watch(server: &Arc<Server>) {
    let server = Arc::clone(server);
    let signals = SignalWatch::start();
    std::thread::spawn(move || {
        while signals.noted().is_none() && !server.is_forgotten() {
            std::thread::sleep(LOOK);
        }
        server.end();
        std::process::exit(1);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent() -> (tempfile::TempDir, Server) {
        let top = tempfile::tempdir().unwrap();
        let directory = PrivateDirectory::make(top.path()).unwrap();
        (top, Server::new(directory))
    }

    fn asked(agent: &Server, name: &str, arguments: Vec<Value>) -> Value {
        let plain = Ok((name.to_owned(), arguments));
        agent.answer(frames::Call { number: 1, plain })
    }

    fn of<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
        value
            .as_map()?
            .iter()
            .find(|(name, _)| name.as_str() == Some(key))
            .map(|(_, value)| value)
    }

    #[test]
    fn nothing_is_done_before_the_versions_are_the_same() {
        let (_top, agent) = agent();
        assert!(of(&asked(&agent, "clock", vec![]), "refused").is_some());
        for (version, protocol) in [("0.0.9", PROTOCOL), (VERSION, PROTOCOL + 1)] {
            let answer = asked(&agent, "hello", vec![version.into(), protocol.into()]);
            assert!(of(&answer, "refused").is_some(), "{answer}");
        }
        assert!(of(&asked(&agent, "clock", vec![]), "refused").is_some());
        let answer = asked(&agent, "hello", vec![VERSION.into(), PROTOCOL.into()]);
        assert!(of(&answer, "refused").is_none(), "{answer}");
        assert!(of(&asked(&agent, "clock", vec![]), "monotonic_ns").is_some());
        let engines = asked(&agent, "engines", vec![]);
        let all = engines.as_array().unwrap();
        let psync = all
            .iter()
            .find(|one| of(one, "name").and_then(Value::as_str) == Some("psync"));
        assert_eq!(of(psync.unwrap(), "available"), Some(&true.into()));
    }

    #[test]
    fn what_is_no_call_is_refused_in_words() {
        let (_top, agent) = agent();
        asked(&agent, "hello", vec![VERSION.into(), PROTOCOL.into()]);
        let wrong = [
            ("nonsense", vec![]),
            ("read", vec![1.into()]),
            ("read", vec!["x".into(), 1.into()]),
            ("read", vec![99.into(), 0.into()]),
            ("spawn", vec!["shell".into(), Value::Array(vec![])]),
            ("read_file", vec!["../x".into(), 0.into(), 1.into()]),
            ("write_file", vec!["x".into(), Value::Nil, false.into()]),
            ("clock", vec![1.into()]),
        ];
        for (name, arguments) in wrong {
            let answer = asked(&agent, name, arguments);
            let words = of(&answer, "refused").and_then(Value::as_str);
            assert!(
                words.is_some_and(|words| !words.is_empty()),
                "{name}: {answer}"
            );
            assert!(of(&answer, "remedy").is_some());
        }
        let answer = agent.answer(frames::Call {
            number: 1,
            plain: Err("no call".to_owned()),
        });
        assert_eq!(
            of(&answer, "refused").and_then(Value::as_str),
            Some("no call")
        );
    }

    #[test]
    fn files_of_its_own_directory_are_written_and_read() {
        let (_top, agent) = agent();
        asked(&agent, "hello", vec![VERSION.into(), PROTOCOL.into()]);
        let data = Value::Binary(b"\x00\xff".to_vec());
        assert_eq!(
            asked(
                &agent,
                "write_file",
                vec!["a/b".into(), data.clone(), false.into()]
            ),
            Value::Nil
        );
        assert_eq!(
            asked(&agent, "read_file", vec!["a/b".into(), 0.into(), 9.into()]),
            data
        );
        assert_eq!(asked(&agent, "remove_file", vec!["a/b".into()]), Value::Nil);
        let gone = asked(&agent, "read_file", vec!["a/b".into(), 0.into(), 9.into()]);
        assert_eq!(of(&gone, "errno").and_then(Value::as_i64), Some(2));
    }
}
