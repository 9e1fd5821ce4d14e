//! libsmbclient by dlopen: a client of SMB with calls that block. Its header: libsmbclient.h of Samba 4.
//!
//! The library keeps one connection for each context, and a context serves one call at a time. What is global in it
//! (its settings, its table of contexts) is touched only while contexts are made and freed, which `SETTING_UP`
//! keeps apart; `smbc_thread_posix` does the same where the library still has it (Debian 12's has not).

use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::sys::library::{Missing, functions};

type Context = *mut c_void;
type File = *mut c_void;
type AskLogin = extern "C" fn(
    Context,
    *const c_char,
    *const c_char,
    *mut c_char,
    c_int,
    *mut c_char,
    c_int,
    *mut c_char,
    c_int,
);
type Open = unsafe extern "C" fn(Context, *const c_char, c_int, libc::mode_t) -> File;
type Read = unsafe extern "C" fn(Context, File, *mut c_void, usize) -> isize;
type Write = unsafe extern "C" fn(Context, File, *const c_void, usize) -> isize;
type Seek = unsafe extern "C" fn(Context, File, libc::off_t, c_int) -> libc::off_t;
type OfFile = unsafe extern "C" fn(Context, File) -> c_int;
type StatFile = unsafe extern "C" fn(Context, File, *mut libc::stat) -> c_int;
type StatPath = unsafe extern "C" fn(Context, *const c_char, *mut libc::stat) -> c_int;
type OfPath = unsafe extern "C" fn(Context, *const c_char) -> c_int;
type MakePath = unsafe extern "C" fn(Context, *const c_char, libc::mode_t) -> c_int;
type Space = unsafe extern "C" fn(Context, *mut c_char, *mut libc::statvfs) -> c_int;
type OpenDirectory = unsafe extern "C" fn(Context, *const c_char) -> File;
type ReadDirectory = unsafe extern "C" fn(Context, File) -> *const Entry;
type Rename = unsafe extern "C" fn(Context, *const c_char, Context, *const c_char) -> c_int;
type Of<T> = unsafe extern "C" fn(Context) -> T;
type SetNumber = unsafe extern "C" fn(Context, c_int);

/// `struct smbc_dirent`: the name follows.
#[repr(C)]
pub struct Entry {
    kind: u32,
    entry_bytes: u32,
    comment_bytes: u32,
    comment: *const c_char,
    name_bytes: u32,
    name: [c_char; 1],
}

/// `SMBC_DIR` and `SMBC_FILE`.
const KIND_DIRECTORY: u32 = 7;
const KIND_FILE: u32 = 8;
/// `SMBC_ENCRYPTLEVEL_REQUIRE`.
const ENCRYPT_REQUIRE: c_int = 2;

functions! {
    /// The functions that are used, by the library's own names.
    #[allow(non_snake_case)]
    Libsmbclient from &["libsmbclient.so.0"], "libsmbclient";
    smbc_version: unsafe extern "C" fn() -> *const c_char,
    smbc_new_context: unsafe extern "C" fn() -> Context,
    smbc_init_context: unsafe extern "C" fn(Context) -> Context,
    smbc_free_context: unsafe extern "C" fn(Context, c_int) -> c_int,
    smbc_setDebug: SetNumber,
    smbc_setTimeout: SetNumber,
    smbc_setOptionDebugToStderr: SetNumber,
    smbc_setOptionUseKerberos: SetNumber,
    smbc_setOptionNoAutoAnonymousLogin: SetNumber,
    smbc_setOptionSmbEncryptionLevel: SetNumber,
    smbc_setOptionProtocols: unsafe extern "C" fn(Context, *const c_char, *const c_char) -> c_int,
    smbc_setOptionUserData: unsafe extern "C" fn(Context, *mut c_void),
    smbc_getOptionUserData: unsafe extern "C" fn(Context) -> *mut c_void,
    smbc_setFunctionAuthDataWithContext: unsafe extern "C" fn(Context, AskLogin),
    smbc_getFunctionOpen: Of<Open>,
    smbc_getFunctionRead: Of<Read>,
    smbc_getFunctionWrite: Of<Write>,
    smbc_getFunctionLseek: Of<Seek>,
    smbc_getFunctionClose: Of<OfFile>,
    smbc_getFunctionFstat: Of<StatFile>,
    smbc_getFunctionStat: Of<StatPath>,
    smbc_getFunctionUnlink: Of<OfPath>,
    smbc_getFunctionMkdir: Of<MakePath>,
    smbc_getFunctionRmdir: Of<OfPath>,
    smbc_getFunctionRename: Of<Rename>,
    smbc_getFunctionStatVFS: Of<Space>,
    smbc_getFunctionOpendir: Of<OpenDirectory>,
    smbc_getFunctionReaddir: Of<ReadDirectory>,
    smbc_getFunctionClosedir: Of<OfFile>,
}

/// Who logs in. Without a name: nobody, as a guest. No `Debug`: the password is shown nowhere.
#[derive(Clone, Default)]
pub struct Login {
    pub user: String,
    pub password: String,
    pub domain: String,
}

/// How a client behaves.
#[derive(Debug, Clone, Default)]
pub struct Manner {
    pub timeout_ms: i32,
    /// The highest version of the protocol, in smb.conf's words; empty: the library's.
    pub protocol: String,
    pub encrypt: bool,
    /// A smb.conf of the user's own; empty: none is read.
    pub conf: String,
}

/// What went wrong while making a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    Library(Missing),
    /// The step in words, and its errno.
    Step(&'static str, i32),
}

/// One context, and with it one connection to each server it meets. It serves one call at a time.
pub struct Client {
    library: &'static Libsmbclient,
    context: Context,
    /// The context points to it.
    _login: Box<Login>,
}

// SAFETY: a context is bound to no thread; it only serves one call at a time, which `&mut self` sees to.
unsafe impl Send for Client {}

/// A file of the client that opened it.
#[derive(Debug, Clone, Copy)]
pub struct Opened(File);

// SAFETY: only a number to everybody but the client, which checks it against its own list.
unsafe impl Send for Opened {}
// SAFETY: as above.
unsafe impl Sync for Opened {}

/// Held while contexts are made and freed; true when the library has read its settings.
static SETTING_UP: Mutex<bool> = Mutex::new(false);

fn setting_up() -> MutexGuard<'static, bool> {
    SETTING_UP.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text(value: &str) -> CString {
    CString::new(value).unwrap_or_default()
}

fn errno() -> i32 {
    let found = std::io::Error::last_os_error();
    found
        .raw_os_error()
        .filter(|errno| *errno != 0)
        .unwrap_or(libc::EIO)
}

fn outcome(result: c_int) -> i64 {
    if result < 0 { -i64::from(errno()) } else { 0 }
}

/// Copies a text into the library's buffer, cut to what it holds.
fn fill(buffer: *mut c_char, room: c_int, value: &str) {
    let length = value.len().min(usize::try_from(room - 1).unwrap_or(0));
    if room > 0 {
        // SAFETY: the library says that `room` bytes are there.
        unsafe {
            std::ptr::copy_nonoverlapping(value.as_ptr(), buffer.cast(), length);
            buffer.add(length).write(0);
        }
    }
}

/// Called by the library when a server asks who it is.
extern "C" fn ask_login(
    context: Context,
    _server: *const c_char,
    _share: *const c_char,
    domain: *mut c_char,
    domain_room: c_int,
    user: *mut c_char,
    user_room: c_int,
    password: *mut c_char,
    password_room: c_int,
) {
    let Ok(library) = Libsmbclient::get() else {
        return;
    };
    // SAFETY: the context is a client's, whose login lives as long as it.
    let login = unsafe { &*(library.smbc_getOptionUserData)(context).cast::<Login>() };
    if !login.domain.is_empty() {
        fill(domain, domain_room, &login.domain);
    }
    fill(user, user_room, &login.user);
    fill(password, password_room, &login.password);
}

/// A home without a smb.conf but leadline's, for as long as the library reads its settings: it takes the user's
/// otherwise, and keeps caches in the system's directories.
struct Home {
    before: Option<OsString>,
    directory: std::path::PathBuf,
}

impl Home {
    fn make(conf: &str) -> std::io::Result<Self> {
        let name = format!("leadline-smb-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&directory);
        let own = directory.join(".smb");
        fs::create_dir_all(&own)?;
        fs::write(own.join("smb.conf"), settings(&directory, conf))?;
        let before = std::env::var_os("HOME");
        // SAFETY: nothing of ours reads the environment in a worker past its start, and the engine's threads wait
        // for this connection.
        unsafe { std::env::set_var("HOME", &directory) };
        Ok(Self { before, directory })
    }
}

/// Everything that the library would keep goes to a directory that is about to vanish.
fn settings(directory: &Path, conf: &str) -> String {
    let place = directory.display();
    let mut lines = vec!["[global]".to_owned()];
    for kind in ["lock", "state", "cache", "private", "pid"] {
        lines.push(format!("{kind} directory = {place}"));
    }
    lines.push("log level = 0".to_owned());
    lines.push("disable netbios = yes".to_owned());
    if !conf.is_empty() {
        lines.push(format!("include = {conf}"));
    }
    lines.join("\n") + "\n"
}

impl Drop for Home {
    fn drop(&mut self) {
        // SAFETY: as of `make`.
        unsafe {
            match &self.before {
                Some(before) => std::env::set_var("HOME", before),
                None => std::env::remove_var("HOME"),
            }
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Client {
    /// A client that has met no server yet.
    pub fn new(login: Login, manner: &Manner) -> Result<Self, Refusal> {
        let library = Libsmbclient::get().map_err(Refusal::Library)?;
        let mut ready = setting_up();
        // SAFETY: nobody else makes or frees a context now.
        let context = unsafe { (library.smbc_new_context)() };
        if context.is_null() {
            return Err(Refusal::Step("make a client of SMB", errno()));
        }
        let login = Box::new(login);
        let pointer = std::ptr::from_ref(login.as_ref()).cast_mut().cast();
        // SAFETY: the context was just made; the login's address stays as long as the context.
        unsafe {
            (library.smbc_setDebug)(context, 0);
            (library.smbc_setOptionDebugToStderr)(context, 1);
            (library.smbc_setTimeout)(context, manner.timeout_ms);
            (library.smbc_setOptionUseKerberos)(context, 0);
            // A refused password must not become a guest's login without a word.
            (library.smbc_setOptionNoAutoAnonymousLogin)(context, 1);
            (library.smbc_setOptionUserData)(context, pointer);
            (library.smbc_setFunctionAuthDataWithContext)(context, ask_login);
        }
        let this = Self {
            library,
            context,
            _login: login,
        };
        let home = if *ready {
            None
        } else {
            let made = Home::make(&manner.conf);
            let why = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO);
            Some(made.map_err(|error| Refusal::Step("make settings for SMB", why(error)))?)
        };
        // SAFETY: nobody else sets a context up now.
        if unsafe { (library.smbc_init_context)(context) }.is_null() {
            return Err(Refusal::Step("set up a client of SMB", errno()));
        }
        drop(home);
        *ready = true;
        this.choose(manner)
    }

    fn choose(self, manner: &Manner) -> Result<Self, Refusal> {
        if manner.encrypt {
            // SAFETY: the context is set up and not shared yet.
            unsafe {
                (self.library.smbc_setOptionSmbEncryptionLevel)(self.context, ENCRYPT_REQUIRE)
            };
        }
        if !manner.protocol.is_empty() {
            let highest = text(&manner.protocol);
            // SAFETY: null leaves the lowest version as it is; the text lives for the call.
            let taken = unsafe {
                (self.library.smbc_setOptionProtocols)(
                    self.context,
                    std::ptr::null(),
                    highest.as_ptr(),
                )
            };
            if taken == 0 {
                return Err(Refusal::Step("choose the protocol=", libc::EINVAL));
            }
        }
        Ok(self)
    }

    /// Samba's version.
    pub fn version(&self) -> String {
        // SAFETY: the library returns a constant text.
        unsafe { CStr::from_ptr((self.library.smbc_version)()) }
            .to_string_lossy()
            .into_owned()
    }

    /// A file, or minus errno.
    pub fn open(&mut self, url: &CStr, flags: i32) -> Result<Opened, i64> {
        // SAFETY: the text lives for the call.
        let file = unsafe {
            (self.library.smbc_getFunctionOpen)(self.context)(
                self.context,
                url.as_ptr(),
                flags,
                0o644,
            )
        };
        if file.is_null() {
            Err(-i64::from(errno()))
        } else {
            Ok(Opened(file))
        }
    }

    /// Closes a file of `open`.
    pub fn close(&mut self, file: Opened) -> i64 {
        // SAFETY: the file is this client's.
        outcome(unsafe { (self.library.smbc_getFunctionClose)(self.context)(self.context, file.0) })
    }

    /// Bytes read, or minus errno.
    pub fn read(&mut self, file: Opened, buffer: &mut [u8], offset: u64) -> i64 {
        if let Err(errno) = self.seek(file, offset) {
            return errno;
        }
        // SAFETY: pointer and length are those of `buffer`, which outlives the call.
        let moved = unsafe {
            (self.library.smbc_getFunctionRead)(self.context)(
                self.context,
                file.0,
                buffer.as_mut_ptr().cast(),
                buffer.len(),
            )
        };
        if moved < 0 {
            -i64::from(errno())
        } else {
            moved as i64
        }
    }

    /// Bytes written, or minus errno.
    pub fn write(&mut self, file: Opened, buffer: &[u8], offset: u64) -> i64 {
        if let Err(errno) = self.seek(file, offset) {
            return errno;
        }
        // SAFETY: pointer and length are those of `buffer`, which outlives the call.
        let moved = unsafe {
            (self.library.smbc_getFunctionWrite)(self.context)(
                self.context,
                file.0,
                buffer.as_ptr().cast(),
                buffer.len(),
            )
        };
        if moved < 0 {
            -i64::from(errno())
        } else {
            moved as i64
        }
    }

    /// Sets the file's position, which the library keeps on this side.
    fn seek(&mut self, file: Opened, offset: u64) -> Result<(), i64> {
        let offset = libc::off_t::try_from(offset).map_err(|_| -i64::from(libc::EOVERFLOW))?;
        // SAFETY: the file is this client's.
        let found = unsafe {
            (self.library.smbc_getFunctionLseek)(self.context)(
                self.context,
                file.0,
                offset,
                libc::SEEK_SET,
            )
        };
        if found < 0 {
            Err(-i64::from(errno()))
        } else {
            Ok(())
        }
    }

    /// The file's bytes, or minus errno.
    pub fn size(&mut self, file: Opened) -> i64 {
        // SAFETY: an all-zero stat is one; the file is this client's.
        let mut found: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let result = unsafe {
            (self.library.smbc_getFunctionFstat)(self.context)(self.context, file.0, &raw mut found)
        };
        if result < 0 {
            -i64::from(errno())
        } else {
            found.st_size
        }
    }

    /// Mode and bytes of what `url` names, or minus errno.
    pub fn stat(&mut self, url: &CStr) -> Result<(u32, i64), i64> {
        // SAFETY: an all-zero stat is one; the text lives for the call.
        let mut found: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let result = unsafe {
            (self.library.smbc_getFunctionStat)(self.context)(
                self.context,
                url.as_ptr(),
                &raw mut found,
            )
        };
        if result < 0 {
            Err(-i64::from(errno()))
        } else {
            Ok((found.st_mode, found.st_size))
        }
    }

    /// 0, or minus errno.
    pub fn make_directory(&mut self, url: &CStr) -> i64 {
        // SAFETY: the text lives for the call.
        outcome(unsafe {
            (self.library.smbc_getFunctionMkdir)(self.context)(self.context, url.as_ptr(), 0o755)
        })
    }

    /// 0, or minus errno.
    pub fn remove_directory(&mut self, url: &CStr) -> i64 {
        // SAFETY: the text lives for the call.
        outcome(unsafe {
            (self.library.smbc_getFunctionRmdir)(self.context)(self.context, url.as_ptr())
        })
    }

    /// 0, or minus errno.
    pub fn unlink(&mut self, url: &CStr) -> i64 {
        // SAFETY: the text lives for the call.
        outcome(unsafe {
            (self.library.smbc_getFunctionUnlink)(self.context)(self.context, url.as_ptr())
        })
    }

    /// 0, or minus errno.
    pub fn rename(&mut self, from: &CStr, to: &CStr) -> i64 {
        let context = self.context;
        // SAFETY: both texts live for the call.
        outcome(unsafe {
            (self.library.smbc_getFunctionRename)(context)(
                context,
                from.as_ptr(),
                context,
                to.as_ptr(),
            )
        })
    }

    /// (total, free) bytes, or minus errno.
    pub fn space(&mut self, url: &CStr) -> Result<(u64, u64), i64> {
        // SAFETY: an all-zero statvfs is one; the library does not write to the text.
        let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let result = unsafe {
            (self.library.smbc_getFunctionStatVFS)(self.context)(
                self.context,
                url.as_ptr().cast_mut(),
                &raw mut found,
            )
        };
        if result < 0 {
            return Err(-i64::from(errno()));
        }
        // Without SMB's POSIX extensions, `f_bsize` is a sector's bytes and `f_frsize` the sectors of a block.
        let block_bytes = found.f_bsize * found.f_frsize.max(1);
        Ok((found.f_blocks * block_bytes, found.f_bfree * block_bytes))
    }

    /// Names of a directory's files and directories, with true for a directory; or minus errno.
    pub fn names(&mut self, url: &CStr) -> Result<Vec<(String, bool)>, i64> {
        let (library, context) = (self.library, self.context);
        // SAFETY: the text lives for the call.
        let listing = unsafe { (library.smbc_getFunctionOpendir)(context)(context, url.as_ptr()) };
        if listing.is_null() {
            return Err(-i64::from(errno()));
        }
        let mut names = Vec::new();
        loop {
            // SAFETY: the listing is open; the entry lives until the next call on it.
            let entry = unsafe { (library.smbc_getFunctionReaddir)(context)(context, listing) };
            if entry.is_null() {
                break;
            }
            // SAFETY: the library ends the name, which follows the entry's head, with a zero.
            let (kind, name) = unsafe {
                let name = (&raw const (*entry).name).cast::<c_char>();
                ((*entry).kind, CStr::from_ptr(name))
            };
            let name = name.to_string_lossy().into_owned();
            if [KIND_FILE, KIND_DIRECTORY].contains(&kind) && name != "." && name != ".." {
                names.push((name, kind == KIND_DIRECTORY));
            }
        }
        // SAFETY: the listing is open, and closed once.
        unsafe { (library.smbc_getFunctionClosedir)(context)(context, listing) };
        Ok(names)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _alone = setting_up();
        // SAFETY: nobody uses the context any more; 1 closes its files and connections.
        unsafe { (self.library.smbc_free_context)(self.context, 1) };
    }
}
