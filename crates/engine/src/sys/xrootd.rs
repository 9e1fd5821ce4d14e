//! XRootD's client through leadline's own shim (`crates/engine/xrootd/shim.cc`), opened at run time: files and names
//! of a server by calls that wait. Requests in flight: `queue`.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Once;
use std::time::Duration;

use crate::error::errno_words;
use crate::sys::in_flight::{self, InFlight};
use crate::sys::library::{Missing, functions};

pub type Ended = extern "C" fn(argument: *mut c_void, result: i64);
type Pointer = *mut c_void;
type Each = extern "C" fn(argument: *mut c_void, name: *const c_char);
type OfPath = unsafe extern "C" fn(Pointer, *const c_char, u16) -> i64;
type Move = unsafe extern "C" fn(Pointer, u64, u32, Pointer, Ended, Pointer, u16) -> i64;

functions! {
    /// The shim's functions.
    Xrootd from &["@libleadline_xrootd.so"], "libxrootd-client-dev and build leadline again, or libxrdcl3 where it is built";
    leadline_xrd_version: unsafe extern "C" fn() -> *const c_char,
    leadline_xrd_set: unsafe extern "C" fn(*const c_char, c_int) -> i64,
    leadline_xrd_open: unsafe extern "C" fn(*const c_char, c_int, u16, *mut Pointer) -> i64,
    leadline_xrd_close: unsafe extern "C" fn(Pointer, u16) -> i64,
    leadline_xrd_size: unsafe extern "C" fn(Pointer, u16) -> i64,
    leadline_xrd_read: Move,
    leadline_xrd_read_vector: unsafe extern "C" fn(
        Pointer, u32, *const u64, *const u32, *const Pointer, Ended, Pointer, u16,
    ) -> i64,
    leadline_xrd_write: Move,
    leadline_xrd_sync: unsafe extern "C" fn(Pointer, Ended, Pointer, u16) -> i64,
    leadline_xrd_read_now: unsafe extern "C" fn(Pointer, u64, u32, Pointer, u16) -> i64,
    leadline_xrd_write_now: unsafe extern "C" fn(Pointer, u64, u32, *const c_void, u16) -> i64,
    leadline_xrd_sync_now: unsafe extern "C" fn(Pointer, u16) -> i64,
    leadline_xrd_system: unsafe extern "C" fn(*const c_char, *mut Pointer) -> i64,
    leadline_xrd_system_free: unsafe extern "C" fn(Pointer),
    leadline_xrd_make_directory: OfPath,
    leadline_xrd_remove_directory: OfPath,
    leadline_xrd_remove: OfPath,
    leadline_xrd_rename: unsafe extern "C" fn(Pointer, *const c_char, *const c_char, u16) -> i64,
    leadline_xrd_stat: unsafe extern "C" fn(Pointer, *const c_char, *mut c_int, u16) -> i64,
    leadline_xrd_list: unsafe extern "C" fn(Pointer, *const c_char, Each, Pointer, u16) -> i64,
    leadline_xrd_space: unsafe extern "C" fn(Pointer, *const c_char, *mut u64, *mut u64) -> i64,
}

/// How a client behaves. The connection's settings are the process's: those of its first client count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manner {
    /// Seconds that a request waits for its answer.
    pub timeout_s: u16,
    /// Seconds that a connection may take.
    pub connect_s: u16,
    /// TCP connections to a server.
    pub streams: u16,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Read = 0,
    Write = 1,
    Fresh = 2,
    New = 3,
}

/// A server's files by their names.
pub struct System {
    library: &'static Xrootd,
    system: Pointer,
    timeout_s: u16,
}

// SAFETY: a FileSystem of XRootD's client may be used by several threads at once (its methods lock its state).
unsafe impl Send for System {}
// SAFETY: as above.
unsafe impl Sync for System {}

fn configure(library: &Xrootd, manner: Manner) {
    static SET: Once = Once::new();
    SET.call_once(|| {
        let settings = [
            (c"ConnectionWindow", manner.connect_s),
            (c"ConnectionRetry", 1),
            (c"StreamErrorWindow", 1),
            (c"TimeoutResolution", 1),
            (c"StreamTimeout", manner.timeout_s),
            (c"RequestTimeout", manner.timeout_s),
            (c"SubStreamsPerChannel", manner.streams),
        ];
        for (name, value) in settings {
            // What the environment says wins. SAFETY: the text lives for ever.
            let _ = unsafe { (library.leadline_xrd_set)(name.as_ptr(), c_int::from(value)) };
        }
    });
}

/// Adds a name to the list that `argument` is.
extern "C" fn add_name(argument: *mut c_void, name: *const c_char) {
    // SAFETY: `names` gives its own list, and the shim a text that lives for the call.
    let (list, name) = unsafe { (&mut *argument.cast::<Vec<String>>(), CStr::from_ptr(name)) };
    list.push(name.to_string_lossy().into_owned());
}

fn checked(result: i64) -> Result<(), i64> {
    if result < 0 { Err(result) } else { Ok(()) }
}

impl System {
    /// Of the server in `url`. Nothing is sent yet.
    pub fn new(url: &CStr, manner: Manner) -> Result<Self, Missing> {
        let library = Xrootd::get()?;
        configure(library, manner);
        let mut system = std::ptr::null_mut();
        // SAFETY: the text and the out-pointer live for the call.
        let made = unsafe { (library.leadline_xrd_system)(url.as_ptr(), &raw mut system) };
        if made < 0 {
            let why = errno_words(-made as i32);
            return Err(Missing {
                words: format!("XRootD's client cannot begin: {why}"),
                remedy: "free memory, or see what the client logs with XRD_LOGLEVEL=Debug"
                    .to_owned(),
            });
        }
        Ok(Self {
            library,
            system,
            timeout_s: manner.timeout_s,
        })
    }

    /// The client's version.
    pub fn version(&self) -> String {
        // SAFETY: the shim returns a constant text.
        unsafe { CStr::from_ptr((self.library.leadline_xrd_version)()) }
            .to_string_lossy()
            .into_owned()
    }

    fn on(&self, call: OfPath, path: &CStr) -> i64 {
        // SAFETY: the call is one of the table's; the text lives for it.
        unsafe { call(self.system, path.as_ptr(), self.timeout_s) }
    }

    /// 0, or minus errno.
    pub fn make_directory(&self, path: &CStr) -> i64 {
        self.on(self.library.leadline_xrd_make_directory, path)
    }

    /// 0, or minus errno.
    pub fn remove_directory(&self, path: &CStr) -> i64 {
        self.on(self.library.leadline_xrd_remove_directory, path)
    }

    /// 0, or minus errno.
    pub fn remove(&self, path: &CStr) -> i64 {
        self.on(self.library.leadline_xrd_remove, path)
    }

    /// 0, or minus errno.
    pub fn rename(&self, from: &CStr, to: &CStr) -> i64 {
        let (from, to) = (from.as_ptr(), to.as_ptr());
        // SAFETY: both texts live for the call.
        unsafe { (self.library.leadline_xrd_rename)(self.system, from, to, self.timeout_s) }
    }

    /// True for a directory, or minus errno.
    pub fn is_directory(&self, path: &CStr) -> Result<bool, i64> {
        let mut found = 0;
        // SAFETY: the text and the out-pointer live for the call.
        let result = unsafe {
            (self.library.leadline_xrd_stat)(
                self.system,
                path.as_ptr(),
                &raw mut found,
                self.timeout_s,
            )
        };
        checked(result).map(|()| found != 0)
    }

    /// A directory's names, or minus errno.
    pub fn names(&self, path: &CStr) -> Result<Vec<String>, i64> {
        let mut names: Vec<String> = Vec::new();
        let list = (&raw mut names).cast();
        // SAFETY: the text lives for the call, and the list is used within it only.
        let result = unsafe {
            (self.library.leadline_xrd_list)(
                self.system,
                path.as_ptr(),
                add_name,
                list,
                self.timeout_s,
            )
        };
        checked(result).map(|()| names)
    }

    /// (total, free) bytes, or minus errno.
    pub fn space(&self, path: &CStr) -> Result<(u64, u64), i64> {
        let (mut total, mut free) = (0, 0);
        // SAFETY: the text and both out-pointers live for the call.
        let result = unsafe {
            (self.library.leadline_xrd_space)(
                self.system,
                path.as_ptr(),
                &raw mut total,
                &raw mut free,
            )
        };
        checked(result).map(|()| (total, free))
    }
}

impl Drop for System {
    fn drop(&mut self) {
        // SAFETY: the handle is ours alone.
        unsafe { (self.library.leadline_xrd_system_free)(self.system) };
    }
}

/// An open file.
pub struct File {
    pub(super) library: &'static Xrootd,
    pub(super) file: Pointer,
    pub(super) timeout_s: u16,
}

// SAFETY: a File of XRootD's client may be used by several threads at once (its state machine locks itself).
unsafe impl Send for File {}
// SAFETY: as above.
unsafe impl Sync for File {}

impl File {
    /// Opens `url`, or minus errno.
    pub fn open(url: &CStr, how: How, timeout_s: u16) -> Result<Self, i64> {
        let library = Xrootd::get().map_err(|_| -i64::from(libc::ENOPKG))?;
        let mut file: Pointer = std::ptr::null_mut();
        // SAFETY: the text and the out-pointer live for the call.
        let result = unsafe {
            (library.leadline_xrd_open)(url.as_ptr(), how as c_int, timeout_s, &raw mut file)
        };
        checked(result)?;
        Ok(Self {
            library,
            file,
            timeout_s,
        })
    }

    /// Bytes in the file, or minus errno.
    pub fn size(&self) -> i64 {
        // SAFETY: the file is open.
        unsafe { (self.library.leadline_xrd_size)(self.file, self.timeout_s) }
    }

    /// Bytes read, or minus errno.
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> i64 {
        let length = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        let memory = buffer.as_mut_ptr().cast();
        // SAFETY: pointer and length are those of `buffer`, which outlives the call.
        unsafe {
            (self.library.leadline_xrd_read_now)(self.file, offset, length, memory, self.timeout_s)
        }
    }

    /// Bytes written, or minus errno.
    pub fn write(&self, buffer: &[u8], offset: u64) -> i64 {
        let length = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        let memory = buffer.as_ptr().cast();
        // SAFETY: pointer and length are those of `buffer`, which outlives the call.
        unsafe {
            (self.library.leadline_xrd_write_now)(self.file, offset, length, memory, self.timeout_s)
        }
    }

    /// 0, or minus errno.
    pub fn sync(&self) -> i64 {
        // SAFETY: the file is open.
        unsafe { (self.library.leadline_xrd_sync_now)(self.file, self.timeout_s) }
    }

    /// Closes it: 0, or minus errno.
    pub fn close(self) -> i64 {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: the file is open, and closed once.
        unsafe { (this.library.leadline_xrd_close)(this.file, this.timeout_s) }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: nobody uses the file any more: a queue with requests in flight leaks it.
        unsafe { (self.library.leadline_xrd_close)(self.file, self.timeout_s) };
    }
}

/// One slot's part of a request: bytes at `start` of its buffer, at `offset` of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub slot: u32,
    pub offset: u64,
    pub start: usize,
    pub length: u32,
}

/// Called by a thread of the client.
extern "C" fn ended(argument: *mut c_void, result: i64) {
    // SAFETY: the argument is the ticket of a request in flight, which ends with this one call.
    unsafe { in_flight::end::<()>(argument, |()| result) };
}

/// Buffers of slots, open files, and requests on them. A request bears its first slot's number.
pub struct Queue {
    flight: InFlight<Vec<File>>,
    /// The parts of the request that bears a slot's number, and what each moves.
    parts: Vec<Vec<(u32, i64)>>,
}

impl Queue {
    /// `slots` buffers of `slot_bytes` for requests on `files`.
    pub fn new(files: Vec<File>, slots: u32, slot_bytes: usize) -> std::io::Result<Self> {
        Ok(Self {
            flight: InFlight::new("XRootD's client", files, (slots, slot_bytes), 1)?,
            parts: vec![Vec::with_capacity(1); slots as usize],
        })
    }

    /// The buffer of a slot without a request in flight.
    #[inline]
    pub fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.flight.buffer(slot)
    }

    fn memory(&self, part: &Part) -> *mut c_void {
        let length = part.length as usize;
        self.flight
            .piece((part.slot, 0), (part.start, length))
            .memory
            .cast()
    }

    fn file(&self, number: u32) -> &File {
        &self.flight.held()[number as usize]
    }

    fn argument(&self, slot: u32) -> *mut c_void {
        self.flight.piece((slot, 0), (0, 0)).ticket
    }

    /// Marks the parts of a request that was taken; passes the result on.
    fn taken(&mut self, result: i64, parts: &[Part], moves: impl Fn(&Part) -> i64) -> i64 {
        let Some(first) = parts.first() else {
            return result;
        };
        if result == 0 {
            for part in parts {
                self.flight.started(part.slot);
                self.parts[first.slot as usize].push((part.slot, moves(part)));
            }
        }
        result
    }

    /// Reads one part, or several by one vector read: 0, or minus errno, and then nothing was started.
    pub fn read(&mut self, file: u32, parts: &[Part]) -> i64 {
        let Some(first) = parts.first() else {
            return 0;
        };
        let memories: Vec<_> = parts.iter().map(|part| self.memory(part)).collect();
        let (target, argument) = (self.file(file), self.argument(first.slot));
        let result = if parts.len() == 1 {
            // SAFETY: the memory lies within the slot and is left alone and kept until the request has ended, or
            // for ever; so is the ticket.
            unsafe {
                (target.library.leadline_xrd_read)(
                    target.file,
                    first.offset,
                    first.length,
                    memories[0],
                    ended,
                    argument,
                    target.timeout_s,
                )
            }
        } else {
            let offsets: Vec<_> = parts.iter().map(|part| part.offset).collect();
            let lengths: Vec<_> = parts.iter().map(|part| part.length).collect();
            // SAFETY: as above; the three lists have as many entries as is said, and are copied.
            unsafe {
                (target.library.leadline_xrd_read_vector)(
                    target.file,
                    parts.len() as u32,
                    offsets.as_ptr(),
                    lengths.as_ptr(),
                    memories.as_ptr(),
                    ended,
                    argument,
                    target.timeout_s,
                )
            }
        };
        self.taken(result, parts, |_| -1)
    }

    /// Writes one part: 0, or minus errno, and then nothing was started.
    pub fn write(&mut self, file: u32, part: Part) -> i64 {
        let memory = self.memory(&part);
        let (target, argument) = (self.file(file), self.argument(part.slot));
        // SAFETY: as of `read`.
        let result = unsafe {
            (target.library.leadline_xrd_write)(
                target.file,
                part.offset,
                part.length,
                memory,
                ended,
                argument,
                target.timeout_s,
            )
        };
        self.taken(result, &[part], |part| i64::from(part.length))
    }

    /// Syncs a file; the slot's buffer is not used.
    pub fn sync(&mut self, file: u32, slot: u32) -> i64 {
        let (target, argument) = (self.file(file), self.argument(slot));
        // SAFETY: the ticket stays until the request has ended, as of `read`.
        let result = unsafe {
            (target.library.leadline_xrd_sync)(target.file, ended, argument, target.timeout_s)
        };
        let part = Part {
            slot,
            offset: 0,
            start: 0,
            length: 0,
        };
        self.taken(result, &[part], |_| 0)
    }

    /// Calls `settle` with (slot, result) of all that has ended, after waiting for a request at most `timeout`.
    /// A vector read says its bytes in all: each part of it has its own length then.
    pub fn reap(&mut self, timeout: Duration, lengths: &[u32], mut settle: impl FnMut(u32, i64)) {
        self.flight.fetch(timeout);
        while let Some((number, result)) = self.flight.next_end() {
            let parts = &mut self.parts[number as usize];
            let several = parts.len() > 1;
            for (slot, moves) in parts.drain(..) {
                self.flight.ended(slot);
                let result = match result {
                    failed if failed < 0 => failed,
                    _ if several => i64::from(lengths[slot as usize]),
                    bytes if moves < 0 => bytes,
                    _ => moves,
                };
                settle(slot, result);
            }
        }
    }
}
