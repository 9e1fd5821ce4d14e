//! A client of SMB through libsmbclient, with calls that block.
//!
//! The library keeps one connection for each context, and a context serves one call at a time. What is global in it
//! is either kept for each thread (`threads`) or touched only while contexts are made and freed, which
//! `SETTING_UP` keeps apart.

use std::ffi::{CStr, c_char, c_int};
use std::sync::{Mutex, MutexGuard};

use super::calls::{
    ATTRIBUTE_DIRECTORY, Context, ENCRYPT_REQUIRE, File, KIND_DIRECTORY, KIND_FILE, Libsmbclient,
};
use super::home::Home;
use super::threads;
use crate::sync::lock;
use crate::sys::library::{Refusal, text};

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

/// One context, and with it one connection to each server it meets. It serves one call at a time.
pub struct Client {
    library: &'static Libsmbclient,
    context: Context,
    /// The context points to it.
    _login: Box<Login>,
}

// SAFETY: a context is bound to no thread; it only serves one call at a time, which `&mut self` sees to.
unsafe impl Send for Client {}

/// Names with true for a directory, and the server's numbers of the directory itself and of where it lies.
#[derive(Debug, Default)]
pub struct Listing {
    pub names: Vec<(String, bool)>,
    pub number: u64,
    pub parent: u64,
}

/// A file of the client that opened it.
#[derive(Debug, Clone, Copy)]
pub struct Opened(File);

// SAFETY: only a number to everybody but the client, which checks it against its own list.
unsafe impl Send for Opened {}
// SAFETY: as above.
unsafe impl Sync for Opened {}

/// Held while contexts are made and freed, and while they meet their server: libsmbclient 4.17 does not bear several
/// first logins at once (one in forty failed, with EINVAL or ENOMEM). True when the library has read its settings.
static SETTING_UP: Mutex<bool> = Mutex::new(false);

fn setting_up() -> MutexGuard<'static, bool> {
    lock(&SETTING_UP)
}

fn errno() -> i32 {
    let found = std::io::Error::last_os_error();
    found
        .raw_os_error()
        .filter(|errno| *errno != 0)
        .unwrap_or(libc::EIO)
}

/// What a call gave, or minus errno.
fn outcome(result: i64) -> i64 {
    if result < 0 {
        -i64::from(errno())
    } else {
        result
    }
}

/// The same apart.
fn checked(result: c_int) -> Result<(), i64> {
    match outcome(result.into()) {
        errno if errno < 0 => Err(errno),
        _ => Ok(()),
    }
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

fn refused(step: &'static str, error: &std::io::Error) -> Refusal {
    Refusal::Step(step, error.raw_os_error().unwrap_or(libc::EIO))
}

impl Client {
    /// A client that has met no server yet.
    pub fn new(login: Login, manner: &Manner) -> Result<Self, Refusal> {
        let library = Libsmbclient::get().map_err(Refusal::Library)?;
        let mut ready = setting_up();
        let home = if *ready {
            None
        } else {
            threads::tell().map_err(Refusal::Library)?;
            let made = Home::make(&manner.conf);
            Some(made.map_err(|error| refused("make settings for SMB", &error))?)
        };
        // SAFETY: nobody else makes or frees a context now. The first call reads the settings.
        let context = unsafe { (library.smbc_new_context)() };
        let failed = errno();
        let gone = home.map_or(Ok(()), Home::remove);
        if context.is_null() {
            return Err(Refusal::Step("make a client of SMB", failed));
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
        gone.map_err(|error| refused("remove its settings for SMB", &error))?;
        // SAFETY: nobody else sets a context up now.
        if unsafe { (library.smbc_init_context)(context) }.is_null() {
            return Err(Refusal::Step("set up a client of SMB", errno()));
        }
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
        outcome(i64::from(unsafe {
            (self.library.smbc_getFunctionClose)(self.context)(self.context, file.0)
        }))
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
        outcome(moved as i64)
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
        outcome(moved as i64)
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
        match outcome(found) {
            errno if errno < 0 => Err(errno),
            _ => Ok(()),
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
        checked(result).map_or_else(|errno| errno, |()| found.st_size)
    }

    /// The first `stat`, which connects and logs in: one client of the process after another.
    pub fn meet(&mut self, url: &CStr) -> Result<(u32, i64), i64> {
        let _alone = setting_up();
        self.stat(url)
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
        checked(result).map(|()| (found.st_mode, found.st_size))
    }

    /// 0, or minus errno.
    pub fn make_directory(&mut self, url: &CStr) -> i64 {
        // SAFETY: the text lives for the call.
        outcome(i64::from(unsafe {
            (self.library.smbc_getFunctionMkdir)(self.context)(self.context, url.as_ptr(), 0o755)
        }))
    }

    /// 0, or minus errno.
    pub fn remove_directory(&mut self, url: &CStr) -> i64 {
        // SAFETY: the text lives for the call.
        outcome(i64::from(unsafe {
            (self.library.smbc_getFunctionRmdir)(self.context)(self.context, url.as_ptr())
        }))
    }

    /// 0, or minus errno.
    pub fn unlink(&mut self, url: &CStr) -> i64 {
        // SAFETY: the text lives for the call.
        outcome(i64::from(unsafe {
            (self.library.smbc_getFunctionUnlink)(self.context)(self.context, url.as_ptr())
        }))
    }

    /// 0, or minus errno.
    pub fn rename(&mut self, from: &CStr, to: &CStr) -> i64 {
        let context = self.context;
        // SAFETY: both texts live for the call.
        outcome(i64::from(unsafe {
            (self.library.smbc_getFunctionRename)(context)(
                context,
                from.as_ptr(),
                context,
                to.as_ptr(),
            )
        }))
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
        checked(result)?;
        // Without SMB's POSIX extensions, `f_bsize` is a sector's bytes and `f_frsize` the sectors of a block.
        let block_bytes = found.f_bsize * found.f_frsize.max(1);
        Ok((found.f_blocks * block_bytes, found.f_bfree * block_bytes))
    }

    /// A directory with its number and its parent's: those that the server has for `.` and `..` in it. They tell
    /// where it really is, which its path does not: servers follow links, and show none.
    pub fn list(&mut self, url: &CStr) -> Result<Listing, i64> {
        let (library, context) = (self.library, self.context);
        // SAFETY: the text lives for the call.
        let opened = unsafe { (library.smbc_getFunctionOpendir)(context)(context, url.as_ptr()) };
        if opened.is_null() {
            return Err(-i64::from(errno()));
        }
        let mut listing = Listing::default();
        loop {
            // SAFETY: an all-zero stat is one.
            let mut facts: libc::stat = unsafe { std::mem::zeroed() };
            // SAFETY: the directory is open; the entry lives until the next call on it.
            let entry = unsafe {
                (library.smbc_getFunctionReaddirPlus2)(context)(context, opened, &raw mut facts)
                    .as_ref()
            };
            let Some(entry) = entry else { break };
            // SAFETY: the library ends the name with a zero.
            let name = unsafe { CStr::from_ptr(entry.name) };
            match name.to_bytes() {
                b"." => listing.number = facts.st_ino,
                b".." => listing.parent = facts.st_ino,
                _ => listing.names.push((
                    name.to_string_lossy().into_owned(),
                    entry.attributes & ATTRIBUTE_DIRECTORY != 0,
                )),
            }
        }
        // SAFETY: the directory is open, and closed once.
        unsafe { (library.smbc_getFunctionClosedir)(context)(context, opened) };
        Ok(listing)
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
