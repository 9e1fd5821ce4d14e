//! librados by dlopen: one connection and its synchronous calls. Asynchronous ones: `queue`.
//!
//! Its header: /usr/include/rados/librados.h of Ceph 16 and later.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Arc;

use super::queue::{Aio, Callback, Calls, StartRead, StartRemove, StartWrite};
use crate::sys::library::{Refusal, functions, step, text};

pub type Handle = *mut c_void;
pub type Read = unsafe extern "C" fn(Handle, *const c_char, *mut c_char, usize, u64) -> c_int;
pub type Write = unsafe extern "C" fn(Handle, *const c_char, *const c_char, usize, u64) -> c_int;
type Put = unsafe extern "C" fn(Handle, *const c_char, *const c_char, usize) -> c_int;
pub type Stat = unsafe extern "C" fn(Handle, *const c_char, *mut u64, *mut libc::time_t) -> c_int;

/// Bytes read by a function of this library or of the striper, or minus errno.
pub(super) fn read(call: Read, target: Handle, name: &CStr, buffer: &mut [u8], offset: u64) -> i64 {
    let (memory, length) = (buffer.as_mut_ptr().cast(), buffer.len());
    // SAFETY: pointer and length are those of `buffer`, which outlives the call.
    i64::from(unsafe { call(target, name.as_ptr(), memory, length, offset) })
}

/// 0, or minus errno.
pub(super) fn write(call: Write, target: Handle, name: &CStr, buffer: &[u8], offset: u64) -> i64 {
    let (memory, length) = (buffer.as_ptr().cast(), buffer.len());
    // SAFETY: pointer and length are those of `buffer`, which outlives the call.
    i64::from(unsafe { call(target, name.as_ptr(), memory, length, offset) })
}

/// Bytes of an object or a file, or minus errno.
pub(super) fn size(call: Stat, target: Handle, name: &CStr) -> i64 {
    let (mut bytes, mut time) = (0_u64, 0);
    // SAFETY: the text and both out-pointers live for the call.
    match unsafe { call(target, name.as_ptr(), &raw mut bytes, &raw mut time) } {
        errno if errno < 0 => i64::from(errno),
        _ => i64::try_from(bytes).unwrap_or(i64::MAX),
    }
}

/// What `rados_cluster_stat` fills: KiB and objects.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub struct ClusterStat {
    pub total_kib: u64,
    pub used_kib: u64,
    pub free_kib: u64,
    pub objects: u64,
}

/// What a list of a lock's holders may take.
const HOLDERS_BYTES_MAX: usize = 64 << 10;

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
    rados_read: Read,
    rados_write: Write,
    rados_write_full: Put,
    rados_append: Put,
    rados_remove: unsafe extern "C" fn(Handle, *const c_char) -> c_int,
    rados_stat: Stat,
    rados_list_lockers: unsafe extern "C" fn(
        Handle, *const c_char, *const c_char, *mut c_int, *mut c_char, *mut usize,
        *mut c_char, *mut usize, *mut c_char, *mut usize, *mut c_char, *mut usize,
    ) -> isize,
    rados_break_lock: unsafe extern "C" fn(
        Handle, *const c_char, *const c_char, *const c_char, *const c_char,
    ) -> c_int,
    rados_aio_create_completion2: unsafe extern "C" fn(*mut c_void, Callback, *mut Handle) -> c_int,
    rados_aio_read: StartRead,
    rados_aio_write: StartWrite,
    rados_aio_remove: StartRemove,
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
        let call = self.cluster.library.rados_read;
        read(call, self.handle, object, buffer, offset)
    }

    /// 0, or minus errno.
    pub fn write(&self, object: &CStr, buffer: &[u8], offset: u64) -> i64 {
        let call = self.cluster.library.rados_write;
        write(call, self.handle, object, buffer, offset)
    }

    /// Replaces an object: 0, or minus errno.
    pub fn write_full(&self, object: &CStr, buffer: &[u8]) -> i64 {
        self.put(self.cluster.library.rados_write_full, object, buffer)
    }

    /// Adds to an object's end: 0, or minus errno.
    pub fn append(&self, object: &CStr, buffer: &[u8]) -> i64 {
        self.put(self.cluster.library.rados_append, object, buffer)
    }

    fn put(&self, call: Put, object: &CStr, buffer: &[u8]) -> i64 {
        let (memory, length) = (buffer.as_ptr().cast(), buffer.len());
        // SAFETY: pointer and length are those of `buffer`, which outlives the call.
        i64::from(unsafe { call(self.handle, object.as_ptr(), memory, length) })
    }

    /// 0, or minus errno.
    pub fn remove(&self, object: &CStr) -> i64 {
        // SAFETY: the text lives for the call.
        i64::from(unsafe { (self.cluster.library.rados_remove)(self.handle, object.as_ptr()) })
    }

    /// An object's bytes, or minus errno.
    pub fn size(&self, object: &CStr) -> i64 {
        size(self.cluster.library.rados_stat, self.handle, object)
    }

    /// Takes `lock` on an object away from whoever holds it: 0, or minus errno.
    pub fn break_lock(&self, object: &CStr, lock: &CStr) -> i64 {
        let holders = match self.holders(object, lock) {
            Ok(holders) => holders,
            Err(result) => return result,
        };
        for (client, cookie) in holders {
            // SAFETY: all four texts live for the call.
            let result = unsafe {
                (self.cluster.library.rados_break_lock)(
                    self.handle,
                    object.as_ptr(),
                    lock.as_ptr(),
                    client.as_ptr(),
                    cookie.as_ptr(),
                )
            };
            if result < 0 && result != -libc::ENOENT {
                return i64::from(result);
            }
        }
        0
    }

    /// Client and cookie of each holder of a lock.
    fn holders(&self, object: &CStr, lock: &CStr) -> Result<Vec<(CString, CString)>, i64> {
        let mut exclusive = 0;
        let mut texts = [(); 4].map(|()| vec![0_u8; HOLDERS_BYTES_MAX]);
        let mut sizes = [HOLDERS_BYTES_MAX; 4];
        let [tag, clients, cookies, addresses] = &mut texts;
        let [tag_bytes, client_bytes, cookie_bytes, address_bytes] = &mut sizes;
        // SAFETY: each buffer is ours and as large as the size beside it says.
        let count = unsafe {
            (self.cluster.library.rados_list_lockers)(
                self.handle,
                object.as_ptr(),
                lock.as_ptr(),
                &raw mut exclusive,
                tag.as_mut_ptr().cast(),
                tag_bytes,
                clients.as_mut_ptr().cast(),
                client_bytes,
                cookies.as_mut_ptr().cast(),
                cookie_bytes,
                addresses.as_mut_ptr().cast(),
                address_bytes,
            )
        };
        if count < 0 {
            return Err(count as i64);
        }
        let listed = |bytes: &[u8]| -> Vec<CString> {
            let parts = bytes.split(|byte| *byte == 0).take(count as usize);
            parts
                .map(|part| CString::new(part).unwrap_or_default())
                .collect()
        };
        Ok(listed(&texts[1])
            .into_iter()
            .zip(listed(&texts[2]))
            .collect())
    }

    /// The library's own handle, which lives as long as this context.
    pub fn handle(&self) -> Handle {
        self.handle
    }
}

impl Aio for Context {
    fn calls(&self) -> Calls {
        let library = self.cluster.library;
        Calls {
            completions: library,
            target: self.handle,
            read: library.rados_aio_read,
            write: library.rados_aio_write,
            remove: library.rados_aio_remove,
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is ours alone; operations in flight hold references of the library's own.
        unsafe { (self.cluster.library.rados_ioctx_destroy)(self.handle) };
    }
}
