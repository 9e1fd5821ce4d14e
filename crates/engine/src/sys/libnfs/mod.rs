//! libnfs by dlopen: one connection, its asynchronous calls, each waited for with a deadline of ours.
//!
//! Its header: nfsc/libnfs.h of libnfs 4.0, whose library is libnfs.so.13. Later ones have other prototypes.
//! A connection belongs to one thread at a time. On version 4 an OPEN that failed is answered again to the next
//! one (the library does not count it), so a connection is given up with it.

mod calls;
mod compound;

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub use calls::{Action, Queue};

use crate::sys::library::{Missing, functions, text};

type Handle = *mut c_void;
type Callback = extern "C" fn(error: c_int, nfs: Handle, data: *mut c_void, own: *mut c_void);
type RpcCallback = extern "C" fn(rpc: Handle, status: c_int, data: *mut c_void, own: *mut c_void);
type Decode = extern "C" fn(zdr: Handle, into: *mut c_void) -> u32;

functions! {
    /// The functions that are used.
    Libnfs from &["libnfs.so.13"], "libnfs13";
    nfs_init_context: unsafe extern "C" fn() -> Handle,
    nfs_destroy_context: unsafe extern "C" fn(Handle),
    nfs4_set_client_name: unsafe extern "C" fn(Handle, *const c_char),
    nfs4_set_verifier: unsafe extern "C" fn(Handle, *const c_char),
    nfs_parse_url_incomplete: unsafe extern "C" fn(Handle, *const c_char) -> Handle,
    nfs_destroy_url: unsafe extern "C" fn(Handle),
    nfs_set_timeout: unsafe extern "C" fn(Handle, c_int),
    nfs_get_error: unsafe extern "C" fn(Handle) -> *const c_char,
    nfs_get_fd: unsafe extern "C" fn(Handle) -> c_int,
    nfs_which_events: unsafe extern "C" fn(Handle) -> c_int,
    nfs_service: unsafe extern "C" fn(Handle, c_int) -> c_int,
    nfs_get_readmax: unsafe extern "C" fn(Handle) -> u64,
    nfs_get_writemax: unsafe extern "C" fn(Handle) -> u64,
    nfs_mount_async: unsafe extern "C" fn(Handle, *const c_char, *const c_char, Callback, *mut c_void) -> c_int,
    nfs_open2_async: unsafe extern "C" fn(Handle, *const c_char, c_int, c_int, Callback, *mut c_void) -> c_int,
    nfs_close_async: unsafe extern "C" fn(Handle, Handle, Callback, *mut c_void) -> c_int,
    nfs_fstat64_async: unsafe extern "C" fn(Handle, Handle, Callback, *mut c_void) -> c_int,
    nfs_lstat64_async: unsafe extern "C" fn(Handle, *const c_char, Callback, *mut c_void) -> c_int,
    nfs_chmod_async: unsafe extern "C" fn(Handle, *const c_char, c_int, Callback, *mut c_void) -> c_int,
    nfs_mkdir2_async: unsafe extern "C" fn(Handle, *const c_char, c_int, Callback, *mut c_void) -> c_int,
    nfs_rmdir_async: unsafe extern "C" fn(Handle, *const c_char, Callback, *mut c_void) -> c_int,
    nfs_unlink_async: unsafe extern "C" fn(Handle, *const c_char, Callback, *mut c_void) -> c_int,
    nfs_rename_async: unsafe extern "C" fn(Handle, *const c_char, *const c_char, Callback, *mut c_void) -> c_int,
    nfs_opendir_async: unsafe extern "C" fn(Handle, *const c_char, Callback, *mut c_void) -> c_int,
    nfs_readdir: unsafe extern "C" fn(Handle, Handle) -> *const Entry,
    nfs_closedir: unsafe extern "C" fn(Handle, Handle),
    nfs_statvfs_async: unsafe extern "C" fn(Handle, *const c_char, Callback, *mut c_void) -> c_int,
    nfs_fsync_async: unsafe extern "C" fn(Handle, Handle, Callback, *mut c_void) -> c_int,
    nfs_pread_async: unsafe extern "C" fn(Handle, Handle, u64, u64, Callback, *mut c_void) -> c_int,
    nfs_pwrite_async: unsafe extern "C" fn(Handle, Handle, u64, u64, *const c_char, Callback, *mut c_void) -> c_int,
    nfs_get_fh: unsafe extern "C" fn(Handle) -> *const FileHandle,
    nfs_get_rpc_context: unsafe extern "C" fn(Handle) -> Handle,
    rpc_allocate_pdu2: unsafe extern "C" fn(
        Handle, c_int, c_int, c_int, RpcCallback, *mut c_void, Decode, c_int, usize,
    ) -> Handle,
    rpc_free_pdu: unsafe extern "C" fn(Handle, Handle),
    rpc_queue_pdu: unsafe extern "C" fn(Handle, Handle) -> c_int,
    libnfs_zdr_getpos: unsafe extern "C" fn(Handle) -> u32,
    libnfs_zdr_u_int: unsafe extern "C" fn(Handle, *mut u32) -> u32,
    libnfs_zdr_opaque: unsafe extern "C" fn(Handle, *mut c_char, u32) -> u32,
}

/// What a server calls a file: `struct nfs_fh`.
#[repr(C)]
pub struct FileHandle {
    length: c_int,
    value: *const u8,
}

/// The beginning of `struct nfsdirent`.
#[repr(C)]
pub struct Entry {
    next: *const Entry,
    name: *const c_char,
}

/// `struct nfs_stat_64`.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub struct Facts {
    pub device: u64,
    pub inode: u64,
    pub mode: u64,
    pub links: u64,
    pub user: u64,
    pub group: u64,
    pub special: u64,
    pub size_bytes: u64,
    pub block_bytes: u64,
    pub blocks: u64,
    pub times: [u64; 3],
}

/// A request of the library holds no more, whatever the server offers: 4.0 ends the connection past it.
const PIECE_BYTES_MAX: u64 = 1 << 20;
/// How long a server may take to take a connection, and to mount.
pub const CONNECT_S: u64 = 10;
/// The library's own timer says no more than that a call was cut off, so ours is the first.
const LIBRARY_WAITS_ON: Duration = Duration::from_secs(1);
const PORTMAPPER: u16 = 111;
const NFS: u16 = 2049;
const CREATED_MODE: c_int = 0o644;
const DIRECTORY_MODE: c_int = 0o755;

/// How to reach an export. A port of 0 is asked for at the server's port mapper (version 3) or NFS's own.
#[derive(Debug, Clone, Default)]
pub struct Access {
    pub server: String,
    pub export: String,
    pub version: u32,
    pub port: u16,
    pub mount_port: u16,
    pub user: Option<u32>,
    pub group: Option<u32>,
    pub timeout: Duration,
}

/// What went wrong while connecting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    Library(Missing),
    /// The step in words, its errno, and what the library says.
    Step(&'static str, i32, String),
}

/// What is kept of an answer: the library's memory goes when its callback returns.
#[derive(Clone, Copy)]
enum Keep {
    Nothing,
    Handle,
    Facts,
    Space,
}

/// A call that is waited for. Its address must not change meanwhile.
struct Waiting {
    keep: Keep,
    done: Cell<bool>,
    error: Cell<c_int>,
    handle: Cell<Handle>,
    facts: Cell<Facts>,
    space: Cell<(u64, u64)>,
}

/// Called in `nfs_service`, so in the thread that waits.
extern "C" fn answered(error: c_int, _nfs: Handle, data: *mut c_void, own: *mut c_void) {
    // SAFETY: `own` is the `Waiting` of `Session::call`, which lives until this was called, or for ever.
    let waiting = unsafe { &*own.cast::<Waiting>() };
    waiting.error.set(error);
    if error >= 0 && !data.is_null() {
        match waiting.keep {
            Keep::Nothing => {}
            Keep::Handle => waiting.handle.set(data),
            // SAFETY: of a stat the data is a `struct nfs_stat_64`.
            Keep::Facts => waiting.facts.set(unsafe { *data.cast::<Facts>() }),
            Keep::Space => {
                // SAFETY: of a statvfs the data is the system's `struct statvfs`.
                let found = unsafe { &*data.cast::<libc::statvfs>() };
                let of = |blocks: u64| blocks * found.f_frsize;
                waiting.space.set((of(found.f_blocks), of(found.f_bavail)));
            }
        }
    }
    waiting.done.set(true);
}

/// One connection to an export, of one thread at a time. An answer that does not come in time ends it.
pub struct Session {
    library: &'static Libnfs,
    context: Handle,
    version: u32,
    timeout: Duration,
    lost: bool,
    pub read_bytes_max: u64,
    pub write_bytes_max: u64,
}

// SAFETY: a context may be used by any thread, one at a time; `&mut self` sees to that.
unsafe impl Send for Session {}

/// An open file of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFile(Handle);

// SAFETY: only its session follows the pointer, and that is one thread's at a time.
unsafe impl Send for OpenFile {}
// SAFETY: as above.
unsafe impl Sync for OpenFile {}

/// The library has no errno for a lost or refused connection and for a call that was cut off with it.
fn errno_of(error: c_int) -> i32 {
    match -error {
        libc::EFAULT | libc::EINTR => libc::ENOTCONN,
        errno if errno > 0 => errno,
        _ => libc::EIO,
    }
}

/// Differs between all connections of all processes: a server takes equal ones for one client that began anew.
fn client_name() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    format!("leadline {process} {} {number}", since.as_nanos())
}

/// Connects and leaves: the library waits much longer for a server that is not there, and says less.
fn knock(access: &Access) -> Result<(), Refusal> {
    let port = match (access.version, access.port) {
        (3, 0) => PORTMAPPER,
        (_, 0) => NFS,
        (_, port) => port,
    };
    let step = |errno: i32| {
        let words = format!("{} port {port}", access.server);
        Refusal::Step("connect to", errno, words)
    };
    let place = (access.server.trim_matches(['[', ']']), port);
    let addresses = place.to_socket_addrs().map_err(|_| {
        let words = format!("{}: the name is not known", access.server);
        Refusal::Step("look up", libc::ENOENT, words)
    })?;
    let mut errno = libc::EHOSTUNREACH;
    for address in addresses {
        match TcpStream::connect_timeout(&address, Duration::from_secs(CONNECT_S / 2)) {
            Ok(_) => return Ok(()),
            Err(error) => errno = error.raw_os_error().unwrap_or(libc::ETIMEDOUT),
        }
    }
    Err(step(errno))
}

impl Session {
    /// Connects and mounts, within `CONNECT_S`.
    pub fn connect(access: &Access) -> Result<Self, Refusal> {
        let library = Libnfs::get().map_err(Refusal::Library)?;
        knock(access)?;
        // SAFETY: takes nothing.
        let context = unsafe { (library.nfs_init_context)() };
        if context.is_null() {
            return Err(Refusal::Step("make a client", libc::ENOMEM, String::new()));
        }
        let mut this = Self {
            library,
            context,
            version: access.version,
            timeout: Duration::from_secs(CONNECT_S),
            lost: false,
            read_bytes_max: PIECE_BYTES_MAX,
            write_bytes_max: PIECE_BYTES_MAX,
        };
        this.configure(access);
        let (server, export) = (text(&access.server), text(&access.export));
        let mounted = this.call(Keep::Nothing, |library, nfs, own| {
            // SAFETY: the texts live until the call has ended.
            unsafe {
                (library.nfs_mount_async)(nfs, server.as_ptr(), export.as_ptr(), answered, own)
            }
        });
        if let Err(errno) = mounted {
            return Err(Refusal::Step("mount", errno, this.said()));
        }
        this.timeout = access.timeout;
        if !this.limits() {
            let words = "this libnfs cannot be given a large write of version 4".to_owned();
            return Err(Refusal::Step("use", libc::ENOTSUP, words));
        }
        Ok(this)
    }

    fn configure(&self, access: &Access) {
        let mut url = format!(
            "nfs://?version={}&autoreconnect=0&readahead=0&dircache=0",
            access.version
        );
        let mut add = |name: &str, value: Option<u32>| {
            if let Some(value) = value {
                url += &format!("&{name}={value}");
            }
        };
        add("uid", access.user);
        add("gid", access.group);
        add(
            "nfsport",
            (access.port > 0).then_some(u32::from(access.port)),
        );
        add(
            "mountport",
            (access.mount_port > 0).then_some(u32::from(access.mount_port)),
        );
        let (url, name) = (text(&url), client_name());
        // Eight bytes that differ from one connection to the next.
        let verifier = std::time::UNIX_EPOCH
            .elapsed()
            .unwrap_or_default()
            .as_nanos() as u64;
        let (library, nfs) = (self.library, self.context);
        // SAFETY: the context is ours; the texts are copied, and the verifier is as long as the protocol's.
        unsafe {
            (library.nfs_destroy_url)((library.nfs_parse_url_incomplete)(nfs, url.as_ptr()));
            (library.nfs4_set_client_name)(nfs, text(&name).as_ptr());
            (library.nfs4_set_verifier)(nfs, verifier.to_ne_bytes().as_ptr().cast());
            let patience = access.timeout + LIBRARY_WAITS_ON;
            let milliseconds = patience.as_millis().min(i32::MAX as u128);
            (library.nfs_set_timeout)(nfs, milliseconds as c_int);
        }
    }

    /// The longest requests; false where version 4 cannot be written to.
    fn limits(&mut self) -> bool {
        // SAFETY: the context is mounted.
        let (read, write) = unsafe {
            (
                (self.library.nfs_get_readmax)(self.context),
                (self.library.nfs_get_writemax)(self.context),
            )
        };
        // Of version 4 the library asks for neither and says 0.
        let within = |bytes: u64| match bytes {
            0 => PIECE_BYTES_MAX,
            bytes => bytes.min(PIECE_BYTES_MAX),
        };
        (self.read_bytes_max, self.write_bytes_max) = (within(read), within(write));
        self.version == 3 || self.can_compound()
    }

    /// The library's words for the last error.
    fn said(&self) -> String {
        // SAFETY: the text, if there is one, is the context's and is copied at once.
        unsafe {
            let words = (self.library.nfs_get_error)(self.context);
            if words.is_null() {
                String::new()
            } else {
                CStr::from_ptr(words).to_string_lossy().trim().to_owned()
            }
        }
    }

    /// True once the server did not answer or left.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Starts a call and serves the connection until its answer is there, or time is over.
    fn call(
        &mut self,
        keep: Keep,
        start: impl FnOnce(&Libnfs, Handle, *mut c_void) -> c_int,
    ) -> Result<Box<Waiting>, i32> {
        if self.lost {
            return Err(libc::ENOTCONN);
        }
        let waiting = Box::new(Waiting {
            keep,
            done: Cell::new(false),
            error: Cell::new(0),
            handle: Cell::new(std::ptr::null_mut()),
            facts: Cell::default(),
            space: Cell::default(),
        });
        let own = std::ptr::from_ref(waiting.as_ref()).cast_mut().cast();
        if start(self.library, self.context, own) != 0 && !waiting.done.get() {
            // Nothing tells whether it is in the library's queue.
            std::mem::forget(waiting);
            return Err(libc::EIO);
        }
        let end = Instant::now() + self.timeout;
        while !waiting.done.get() {
            let left = end.saturating_duration_since(Instant::now());
            let served = self.serve(left.min(Duration::from_millis(100)));
            if waiting.done.get() {
                break;
            }
            if served.is_err() || left.is_zero() {
                self.lost = true;
                return Err(if left.is_zero() {
                    libc::ETIMEDOUT
                } else {
                    libc::ENOTCONN
                });
            }
        }
        match waiting.error.get() {
            error if error < 0 => Err(errno_of(error)),
            _ => Ok(waiting),
        }
    }

    /// Waits for the socket at most `timeout` and lets the library do its work.
    fn serve(&mut self, timeout: Duration) -> Result<(), i32> {
        let (library, nfs) = (self.library, self.context);
        // SAFETY: the context is ours.
        let (fd, events) = unsafe { ((library.nfs_get_fd)(nfs), (library.nfs_which_events)(nfs)) };
        let mut poll = libc::pollfd {
            fd,
            events: events as i16,
            revents: 0,
        };
        let time = libc::timespec {
            tv_sec: timeout.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(timeout.subsec_nanos()),
        };
        // SAFETY: one entry of ours, and a time that lives for the call.
        let ready = unsafe { libc::ppoll(&raw mut poll, 1, &raw const time, std::ptr::null()) };
        let revents = if ready > 0 {
            c_int::from(poll.revents)
        } else {
            0
        };
        self.service(revents)
    }

    fn service(&mut self, revents: c_int) -> Result<(), i32> {
        if self.lost {
            return Err(libc::ENOTCONN);
        }
        // SAFETY: the context is ours; callbacks get pointers that outlive their calls.
        if unsafe { (self.library.nfs_service)(self.context, revents) } < 0 {
            self.lost = true;
            return Err(libc::ENOTCONN);
        }
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.lost {
            // Calls that were left unanswered would be told now, and what they were given is gone.
            // SAFETY: only the socket is closed.
            unsafe { libc::close((self.library.nfs_get_fd)(self.context)) };
        } else {
            // SAFETY: no call is in flight: each was waited for.
            unsafe { (self.library.nfs_destroy_context)(self.context) };
        }
    }
}
