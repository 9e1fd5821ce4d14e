//! `smb://`: a share of an SMB server.

use std::ffi::{CStr, CString};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::options::{choices, first, wrong_climb, wrong_form, wrong_timeout, wrong_value};
use super::{Choice, Engine, Memory, Scheme};
use crate::schemes::Location;
use crate::sync::lock;
use crate::sys::file::OpenHow;
use crate::sys::library::Refusal;
use crate::sys::smb::{Client, Libsmbclient, Listing, Login, Manner, Opened};
use crate::volume::names::{Names, OpenAs, Operation, PathCalls, PathNames};
use crate::volume::{Handle, Outcome, Space, Volume, VolumeError, is_chosen};

const WORDS: &str = "a share of an SMB server through libsmbclient: a connection and a thread for each outstanding operation";

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
            wrong_form(host.is_empty(), "the host is missing"),
            wrong_form(location.path.is_empty(), "the share is missing"),
            wrong_climb(location),
            wrong_value(!known, "encrypt must be yes or no"),
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
    connect: Some(|location| Ok(Arc::new(Share::connect(location)?))),
    ..Scheme::new(
        "smb",
        WORDS,
        &[Engine {
            memory: Memory::COPIED,
            ..Engine::new("libsmbclient", WORDS)
        }],
    )
};

const CHOICES: &[Choice] = choices! {
    text "credentials" = "":
        "a file with username=, password= and domain= lines; empty: LEADLINE_SMB_PASSWORD has the password";
    text "domain" = "": "the user's domain or workgroup";
    text "protocol" = "": "the highest dialect, for example SMB2_10 or SMB3_11; empty: the library's highest";
    text "encrypt" = "no": "yes: nothing goes over the wire in clear";
    number "timeout" = "20": "seconds that a request waits for its answer";
    text "smb_conf" = "": "a smb.conf to follow; empty: none is read";
};

/// The password, where no file of credentials is named. It is never part of a URL.
pub const PASSWORD_VARIABLE: &str = "LEADLINE_SMB_PASSWORD";
const LINK: &str = "the server says that it lies in another directory, as what a link leads to does: look into it there";
const UNKNOWN: &str = "the server does not number its files, so a link to elsewhere could not be seen: remove it by hand";
const CREDENTIALS_BYTES_MAX: u64 = 64 << 10;

/// A directory of a share, by one connection.
pub struct Share {
    client: Arc<Mutex<Client>>,
    location: Location,
    base: String,
}

struct Open {
    client: Arc<Mutex<Client>>,
    file: Opened,
}

/// A path as it stands in a URL (RFC 3986, 2.1).
fn encoded(path: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(byte);
    path.bytes()
        .map(|byte| match byte {
            byte if plain(&byte) => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

/// Who logs in: the URL's user, or a file of lines like mount.cifs's `username=`, `password=` and `domain=`.
fn login(location: &Location) -> Outcome<Login> {
    let file = location.text("credentials");
    let mut found = Login {
        domain: location.text("domain").to_owned(),
        ..Login::default()
    };
    if file.is_empty() {
        found.password = std::env::var(PASSWORD_VARIABLE).unwrap_or_default();
    } else {
        let refused = |errno: i32| {
            VolumeError::new(errno, "read the credentials in", file)
                .with_remedy("credentials= names a file with the lines username= and password=")
        };
        let size = fs::metadata(file)
            .map_err(|error| refused(error.raw_os_error().unwrap_or(libc::EIO)))?;
        if size.len() > CREDENTIALS_BYTES_MAX {
            return Err(refused(libc::EFBIG));
        }
        let text = fs::read_to_string(file)
            .map_err(|error| refused(error.raw_os_error().unwrap_or(libc::EILSEQ)))?;
        for line in text.lines() {
            match line.trim_start().split_once('=') {
                Some(("username" | "user", value)) => value.clone_into(&mut found.user),
                Some(("password" | "pass", value)) => value.clone_into(&mut found.password),
                Some(("domain" | "dom", value)) => value.clone_into(&mut found.domain),
                _ => {}
            }
        }
    }
    let (user, _) = location.user_and_host();
    if !user.is_empty() {
        user.clone_into(&mut found.user);
    }
    if found.user.is_empty() {
        found.password.clear();
    }
    Ok(found)
}

impl Share {
    /// Connects and looks into the directory.
    pub fn connect(location: &Location) -> Outcome<Self> {
        let manner = Manner {
            timeout_ms: location
                .number("timeout")
                .map_or(0, |seconds| seconds as i32 * 1000),
            protocol: location.text("protocol").to_owned(),
            encrypt: location.text("encrypt") == "yes",
            conf: location.text("smb_conf").to_owned(),
        };
        let client = Client::new(login(location)?, &manner).map_err(|why| match why {
            Refusal::Library(missing) => missing.into(),
            Refusal::Step(what, errno) => VolumeError::new(errno, what, &location.url)
                .with_remedy("check smb_conf= and protocol="),
        })?;
        let this = Self {
            client: Arc::new(Mutex::new(client)),
            location: location.clone(),
            base: format!(
                "smb://{}/{}",
                location.user_and_host().1,
                encoded(&location.path)
            ),
        };
        let found = lock(&this.client).meet(&this.full(""));
        match found {
            Ok((mode, _)) if mode & libc::S_IFMT == libc::S_IFDIR => Ok(this),
            Ok(_) => Err(this.unreachable(libc::ENOTDIR)),
            Err(errno) => Err(this.unreachable(-errno as i32)),
        }
    }

    fn unreachable(&self, errno: i32) -> VolumeError {
        let (user, server) = self.location.user_and_host();
        let who = if user.is_empty() { "a guest" } else { user };
        let share = self.location.path.split('/').next().unwrap_or_default();
        let remedy = match errno {
            libc::EACCES | libc::EPERM => format!(
                "{server} refuses {who}: check the user, the password ({PASSWORD_VARIABLE} or credentials=) and the \
                 share's rights"
            ),
            libc::ENOENT => {
                "check the share and the directory: one of them is not there".to_owned()
            }
            // The library has EINVAL for a login that failed, and for much else.
            libc::EINVAL => format!(
                "{server} refuses the login of {who}, or has no share {share} of this kind: check the user and the \
                 password ({PASSWORD_VARIABLE} or credentials=)"
            ),
            libc::ENODEV => format!("{server} has no share {share}"),
            libc::ETIMEDOUT | libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH => {
                format!(
                    "{server} does not answer: check the host and the port, and that the server runs"
                )
            }
            _ => format!("check that {server} serves SMB"),
        };
        VolumeError::new(errno, "look into", &self.location.url).with_remedy(&remedy)
    }

    fn list(&self, directory: &str) -> Outcome<Listing> {
        let listing = lock(&self.client).list(&self.full(directory));
        listing.map_err(|errno| VolumeError::new(-errno as i32, "list", directory))
    }

    /// Removes what was listed; true when more is left.
    fn remove_listed(
        &self,
        directory: &str,
        listing: &Listing,
        prefix: &str,
        until: Instant,
    ) -> Outcome<bool> {
        let chosen = |(name, _): &&(String, bool)| is_chosen(name, prefix);
        for (name, is_directory) in listing.names.iter().filter(chosen) {
            let path = format!("{directory}/{name}");
            let result = if *is_directory {
                let inner = self.list(&path)?;
                if inner.parent == 0 {
                    return Err(VolumeError::new(libc::ELOOP, "remove", &path).with_remedy(UNKNOWN));
                }
                if inner.parent != listing.number {
                    return Err(VolumeError::new(libc::ELOOP, "remove", &path).with_remedy(LINK));
                }
                if self.remove_listed(&path, &inner, "", until)? {
                    return Ok(true);
                }
                lock(&self.client).remove_directory(&self.full(&path))
            } else {
                lock(&self.client).unlink(&self.full(&path))
            };
            self.done(result, "remove", &path)?;
            if Instant::now() > until {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn full(&self, path: &str) -> CString {
        let path = path.trim_start_matches('/');
        let url = if path.is_empty() {
            self.base.clone()
        } else {
            format!("{}/{}", self.base, encoded(path))
        };
        CString::new(url).unwrap_or_default()
    }
}

impl Volume for Share {
    fn make_directory(&self, path: &str) -> Outcome<()> {
        let result = lock(&self.client).make_directory(&self.full(path));
        self.done(result, "make the directory", path)
    }

    fn put(&self, path: &str, bytes: &[u8]) -> Outcome<()> {
        self.write_whole(path, bytes).map(drop)
    }

    fn shown(&self, path: &str) -> String {
        self.full(path).to_string_lossy().into_owned()
    }

    fn names_in(&self, directory: &str, _limit: usize) -> Outcome<Vec<String>> {
        let listing = self.list(directory)?;
        Ok(listing.names.into_iter().map(|(name, _)| name).collect())
    }

    fn open(&self, path: &str, how: OpenHow, _file_bytes: u64) -> Outcome<Arc<dyn Handle>> {
        let access = if how.write {
            libc::O_RDWR
        } else {
            libc::O_RDONLY
        };
        let fresh = if how.fresh {
            libc::O_CREAT | libc::O_TRUNC
        } else {
            0
        };
        let opened = lock(&self.client).open(&self.full(path), access | fresh);
        let operation = if how.fresh { "create" } else { "open" };
        match opened {
            Ok(file) => Ok(Arc::new(Open {
                client: Arc::clone(&self.client),
                file,
            })),
            Err(errno) => Err(self.failed(errno, operation, path)),
        }
    }

    fn space(&self) -> Outcome<Space> {
        let found = lock(&self.client).space(&self.full(""));
        found.map(Space::from).map_err(|errno| {
            VolumeError::new(-errno as i32, "ask for the space of", &self.location.url)
        })
    }

    fn remove_files(&self, directory: &str, prefix: &str, until: Instant) -> Outcome<bool> {
        self.remove_listed(directory, &self.list(directory)?, prefix, until)
    }

    fn remove_directory(&self, directory: &str, mark: &str) -> Outcome<()> {
        let path = format!("{directory}/{mark}");
        let result = lock(&self.client).unlink(&self.full(&path));
        self.removed(result, &path)?;
        let result = lock(&self.client).remove_directory(&self.full(directory));
        self.done(result, "remove", directory)
    }

    fn names(&self) -> Outcome<Box<dyn Names>> {
        let own = Self::connect(&self.location)?;
        Ok(Box::new(PathNames::new(Calls {
            client: own.client,
            base: self.base.clone(),
        })))
    }

    /// A connection serves one call at a time.
    fn lane(&self) -> Outcome<Option<Arc<dyn Volume>>> {
        Ok(Some(Arc::new(Self::connect(&self.location)?)))
    }

    fn notes(&self) -> Option<String> {
        Some(format!(
            "smb: Samba {}; a connection of its own for each outstanding operation; libsmbclient has no call that syncs \
             a file",
            lock(&self.client).version()
        ))
    }
}

impl Handle for Open {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> i64 {
        lock(&self.client).read(self.file, buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> i64 {
        lock(&self.client).write(self.file, buffer, offset)
    }

    /// The library has no such call; jobs that need one are refused before they start.
    fn sync(&self, _data_only: bool) -> i64 {
        -i64::from(libc::ENOTSUP)
    }

    fn size(&self) -> i64 {
        lock(&self.client).size(self.file)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        lock(&self.client).close(self.file);
    }
}

/// One thread's connection of its own. Names are leadline's own, which a URL holds as they are.
struct Calls {
    client: Arc<Mutex<Client>>,
    /// The URL of the location's directory.
    base: String,
}

impl PathCalls for Calls {
    type File = Opened;

    fn full(&self, path: &Path) -> CString {
        let path = path.to_string_lossy();
        let url = format!("{}/{}", self.base, encoded(path.trim_start_matches('/')));
        CString::new(url).unwrap_or_default()
    }

    fn open(&mut self, path: &CStr, how: OpenAs) -> Result<Opened, i64> {
        let flags = match how {
            OpenAs::New => libc::O_RDWR | libc::O_CREAT | libc::O_EXCL,
            OpenAs::Read { .. } => libc::O_RDONLY,
        };
        lock(&self.client).open(path, flags)
    }

    fn write(&mut self, file: &Opened, data: &[u8], offset: u64) -> i64 {
        lock(&self.client).write(*file, data, offset)
    }

    fn read(&mut self, file: &Opened, buffer: &mut [u8]) -> i64 {
        lock(&self.client).read(*file, buffer, 0)
    }

    fn close(&mut self, file: Opened) -> i64 {
        lock(&self.client).close(file)
    }

    fn stat(&mut self, path: &CStr) -> i64 {
        lock(&self.client)
            .stat(path)
            .map_or_else(|errno| errno, |_| 0)
    }

    fn rename(&mut self, from: &CStr, to: &CStr) -> i64 {
        lock(&self.client).rename(from, to)
    }

    fn unlink(&mut self, path: &CStr) -> i64 {
        lock(&self.client).unlink(path)
    }

    fn make_directory(&mut self, path: &CStr) -> i64 {
        lock(&self.client).make_directory(path)
    }

    fn remove_directory(&mut self, path: &CStr) -> i64 {
        lock(&self.client).remove_directory(path)
    }

    fn list(&mut self, path: &CStr) -> i64 {
        lock(&self.client)
            .names(path)
            .map_or_else(|errno| errno, |_| 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_encoded_for_its_url() {
        assert_eq!(encoded("a b/c#%.é"), "a%20b/c%23%25.%C3%A9");
    }

    #[test]
    fn credentials_come_from_their_file_and_a_guest_has_none() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("credentials");
        fs::write(&file, "username=ann\npassword=a=b\ndomain=LAB\n").unwrap();
        let url = format!("smb://host/share?credentials={}", file.display());
        let found = login(&Location::parse(&url).unwrap()).unwrap();
        assert_eq!(
            (&*found.user, &*found.password, &*found.domain),
            ("ann", "a=b", "LAB")
        );
        let guest = login(&Location::parse("smb://host/share").unwrap()).unwrap();
        assert!(guest.user.is_empty() && guest.password.is_empty());
    }
}
