//! `root://`: files of an XRootD server.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::options::{choices, first, wrong_climb, wrong_form, wrong_timeout, wrong_value};
use super::{Choice, Engine, Scheme, ThirdParty};
use crate::schemes::Location;
use crate::sync::lock;
use crate::sys::file::OpenHow;
use crate::sys::library::text;
use crate::sys::xrootd::{File, How, Manner, System, Xrootd};
use crate::volume::names::{Names, OpenAs, Operation, PathCalls, PathNames, below};
use crate::volume::{
    Handle, KEPT, Outcome, Space, Volume, VolumeError, is_absent, is_chosen, lies_in,
};

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
            wrong_form(host.is_empty(), "the host is missing"),
            wrong_form(
                location.path.contains(['?', '&']),
                "the path must not hold `?` or `&`",
            ),
            wrong_climb(location),
            wrong_value(!within("streams", 16), "streams is from 1 to 16"),
            wrong_value(!within("readv", 1024), "readv is from 1 to 1024"),
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
    connect: Some(|location| Ok(Arc::new(Server::connect(location)?))),
    ..Scheme::new("root", WORDS, &[Engine::new("xrootd", WORDS)])
};

const CHOICES: &[Choice] = choices! {
    number "timeout" = "60": "seconds that a request waits for its answer";
    number "connect_timeout" = "10": "seconds that a connection may take";
    number "streams" = "1": "TCP connections to the server, from 1 to 16";
    number "readv" = "1": "reads handed over together that go as one vector read; 1: none do, 1024 at most";
};

/// A server and a directory on it.
pub struct Server {
    system: Arc<System>,
    location: Location,
    timeout_s: u16,
    list: Mutex<List>,
}

/// Storage without directories (XRootD's Ceph plug-in) lists nothing: there a file of ours has a line for each file
/// that was made, of this client alone, because several may write at once.
#[derive(Default)]
enum List {
    #[default]
    Unknown,
    NotNeeded,
    Kept {
        file: File,
        bytes: u64,
        names: u32,
    },
}

const LIST: &str = ".leadline-files";
const LINK: &str = "no directory of leadline's, but perhaps a link: look into it on the server";
const LISTS_MAX: u32 = 4096;
const LIST_BYTES_MAX: usize = 64 << 20;
/// So few that all of them are removed in the time of one call, even where each takes tens of milliseconds.
const LISTED_MAX: u32 = 256;

fn is_flat(errno: i64) -> bool {
    [libc::ENOENT, libc::EINVAL, libc::ENOTSUP]
        .iter()
        .any(|known| errno == -i64::from(*known))
}

fn list_of(directory: &str, number: u32) -> String {
    format!("{directory}/{LIST}.{number}")
}

fn seconds(location: &Location, name: &str) -> u16 {
    let found = location.number(name).unwrap_or_default();
    u16::try_from(found).unwrap_or(u16::MAX)
}

impl Server {
    /// Connects, and looks into the directory.
    pub fn connect(location: &Location) -> Outcome<Self> {
        let manner = Manner {
            timeout_s: seconds(location, "timeout"),
            connect_s: seconds(location, "connect_timeout"),
            streams: seconds(location, "streams"),
        };
        let url = text(&format!("root://{}", location.container));
        let system = System::new(&url, manner)?;
        let this = Self {
            system: Arc::new(system),
            location: location.clone(),
            timeout_s: manner.timeout_s,
            list: Mutex::default(),
        };
        match this.system.is_directory(&this.full("")) {
            Ok(true) => Ok(this),
            Ok(false) => Err(this.unreachable(libc::ENOTDIR)),
            // Storage without directories, such as XRootD's Ceph plug-in, answers so for the root.
            Err(errno) if location.path.is_empty() && errno == -i64::from(libc::ENOENT) => Ok(this),
            Err(errno) => Err(this.unreachable(-errno as i32)),
        }
    }

    fn unreachable(&self, errno: i32) -> VolumeError {
        let server = &self.location.container;
        let remedy = match errno {
            libc::EACCES | libc::EPERM => {
                format!("{server} refuses this user: check the credentials and the export's rights")
            }
            libc::ENOENT | libc::ENOTDIR => "check the directory: it is not there".to_owned(),
            libc::ETIMEDOUT
            | libc::ECONNREFUSED
            | libc::ECONNRESET
            | libc::EHOSTUNREACH
            | libc::ENETUNREACH => {
                format!(
                    "{server} does not answer: check the host and the port, and that xrootd runs there"
                )
            }
            _ => format!("check that {server} is an XRootD server, and that it exports this path"),
        };
        VolumeError::new(errno, "look into", &self.location.url).with_remedy(&remedy)
    }

    /// The client's version.
    pub fn version(&self) -> String {
        self.system.version()
    }

    fn full(&self, path: &str) -> CString {
        below(&self.location.path, path)
    }

    fn url(&self, path: &str) -> CString {
        let path = self.full(path);
        text(&format!(
            "root://{}/{}",
            self.location.container,
            path.to_string_lossy()
        ))
    }

    fn open_file(&self, path: &str, how: OpenHow) -> Outcome<File> {
        let (how, operation) = match (how.fresh, how.write) {
            (true, _) => (How::Fresh, "create"),
            (false, true) => (How::Write, "open"),
            (false, false) => (How::Read, "open"),
        };
        File::open(&self.url(path), how, self.timeout_s).map_err(|errno| {
            let failed = self.failed(errno, operation, path);
            if how == How::Write && errno == -i64::from(libc::EEXIST) {
                // XRootD's Ceph plug-in answers so.
                return failed.with_remedy(
                    "this server's storage writes new files only: use rw: write without overwrite, or read",
                );
            }
            failed
        })
    }

    /// One of a job's files; one that is not fresh must have its full size.
    pub fn open_checked(&self, path: &str, how: OpenHow, file_bytes: u64) -> Outcome<File> {
        if how.write {
            self.note(path)?;
        }
        let file = self.open_file(path, how)?;
        let found = file.size();
        self.done(found, "look at", path)?;
        if !how.fresh && (found as u64) < file_bytes {
            let remedy = format!(
                "the file has {found} bytes and the job needs {}: prefill it first",
                file_bytes
            );
            return Err(self
                .failed(-i64::from(libc::ENODATA), "open", path)
                .with_remedy(&remedy));
        }
        Ok(file)
    }

    /// Enters a file where nobody else could list it, before it is made.
    fn note(&self, path: &str) -> Outcome<()> {
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let mut list = lock(&self.list);
        if matches!(*list, List::Unknown) {
            *list = match self.system.names(&self.full(directory)) {
                Err(errno) if is_flat(errno) => self.new_list(directory)?,
                _ => List::NotNeeded,
            };
        }
        let line = format!("{path}\n");
        if matches!(
            *list,
            List::Kept {
                names: LISTED_MAX,
                ..
            }
        ) {
            *list = self.new_list(directory)?;
        }
        if let List::Kept { file, bytes, names } = &mut *list {
            self.done(
                file.write(line.as_bytes(), *bytes),
                "note a file in",
                directory,
            )?;
            *bytes += line.len() as u64;
            *names += 1;
        }
        Ok(())
    }

    fn new_list(&self, directory: &str) -> Outcome<List> {
        for number in self.lists(directory)?..LISTS_MAX {
            let path = list_of(directory, number);
            match File::open(&self.url(&path), How::New, self.timeout_s) {
                Ok(file) => {
                    return Ok(List::Kept {
                        file,
                        bytes: 0,
                        names: 0,
                    });
                }
                // There, or just being written by another thread (kXR_FileLocked).
                Err(errno) if [libc::EEXIST, libc::EDEADLK].contains(&(-errno as i32)) => {}
                Err(errno) => return Err(self.failed(errno, "make a list in", directory)),
            }
        }
        Err(self.failed(-i64::from(libc::EMFILE), "make a list in", directory))
    }

    /// How many lists a directory has. Their numbers have no gap, so that few of many are asked for.
    fn lists(&self, directory: &str) -> Outcome<u32> {
        // Asked for, and not removed blindly: some servers say that they removed what was not there.
        let is_there = |number| {
            match self.get(&list_of(directory, number), 1) {
                // Just being written by another thread (kXR_FileLocked).
                Err(taken) if taken.errno == libc::EDEADLK => Ok(true),
                found => found.map(|bytes| bytes.is_some()),
            }
        };
        let mut absent = 0;
        let mut present = None;
        while absent < LISTS_MAX && is_there(absent)? {
            present = Some(absent);
            absent = (2 * absent).max(1);
        }
        let mut first = present.map_or(0, |number| number + 1);
        while first < absent {
            let middle = first + (absent - first) / 2;
            if is_there(middle)? {
                first = middle + 1;
            } else {
                absent = middle;
            }
        }
        Ok(first)
    }

    /// Removes what the lists of a directory name. The last list comes first, and goes with all that it named:
    /// nothing is tried twice, and what is interrupted leaves no gap, which would end the next search for lists.
    fn remove_listed(&self, directory: &str, prefix: &str, until: Instant) -> Outcome<bool> {
        let begin = format!("{directory}/{prefix}");
        let mut is_last = true;
        for number in (0..self.lists(directory)?).rev() {
            if Instant::now() > until {
                return Ok(true);
            }
            let list = list_of(directory, number);
            let bytes = self.get(&list, LIST_BYTES_MAX)?.unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let (ours, others): (Vec<_>, Vec<_>) = text
                .lines()
                .filter(|path| lies_in(directory, path))
                .partition(|path| path.starts_with(&begin));
            for path in ours {
                self.remove_file(path)?;
            }
            is_last &= others.is_empty();
            if is_last {
                self.remove_file(&list)?;
            }
        }
        Ok(false)
    }

    fn remove_file(&self, path: &str) -> Outcome<()> {
        self.removed(self.system.remove(&self.full(path)), path)
    }

    /// True when more is left. Servers tell of what a link leads to, as if it were there: only the removal of a
    /// directory is of the name itself, and says that a link is none.
    fn remove_tree(&self, directory: &str, until: Instant) -> Outcome<bool> {
        let result = self.system.remove_directory(&self.full(directory));
        match -result as i32 {
            libc::ENOTEMPTY | libc::EEXIST => {}
            // What a server has no number for: it may be a link.
            libc::ENOTDIR | libc::ENODEV => {
                let failed = self.failed(result, "remove", directory);
                return Err(failed.with_remedy(LINK));
            }
            _ => return self.done(result, "remove", directory).map(|()| false),
        }
        if self.remove_files(directory, "", until)? {
            return Ok(true);
        }
        let result = self.system.remove_directory(&self.full(directory));
        self.done(result, "remove", directory)?;
        Ok(false)
    }
}

impl Volume for Server {
    fn make_directory(&self, path: &str) -> Outcome<()> {
        let result = self.system.make_directory(&self.full(path));
        self.done(result, "make the directory", path)
    }

    fn put(&self, path: &str, bytes: &[u8]) -> Outcome<()> {
        let file = self.open_file(path, OpenHow::FRESH)?;
        self.done(file.write(bytes, 0), "write", path)?;
        self.done(file.sync(), "sync", path)
    }

    fn shown(&self, path: &str) -> String {
        self.full(path).to_string_lossy().into_owned()
    }

    fn names_in(&self, directory: &str, _limit: usize) -> Outcome<Vec<String>> {
        match self.system.names(&self.full(directory)) {
            Err(errno) if is_flat(errno) => {
                // Nothing is listed there: the mark and the first list of ours tell.
                let mut names = Vec::new();
                for name in [KEPT.to_owned(), format!("{LIST}.0")] {
                    if self.get(&format!("{directory}/{name}"), 1)?.is_some() {
                        names.push(name);
                    }
                }
                if names.is_empty() {
                    return Err(is_absent(directory));
                }
                Ok(names)
            }
            other => other.map_err(|errno| self.failed(errno, "list", directory)),
        }
    }

    fn open(&self, path: &str, how: OpenHow, _file_bytes: u64) -> Outcome<Arc<dyn Handle>> {
        if how.write {
            self.note(path)?;
        }
        Ok(Arc::new(self.open_file(path, how)?))
    }

    fn space(&self) -> Outcome<Space> {
        let found = self.system.space(&self.full(""));
        found
            .map(Space::from)
            .map_err(|errno| self.failed(errno, "ask for the space of", ""))
    }

    fn names(&self) -> Outcome<Box<dyn Names>> {
        Ok(Box::new(PathNames::new(Calls {
            system: Arc::clone(&self.system),
            server: self.location.container.clone(),
            base: self.location.path.clone(),
            timeout_s: self.timeout_s,
        })))
    }

    fn remove_files(&self, directory: &str, prefix: &str, until: Instant) -> Outcome<bool> {
        let names = match self.system.names(&self.full(directory)) {
            Ok(names) => names,
            Err(errno) if is_flat(errno) => return self.remove_listed(directory, prefix, until),
            Err(errno) => return Err(self.failed(errno, "list", directory)),
        };
        for name in names.iter().filter(|name| is_chosen(name, prefix)) {
            let path = format!("{directory}/{name}");
            let more = match self.system.is_directory(&self.full(&path)) {
                Ok(true) => self.remove_tree(&path, until)?,
                _ => {
                    let result = self.system.remove(&self.full(&path));
                    self.done(result, "remove", &path)?;
                    false
                }
            };
            if more || Instant::now() > until {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn remove_directory(&self, directory: &str, mark: &str) -> Outcome<()> {
        for number in (0..self.lists(directory)?).rev() {
            self.remove_file(&list_of(directory, number))?;
        }
        self.remove_file(&format!("{directory}/{mark}"))?;
        let result = self.system.remove_directory(&self.full(directory));
        self.done(result, "remove", directory)
    }
}

impl Handle for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> i64 {
        self.read(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> i64 {
        self.write(buffer, offset)
    }

    fn sync(&self, _data_only: bool) -> i64 {
        Self::sync(self)
    }

    fn size(&self) -> i64 {
        Self::size(self)
    }
}

/// One thread's hold on a server.
struct Calls {
    system: Arc<System>,
    server: String,
    base: String,
    timeout_s: u16,
}

impl PathCalls for Calls {
    type File = File;

    fn full(&self, path: &Path) -> CString {
        below(&self.base, &path.to_string_lossy())
    }

    fn open(&mut self, path: &CStr, how: OpenAs) -> Result<File, i64> {
        let url = text(&format!(
            "root://{}/{}",
            self.server,
            path.to_string_lossy()
        ));
        let how = match how {
            OpenAs::New => How::New,
            OpenAs::Read { .. } => How::Read,
        };
        File::open(&url, how, self.timeout_s)
    }

    fn write(&mut self, file: &File, data: &[u8], offset: u64) -> i64 {
        file.write(data, offset)
    }

    fn read(&mut self, file: &File, buffer: &mut [u8]) -> i64 {
        file.read(buffer, 0)
    }

    fn close(&mut self, file: File) -> i64 {
        file.close()
    }

    fn stat(&mut self, path: &CStr) -> i64 {
        self.system
            .is_directory(path)
            .map_or_else(|errno| errno, |_| 0)
    }

    fn rename(&mut self, from: &CStr, to: &CStr) -> i64 {
        self.system.rename(from, to)
    }

    fn unlink(&mut self, path: &CStr) -> i64 {
        self.system.remove(path)
    }

    fn make_directory(&mut self, path: &CStr) -> i64 {
        self.system.make_directory(path)
    }

    fn remove_directory(&mut self, path: &CStr) -> i64 {
        self.system.remove_directory(path)
    }

    fn list(&mut self, path: &CStr) -> i64 {
        self.system.names(path).map_or_else(|errno| errno, |_| 0)
    }
}
