//! `nfs://`: an NFS export without the kernel.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::options::{choices, climbs, is_timeout};
use super::{Choice, Engine, Location, Memory, Scheme, Wrong};
use crate::sync::lock;
use crate::sys::file::OpenHow;
use crate::sys::libnfs::{
    Access, Action, CONNECT_S, Facts, Libnfs, OpenFile, Queue, Refusal, Session,
};
use crate::volume::names::{Names, OpenAs, Operation, PathCalls, PathNames};
use crate::volume::{Handle, Outcome, Space, Volume, VolumeError, is_chosen, system};

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
    connect: Some(|location| Ok(Arc::new(Export::connect(location)?))),
    ..Scheme::new(
        "nfs",
        WORDS,
        &[Engine {
            memory: Memory::COPIED,
            ..Engine::new("libnfs", WORDS)
        }],
    )
};

const CHOICES: &[Choice] = choices! {
    number "version" = "4": "of the protocol: 4, or 3";
    number "uid" = "": "the user's number for the server; empty: this process's";
    number "gid" = "": "the group's number for the server; empty: this process's";
    number "nfsport" = "": "the server's port, as behind its name; empty: 2049 (version 4), asked for (version 3)";
    number "mountport" = "": "the port of the server's mount daemon (version 3); empty: asked for";
    number "timeout" = "60": "seconds after which a request without an answer is an error";
};

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

/// Half of the shortest lease that servers are set up with.
const IDLE: Duration = Duration::from_secs(5);

/// What a server answers when a directory is to be removed as a file.
const IS_DIRECTORY: [i32; 4] = [libc::EISDIR, libc::EPERM, libc::ENOTEMPTY, libc::EEXIST];

/// An export, and a directory in it as its root.
pub struct Export {
    access: Access,
    url: String,
    names: Mutex<Option<(Session, Instant)>>,
}

fn access(location: &Location) -> Access {
    let (server, port) = server(location).unwrap_or_default();
    let port_of = |name: &str| location.number(name).map_or(0, |port| port as u16);
    Access {
        server: server.to_owned(),
        export: format!("/{}", location.path),
        version: location.number("version").unwrap_or(4),
        port: port.unwrap_or_else(|| port_of("nfsport")),
        mount_port: port_of("mountport"),
        user: location.number("uid"),
        group: location.number("gid"),
        timeout: Duration::from_secs(u64::from(location.number("timeout").unwrap_or(60))),
    }
}

fn refused(refusal: Refusal, url: &str) -> VolumeError {
    match refusal {
        Refusal::Library(missing) => missing.into(),
        Refusal::Step(operation, errno, words) => {
            let remedy = match (operation, errno) {
                ("look up", _) => "check the server's name".to_owned(),
                ("connect to", _) => {
                    "see whether the server runs and its port is right (nfsport=; version 3 asks the server's \
                     port mapper on 111)"
                        .to_owned()
                }
                (_, libc::ENOENT) => {
                    "no such export or directory: `showmount -e SERVER` or the server's configuration has their \
                     names"
                        .to_owned()
                }
                (_, libc::EACCES | libc::EPERM) => {
                    "the server does not let this host or user in: check its exports, uid= and gid=".to_owned()
                }
                (_, libc::ETIMEDOUT) => format!("the server gave no answer within {CONNECT_S} s"),
                _ => "check version=, nfsport= and mountport=".to_owned(),
            };
            let said = if words.is_empty() {
                String::new()
            } else {
                format!(" ({words})")
            };
            VolumeError::new(errno, operation, &format!("{url}{said}")).with_remedy(&remedy)
        }
    }
}

/// A connection of one's own.
pub fn session(location: &Location) -> Outcome<Session> {
    Session::connect(&access(location)).map_err(|refusal| refused(refusal, &location.url))
}

pub fn path_of(path: &str) -> CString {
    let whole = format!("/{}", path.trim_matches('/'));
    CString::new(whole).unwrap_or_default()
}

/// Opens a file of a job: one that is to be fresh is made anew, never emptied. Version 4 of the library makes files
/// exclusively.
pub fn open_in(session: &mut Session, path: &str, how: OpenHow) -> Outcome<OpenFile> {
    let name = path_of(path);
    if how.fresh {
        match session.unlink(&name) {
            Ok(()) | Err(libc::ENOENT) => {}
            Err(errno) => return Err(VolumeError::new(errno, "replace", path)),
        }
    } else {
        // Looking costs less than an OPEN that fails, with which a connection of version 4 is given up.
        session
            .look(&name)
            .map_err(|errno| VolumeError::new(errno, "open", path))?;
    }
    let operation = if how.fresh { "create" } else { "open" };
    let failed = |errno| VolumeError::new(errno, operation, path);
    let file = session
        .open(&name, how.write, how.fresh, how.direct)
        .map_err(failed)?;
    if how.fresh {
        // Version 4 makes files by their verifier, which takes the place of their attributes.
        session.make_readable(&name).map_err(failed)?;
    }
    Ok(file)
}

impl Export {
    /// Connects and mounts.
    pub fn connect(location: &Location) -> Outcome<Self> {
        let this = Self {
            access: access(location),
            url: location.url.clone(),
            names: Mutex::new(None),
        };
        this.with("look into", "/", |session| session.look(&path_of("/")))?;
        Ok(this)
    }

    fn session(&self) -> Outcome<Session> {
        Session::connect(&self.access).map_err(|refusal| refused(refusal, &self.url))
    }

    /// Does something with the connection for names.
    fn with<T>(
        &self,
        operation: &'static str,
        path: &str,
        work: impl FnOnce(&mut Session) -> Result<T, i32>,
    ) -> Outcome<T> {
        let mut names = lock(&self.names);
        let usable =
            |(session, used): &(Session, Instant)| !session.is_lost() && used.elapsed() < IDLE;
        let mut session = match names.take().filter(usable) {
            Some((session, _)) => session,
            None => self.session()?,
        };
        let result = work(&mut session);
        *names = Some((session, Instant::now()));
        result.map_err(|errno| VolumeError::new(errno, operation, path))
    }

    fn open_file(&self, path: &str, how: OpenHow) -> Outcome<File> {
        let mut session = self.session()?;
        let file = open_in(&mut session, path, how)?;
        let channel = Channel::new(session, self.access.timeout)
            .map_err(|error| system(&error, "open", path))?;
        Ok(File {
            channel: Mutex::new(channel),
            file,
            stable: how.direct,
        })
    }

    /// True when more is left.
    fn remove_tree(&self, directory: &str, until: Instant) -> Outcome<bool> {
        if self.remove_files(directory, "", until)? {
            return Ok(true);
        }
        self.with("remove", directory, |session| {
            session.remove_directory(&path_of(directory))
        })?;
        Ok(false)
    }

    /// What is at a path, not what a link there leads to.
    fn look(&self, path: &str) -> Outcome<Facts> {
        self.with("look at", path, |session| session.look(&path_of(path)))
    }

    /// A file, a link, or a directory of that file system with all in it; true when more is left.
    fn remove(&self, path: &str, device: u64, until: Instant) -> Outcome<bool> {
        let unlinked = self.with("remove", path, |session| session.unlink(&path_of(path)));
        let refused = match unlinked {
            Err(error) if IS_DIRECTORY.contains(&error.errno) => error,
            other => return other.map(|()| false),
        };
        let facts = self.look(path)?;
        if facts.mode & u64::from(libc::S_IFMT) != u64::from(libc::S_IFDIR) {
            return Err(refused);
        }
        if facts.device != device {
            let remedy = "another file system of the server begins there: take it away first";
            return Err(VolumeError::new(libc::EXDEV, "remove", path).with_remedy(remedy));
        }
        self.remove_tree(path, until)
    }
}

impl Volume for Export {
    fn make_directory(&self, path: &str) -> Outcome<()> {
        self.with("make the directory", path, |session| {
            session.make_directory(&path_of(path))
        })
    }

    fn get(&self, path: &str, limit: usize) -> Outcome<Option<Vec<u8>>> {
        let found = self.with("read", path, |session| match session.look(&path_of(path)) {
            Err(libc::ENOENT) => Ok(None),
            other => other.map(Some),
        })?;
        let Some(facts) = found else { return Ok(None) };
        let file = self.open_file(path, OpenHow::default())?;
        let mut bytes = vec![0; limit.min(facts.size_bytes as usize)];
        let found = file.read_at(&mut bytes, 0);
        self.done(found, "read", path)?;
        bytes.truncate(found as usize);
        Ok(Some(bytes))
    }

    fn names_in(&self, directory: &str, _limit: usize) -> Outcome<Vec<String>> {
        let mut names = Vec::new();
        self.with("list", directory, |session| {
            let each = |name: &CStr| names.push(name.to_string_lossy().into_owned());
            session.list(&path_of(directory), each)
        })?;
        Ok(names)
    }

    fn open(&self, path: &str, how: OpenHow, _file_bytes: u64) -> Outcome<Arc<dyn Handle>> {
        Ok(Arc::new(self.open_file(path, how)?))
    }

    fn names(&self) -> Outcome<Box<dyn Names>> {
        let channel = Channel::new(self.session()?, self.access.timeout)
            .map_err(|error| system(&error, "connect", &self.url))?;
        Ok(Box::new(PathNames::new(Calls {
            access: self.access.clone(),
            channel,
        })))
    }

    fn space(&self) -> Outcome<Space> {
        self.with("ask for the space of", &self.url, |session| {
            session.space(&path_of("/")).map(Space::from)
        })
    }

    fn remove_files(&self, directory: &str, prefix: &str, until: Instant) -> Outcome<bool> {
        let names = self.names_in(directory, usize::MAX)?;
        let device = self.look(directory)?.device;
        for name in names.iter().filter(|name| is_chosen(name, prefix)) {
            let path = format!("{directory}/{name}");
            if self.remove(&path, device, until)? || Instant::now() > until {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn remove_directory(&self, directory: &str, mark: &str) -> Outcome<()> {
        let path = format!("{directory}/{mark}");
        self.with("remove", &path, |session| {
            match session.unlink(&path_of(&path)) {
                Err(libc::ENOENT) => Ok(()),
                other => other,
            }
        })?;
        self.with("remove", directory, |session| {
            session.remove_directory(&path_of(directory))
        })
    }
}

/// A connection and one request at a time on it.
pub struct Channel {
    queue: Queue,
    piece_bytes: usize,
    timeout: Duration,
}

impl Channel {
    pub fn new(session: Session, timeout: Duration) -> std::io::Result<Self> {
        let piece_bytes = session.read_bytes_max.min(session.write_bytes_max) as usize;
        Ok(Self {
            queue: Queue::new(session, 1, piece_bytes, 1)?,
            piece_bytes,
            timeout,
        })
    }

    pub fn session(&mut self) -> &mut Session {
        self.queue.session()
    }

    /// One request to its end; its bytes are in the slot's buffer before or after.
    fn request(&mut self, action: Action, file: OpenFile, offset: u64, length: usize) -> i64 {
        let begun = self.queue.start((0, 0), action, file, (offset, 0, length));
        if begun < 0 {
            return begun;
        }
        let end = Instant::now() + self.timeout;
        let mut result = None;
        while result.is_none() {
            if Instant::now() > end {
                self.queue.leave();
                return -i64::from(libc::ETIMEDOUT);
            }
            self.queue.reap(Duration::from_millis(100), |_, _, found| {
                result = Some(found)
            });
        }
        result.unwrap_or_default()
    }

    /// Up to the end of the file or of `buffer`.
    pub fn read(&mut self, file: OpenFile, buffer: &mut [u8], offset: u64) -> i64 {
        let mut done = 0;
        while done < buffer.len() {
            let part = &mut buffer[done..];
            let length = part.len().min(self.piece_bytes);
            match self.request(Action::Read, file, offset + done as u64, length) {
                0 => break,
                found if found < 0 => return found,
                found => {
                    let found = (found as usize).min(length);
                    part[..found].copy_from_slice(&self.queue.buffer(0)[..found]);
                    done += found;
                }
            }
        }
        done as i64
    }

    /// As much as one request holds.
    pub fn write(&mut self, file: OpenFile, data: &[u8], offset: u64, stable: bool) -> i64 {
        let length = data.len().min(self.piece_bytes);
        let action = if stable {
            Action::WriteThrough
        } else {
            Action::Write
        };
        self.queue.buffer(0)[..length].copy_from_slice(&data[..length]);
        self.request(action, file, offset, length)
    }

    pub fn commit(&mut self, file: OpenFile) -> i64 {
        self.request(Action::Commit, file, 0, 0)
    }
}

/// An open file with its connection.
struct File {
    channel: Mutex<Channel>,
    file: OpenFile,
    stable: bool,
}

impl File {
    fn with<T>(&self, work: impl FnOnce(&mut Channel) -> T) -> T {
        let mut channel = lock(&self.channel);
        work(&mut channel)
    }
}

impl Handle for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> i64 {
        self.with(|channel| channel.read(self.file, buffer, offset))
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> i64 {
        self.with(|channel| channel.write(self.file, buffer, offset, self.stable))
    }

    fn sync(&self, _data_only: bool) -> i64 {
        self.with(|channel| channel.commit(self.file))
    }

    fn size(&self) -> i64 {
        match self.with(|channel| channel.session().facts(self.file)) {
            Ok(facts) => facts.size_bytes as i64,
            Err(errno) => -i64::from(errno),
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let file = self.file;
        // A server that is gone has closed it already.
        let _ = self.with(|channel| channel.session().close(file));
    }
}

/// One thread's connection of its own.
struct Calls {
    access: Access,
    channel: Channel,
}

fn code(result: Result<(), i32>) -> i64 {
    result.map_or_else(|errno| -i64::from(errno), |()| 0)
}

impl Calls {
    /// The connection, made anew where an OPEN of version 4 has cost it.
    fn session(&mut self) -> Result<&mut Session, i32> {
        if self.channel.session().is_lost() {
            let session = Session::connect(&self.access).map_err(|refusal| match refusal {
                Refusal::Library(_) => libc::ENOPKG,
                Refusal::Step(_, errno, _) => errno,
            })?;
            self.channel = Channel::new(session, self.access.timeout).map_err(|_| libc::ENOMEM)?;
        }
        Ok(self.channel.session())
    }

    fn on(&mut self, work: impl FnOnce(&mut Session) -> Result<(), i32>) -> i64 {
        code(self.session().and_then(work))
    }
}

impl PathCalls for Calls {
    type File = OpenFile;

    fn full(&self, path: &Path) -> CString {
        path_of(&path.to_string_lossy())
    }

    fn open(&mut self, path: &CStr, how: OpenAs) -> Result<OpenFile, i64> {
        let (new, direct) = match how {
            OpenAs::New => (true, false),
            OpenAs::Read { direct } => (false, direct),
        };
        self.session()
            .and_then(|session| session.open(path, new, new, direct))
            .map_err(|errno| -i64::from(errno))
    }

    fn write(&mut self, file: &OpenFile, data: &[u8], offset: u64) -> i64 {
        self.channel.write(*file, data, offset, false)
    }

    fn read(&mut self, file: &OpenFile, buffer: &mut [u8]) -> i64 {
        self.channel.read(*file, buffer, 0)
    }

    fn close(&mut self, file: OpenFile) -> i64 {
        code(self.channel.session().close(file))
    }

    fn stat(&mut self, path: &CStr) -> i64 {
        self.on(|session| session.look(path).map(|_| ()))
    }

    fn rename(&mut self, from: &CStr, to: &CStr) -> i64 {
        self.on(|session| session.rename(from, to))
    }

    fn unlink(&mut self, path: &CStr) -> i64 {
        self.on(|session| session.unlink(path))
    }

    fn make_directory(&mut self, path: &CStr) -> i64 {
        self.on(|session| session.make_directory(path))
    }

    fn remove_directory(&mut self, path: &CStr) -> i64 {
        self.on(|session| session.remove_directory(path))
    }

    fn list(&mut self, path: &CStr) -> i64 {
        self.on(|session| session.list(path, |_| ()))
    }
}
