//! librados by dlopen: one connection, its synchronous calls, and a queue of asynchronous ones.
//!
//! Its header: /usr/include/rados/librados.h of Ceph 16 and later.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::sys::buffer::{ALIGNMENT_BYTES, AlignedBuffer};
use crate::sys::library::{Missing, functions};

type Handle = *mut c_void;
type Callback = extern "C" fn(completion: Handle, argument: *mut c_void);

/// What `rados_cluster_stat` fills: KiB and objects.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub struct ClusterStat {
    pub total_kib: u64,
    pub used_kib: u64,
    pub free_kib: u64,
    pub objects: u64,
}

functions! {
    /// The functions that are used.
    Librados from &["librados.so.2"], "librados2";
    rados_version: unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int),
    rados_create2: unsafe extern "C" fn(*mut Handle, *const c_char, *const c_char, u64) -> c_int,
    rados_conf_read_file: unsafe extern "C" fn(Handle, *const c_char) -> c_int,
    rados_conf_parse_env: unsafe extern "C" fn(Handle, *const c_char) -> c_int,
    rados_conf_set: unsafe extern "C" fn(Handle, *const c_char, *const c_char) -> c_int,
    rados_connect: unsafe extern "C" fn(Handle) -> c_int,
    rados_shutdown: unsafe extern "C" fn(Handle),
    rados_cluster_stat: unsafe extern "C" fn(Handle, *mut ClusterStat) -> c_int,
    rados_ioctx_create: unsafe extern "C" fn(Handle, *const c_char, *mut Handle) -> c_int,
    rados_ioctx_destroy: unsafe extern "C" fn(Handle),
    rados_ioctx_set_namespace: unsafe extern "C" fn(Handle, *const c_char),
    rados_read: unsafe extern "C" fn(Handle, *const c_char, *mut c_char, usize, u64) -> c_int,
    rados_write: unsafe extern "C" fn(Handle, *const c_char, *const c_char, usize, u64) -> c_int,
    rados_write_full: unsafe extern "C" fn(Handle, *const c_char, *const c_char, usize) -> c_int,
    rados_append: unsafe extern "C" fn(Handle, *const c_char, *const c_char, usize) -> c_int,
    rados_remove: unsafe extern "C" fn(Handle, *const c_char) -> c_int,
    rados_stat: unsafe extern "C" fn(Handle, *const c_char, *mut u64, *mut libc::time_t) -> c_int,
    rados_aio_create_completion2: unsafe extern "C" fn(*mut c_void, Callback, *mut Handle) -> c_int,
    rados_aio_read: unsafe extern "C" fn(Handle, *const c_char, Handle, *mut c_char, usize, u64) -> c_int,
    rados_aio_write: unsafe extern "C" fn(Handle, *const c_char, Handle, *const c_char, usize, u64) -> c_int,
    rados_aio_remove: unsafe extern "C" fn(Handle, *const c_char, Handle) -> c_int,
    rados_aio_get_return_value: unsafe extern "C" fn(Handle) -> c_int,
    rados_aio_release: unsafe extern "C" fn(Handle),
}

/// How to reach a cluster: a user's whole name, files where they are not Ceph's defaults, settings.
#[derive(Debug, Clone, Default)]
pub struct Access {
    pub name: String,
    pub conf: String,
    pub keyring: String,
    pub settings: Vec<(&'static str, String)>,
}

/// One connection. It is left on drop.
pub struct Cluster {
    library: &'static Librados,
    handle: Handle,
}

// SAFETY: a rados_t may be used by several threads at once (librados.h: "thread-safe").
unsafe impl Send for Cluster {}
// SAFETY: as above.
unsafe impl Sync for Cluster {}

/// What went wrong while connecting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    Library(Missing),
    /// The step in words, and its errno.
    Step(&'static str, i32),
}

fn text(value: &str) -> CString {
    CString::new(value).unwrap_or_default()
}

fn step(what: &'static str, result: c_int) -> Result<(), Refusal> {
    if result < 0 {
        Err(Refusal::Step(what, -result))
    } else {
        Ok(())
    }
}

impl Cluster {
    /// Connects; waits for monitors as long as the settings allow.
    pub fn connect(access: &Access) -> Result<Self, Refusal> {
        let library = Librados::get().map_err(Refusal::Library)?;
        let mut handle: Handle = std::ptr::null_mut();
        let (cluster, name) = (text("ceph"), text(&access.name));
        // SAFETY: the out-pointer and the texts live for the call.
        let result =
            unsafe { (library.rados_create2)(&raw mut handle, cluster.as_ptr(), name.as_ptr(), 0) };
        step("use the name of the Ceph user", result)?;
        let this = Self { library, handle };
        this.configure(access)?;
        // SAFETY: the handle was made above and is not connected yet.
        step("connect to the cluster", unsafe {
            (library.rados_connect)(handle)
        })?;
        Ok(this)
    }

    fn configure(&self, access: &Access) -> Result<(), Refusal> {
        let (library, handle) = (self.library, self.handle);
        // SAFETY: a null name stands for the default (CEPH_ARGS).
        let _ = unsafe { (library.rados_conf_parse_env)(handle, std::ptr::null()) };
        let conf = text(&access.conf);
        let conf = if access.conf.is_empty() {
            std::ptr::null()
        } else {
            conf.as_ptr()
        };
        // SAFETY: null stands for Ceph's default places; else a text that lives for the call.
        step("read Ceph's configuration", unsafe {
            (library.rados_conf_read_file)(handle, conf)
        })?;
        if !access.keyring.is_empty() {
            self.set("keyring", &access.keyring)?;
        }
        for (name, value) in &access.settings {
            self.set(name, value)?;
        }
        Ok(())
    }

    fn set(&self, name: &str, value: &str) -> Result<(), Refusal> {
        let (name, value) = (text(name), text(value));
        // SAFETY: both texts live for the call.
        step("change a setting of the client", unsafe {
            (self.library.rados_conf_set)(self.handle, name.as_ptr(), value.as_ptr())
        })
    }

    /// `16.2.15`-like versions are not told by the library; this is librados's own.
    pub fn version(&self) -> String {
        let (mut major, mut minor, mut extra) = (0, 0, 0);
        // SAFETY: three integers of ours.
        unsafe { (self.library.rados_version)(&raw mut major, &raw mut minor, &raw mut extra) };
        format!("{major}.{minor}.{extra}")
    }

    /// Space of the whole cluster, before protection.
    pub fn stat(&self) -> Result<ClusterStat, i32> {
        let mut found = ClusterStat::default();
        // SAFETY: the handle is connected and `found` ours.
        let result = unsafe { (self.library.rados_cluster_stat)(self.handle, &raw mut found) };
        if result < 0 { Err(-result) } else { Ok(found) }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // SAFETY: nobody holds the handle any more: I/O contexts keep the connection alive by an Arc.
        unsafe { (self.library.rados_shutdown)(self.handle) };
    }
}

/// A pool and a namespace in it.
pub struct Context {
    cluster: Arc<Cluster>,
    handle: Handle,
}

// SAFETY: an I/O context whose namespace no longer changes may be used by several threads at once.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Opens `pool`; errno 2 where there is none of that name.
    pub fn open(cluster: &Arc<Cluster>, pool: &str, namespace: &str) -> Result<Self, i32> {
        let library = cluster.library;
        let (pool, namespace) = (text(pool), text(namespace));
        let mut handle: Handle = std::ptr::null_mut();
        // SAFETY: the cluster is connected; the out-pointer and the text live for the call.
        let result =
            unsafe { (library.rados_ioctx_create)(cluster.handle, pool.as_ptr(), &raw mut handle) };
        if result < 0 {
            return Err(-result);
        }
        // SAFETY: the context was just made; the library copies the text.
        unsafe { (library.rados_ioctx_set_namespace)(handle, namespace.as_ptr()) };
        Ok(Self {
            cluster: Arc::clone(cluster),
            handle,
        })
    }

    /// The connection.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Bytes read, or minus errno.
    pub fn read(&self, object: &CStr, buffer: &mut [u8], offset: u64) -> i64 {
        // SAFETY: pointer and length are those of `buffer`, which outlives the call.
        i64::from(unsafe {
            (self.cluster.library.rados_read)(
                self.handle,
                object.as_ptr(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                offset,
            )
        })
    }

    /// 0, or minus errno.
    pub fn write(&self, object: &CStr, buffer: &[u8], offset: u64) -> i64 {
        // SAFETY: pointer and length are those of `buffer`, which outlives the call.
        i64::from(unsafe {
            (self.cluster.library.rados_write)(
                self.handle,
                object.as_ptr(),
                buffer.as_ptr().cast(),
                buffer.len(),
                offset,
            )
        })
    }

    /// Replaces an object: 0, or minus errno.
    pub fn write_full(&self, object: &CStr, buffer: &[u8]) -> i64 {
        // SAFETY: pointer and length are those of `buffer`, which outlives the call.
        i64::from(unsafe {
            (self.cluster.library.rados_write_full)(
                self.handle,
                object.as_ptr(),
                buffer.as_ptr().cast(),
                buffer.len(),
            )
        })
    }

    /// Adds to an object's end: 0, or minus errno.
    pub fn append(&self, object: &CStr, buffer: &[u8]) -> i64 {
        // SAFETY: pointer and length are those of `buffer`, which outlives the call.
        i64::from(unsafe {
            (self.cluster.library.rados_append)(
                self.handle,
                object.as_ptr(),
                buffer.as_ptr().cast(),
                buffer.len(),
            )
        })
    }

    /// 0, or minus errno.
    pub fn remove(&self, object: &CStr) -> i64 {
        // SAFETY: the text lives for the call.
        i64::from(unsafe { (self.cluster.library.rados_remove)(self.handle, object.as_ptr()) })
    }

    /// An object's bytes, or minus errno.
    pub fn size(&self, object: &CStr) -> i64 {
        let (mut bytes, mut time) = (0_u64, 0);
        // SAFETY: the text and both out-pointers live for the call.
        let result = unsafe {
            (self.cluster.library.rados_stat)(
                self.handle,
                object.as_ptr(),
                &raw mut bytes,
                &raw mut time,
            )
        };
        if result < 0 {
            i64::from(result)
        } else {
            i64::try_from(bytes).unwrap_or(i64::MAX)
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is ours alone; operations in flight hold references of the library's own.
        unsafe { (self.cluster.library.rados_ioctx_destroy)(self.handle) };
    }
}

/// What one piece of an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Read,
    Write,
    Remove,
}

/// Where ended pieces wait to be fetched: (ticket, the library's completion).
#[derive(Default)]
struct Inbox {
    ended: Mutex<Vec<u32>>,
    filled: Condvar,
}

/// What the library is given with a piece. Its address must not change while it is in flight.
struct Ticket {
    number: u32,
    inbox: Arc<Inbox>,
    completion: AtomicPtr<c_void>,
}

/// Called by a thread of the library.
extern "C" fn ended(_completion: Handle, argument: *mut c_void) {
    // SAFETY: the argument is a ticket of a queue, which lives until all its pieces have ended (or for ever).
    let ticket = unsafe { &*argument.cast::<Ticket>() };
    let mut list = ticket
        .inbox
        .ended
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    list.push(ticket.number);
    drop(list);
    ticket.inbox.filled.notify_one();
}

/// Buffers of slots, and asynchronous pieces of operations on them.
pub struct Queue {
    context: Arc<Context>,
    inbox: Arc<Inbox>,
    /// Leaked with the tickets when the library may still write to it.
    buffer: Option<AlignedBuffer>,
    tickets: Option<Box<[Ticket]>>,
    stride_bytes: usize,
    pieces: u32,
    in_flight: Vec<bool>,
    fetched: Vec<u32>,
}

impl Queue {
    /// `slots` buffers of `slot_bytes`, and at most `pieces` pieces of each in flight.
    pub fn new(
        context: Arc<Context>,
        slots: u32,
        slot_bytes: usize,
        pieces: u32,
    ) -> std::io::Result<Self> {
        let stride_bytes = slot_bytes.next_multiple_of(ALIGNMENT_BYTES);
        let inbox = Arc::new(Inbox::default());
        let count = slots * pieces;
        let tickets = (0..count)
            .map(|number| Ticket {
                number,
                inbox: Arc::clone(&inbox),
                completion: AtomicPtr::new(std::ptr::null_mut()),
            })
            .collect();
        inbox
            .ended
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .reserve(count as usize);
        Ok(Self {
            context,
            inbox,
            buffer: Some(AlignedBuffer::new(stride_bytes * slots as usize)?),
            tickets: Some(tickets),
            stride_bytes,
            pieces,
            in_flight: vec![false; count as usize],
            fetched: Vec::with_capacity(count as usize),
        })
    }

    /// The buffer of a slot without a piece in flight.
    #[inline]
    pub fn buffer(&mut self, slot: u32) -> &mut [u8] {
        let first = (slot * self.pieces) as usize;
        assert!(
            !self.in_flight[first..first + self.pieces as usize].contains(&true),
            "librados still uses the buffer of slot {slot}"
        );
        let buffer = self.buffer.as_mut().expect("it is taken only by drop");
        let start = slot as usize * self.stride_bytes;
        &mut buffer.as_mut_slice()[start..start + self.stride_bytes]
    }

    /// Starts piece `piece` of a slot: `length` bytes at `start` of its buffer, at `offset` of the object.
    /// 0, or minus errno, and then nothing was started.
    pub fn start(
        &mut self,
        (slot, piece): (u32, u32),
        action: Action,
        object: &CStr,
        (offset, start, length): (u64, usize, usize),
    ) -> i64 {
        let number = slot * self.pieces + piece;
        assert!(
            piece < self.pieces && !self.in_flight[number as usize],
            "a piece is started once"
        );
        assert!(
            start + length <= self.stride_bytes,
            "a piece beyond its slot"
        );
        let library = self.context.cluster.library;
        let tickets = self.tickets.as_ref().expect("they are taken only by drop");
        let ticket = &tickets[number as usize];
        let mut completion: Handle = std::ptr::null_mut();
        let argument = std::ptr::from_ref(ticket).cast_mut().cast();
        // SAFETY: the ticket lives until the piece has ended: `drop` leaks it otherwise.
        let made =
            unsafe { (library.rados_aio_create_completion2)(argument, ended, &raw mut completion) };
        if made < 0 {
            return i64::from(made);
        }
        ticket.completion.store(completion, Ordering::Release);
        let buffer = self.buffer.as_ref().expect("it is taken only by drop");
        let memory = buffer
            .as_ptr()
            .wrapping_add(slot as usize * self.stride_bytes + start);
        let (handle, name) = (self.context.handle, object.as_ptr());
        // SAFETY: `memory` and `length` lie within the slot (asserted), which nobody touches while a piece is
        // in flight (`buffer` asserts it) and which is leaked by `drop` where one still is; the library copies
        // the name before it returns.
        let result = unsafe {
            match action {
                Action::Read => (library.rados_aio_read)(
                    handle,
                    name,
                    completion,
                    memory.cast(),
                    length,
                    offset,
                ),
                Action::Write => (library.rados_aio_write)(
                    handle,
                    name,
                    completion,
                    memory.cast(),
                    length,
                    offset,
                ),
                Action::Remove => (library.rados_aio_remove)(handle, name, completion),
            }
        };
        if result < 0 {
            // SAFETY: the completion was made above and is in no operation.
            unsafe { (library.rados_aio_release)(completion) };
            return i64::from(result);
        }
        self.in_flight[number as usize] = true;
        0
    }

    /// Calls `settle` with (slot, piece, result) of every piece that has ended, after waiting for one at most
    /// `timeout`.
    pub fn reap(&mut self, timeout: Duration, mut settle: impl FnMut(u32, u32, i64)) {
        self.wait(timeout);
        let library = self.context.cluster.library;
        let tickets = self.tickets.as_ref().expect("they are taken only by drop");
        for number in self.fetched.drain(..) {
            let completion = tickets[number as usize].completion.load(Ordering::Acquire);
            // SAFETY: the completion is of an operation that has ended, and is released once.
            let result = unsafe {
                let result = (library.rados_aio_get_return_value)(completion);
                (library.rados_aio_release)(completion);
                result
            };
            self.in_flight[number as usize] = false;
            settle(
                number / self.pieces,
                number % self.pieces,
                i64::from(result),
            );
        }
    }

    fn wait(&mut self, timeout: Duration) {
        let end = Instant::now() + timeout;
        let mut list = self
            .inbox
            .ended
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        while list.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            (list, _) = self
                .inbox
                .filled
                .wait_timeout(list, left)
                .unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut *list, &mut self.fetched);
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.in_flight.contains(&true) {
            // Operations that the cluster never ended may yet write there, and call back.
            std::mem::forget(self.buffer.take());
            std::mem::forget(self.tickets.take());
            std::mem::forget(Arc::clone(&self.context));
        }
    }
}
