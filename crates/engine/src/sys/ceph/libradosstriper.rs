//! libradosstriper by dlopen: a file cut into stripes over the objects of a pool, as CERN's archive and XRootD's
//! Ceph plug-in keep theirs. Its header: /usr/include/radosstriper/libradosstriper.h of Ceph 16 and later.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::sync::Arc;

use super::librados::{self, Context, Handle};
use super::queue::{Aio, Calls, StartRead, StartRemove, StartWrite};
use crate::sys::library::{Missing, functions};

functions! {
    /// The functions that are used.
    Libradosstriper from &["libradosstriper.so.1"], "libradosstriper1";
    rados_striper_create: unsafe extern "C" fn(Handle, *mut Handle) -> c_int,
    rados_striper_destroy: unsafe extern "C" fn(Handle),
    rados_striper_set_object_layout_stripe_unit: unsafe extern "C" fn(Handle, c_uint) -> c_int,
    rados_striper_set_object_layout_stripe_count: unsafe extern "C" fn(Handle, c_uint) -> c_int,
    rados_striper_set_object_layout_object_size: unsafe extern "C" fn(Handle, c_uint) -> c_int,
    rados_striper_read: librados::Read,
    rados_striper_write: librados::Write,
    rados_striper_remove: unsafe extern "C" fn(Handle, *const c_char) -> c_int,
    rados_striper_stat: librados::Stat,
    rados_striper_aio_read: StartRead,
    rados_striper_aio_write: StartWrite,
    rados_striper_aio_remove: StartRemove,
}

/// How new files are cut, in the library's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stripes {
    pub unit_bytes: u32,
    pub count: u32,
    pub object_bytes: u32,
}

/// A pool's striped files.
pub struct Striper {
    library: &'static Libradosstriper,
    context: Arc<Context>,
    handle: Handle,
}

// SAFETY: a striper whose layout no longer changes only passes operations on to its I/O context, which several
// threads may use at once.
unsafe impl Send for Striper {}
// SAFETY: as above.
unsafe impl Sync for Striper {}

impl Striper {
    /// A striper over `context`, or minus errno where the library refuses the layout.
    pub fn new(context: &Arc<Context>, stripes: Stripes) -> Result<Self, StriperRefusal> {
        let library = Libradosstriper::get().map_err(StriperRefusal::Library)?;
        let mut handle: Handle = std::ptr::null_mut();
        // SAFETY: the context outlives the striper, which holds it; the out-pointer is ours.
        let made = unsafe { (library.rados_striper_create)(context.handle(), &raw mut handle) };
        if made < 0 {
            return Err(StriperRefusal::Errno(-made));
        }
        let this = Self {
            library,
            context: Arc::clone(context),
            handle,
        };
        // SAFETY: the striper was just made and is not shared yet.
        let results = unsafe {
            [
                (library.rados_striper_set_object_layout_stripe_unit)(handle, stripes.unit_bytes),
                (library.rados_striper_set_object_layout_stripe_count)(handle, stripes.count),
                (library.rados_striper_set_object_layout_object_size)(handle, stripes.object_bytes),
            ]
        };
        match results.into_iter().find(|result| *result < 0) {
            Some(refused) => Err(StriperRefusal::Errno(-refused)),
            None => Ok(this),
        }
    }

    /// Bytes read, or minus errno.
    pub fn read(&self, file: &CStr, buffer: &mut [u8], offset: u64) -> i64 {
        let call = self.library.rados_striper_read;
        librados::read(call, self.handle, file, buffer, offset)
    }

    /// 0, or minus errno.
    pub fn write(&self, file: &CStr, buffer: &[u8], offset: u64) -> i64 {
        let call = self.library.rados_striper_write;
        librados::write(call, self.handle, file, buffer, offset)
    }

    /// Removes all objects of a file: 0, or minus errno; EBUSY while anybody has it open.
    pub fn remove(&self, file: &CStr) -> i64 {
        // SAFETY: the text lives for the call.
        i64::from(unsafe { (self.library.rados_striper_remove)(self.handle, file.as_ptr()) })
    }

    /// A file's bytes, or minus errno.
    pub fn size(&self, file: &CStr) -> i64 {
        librados::size(self.library.rados_striper_stat, self.handle, file)
    }
}

/// Why there is no striper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StriperRefusal {
    Library(Missing),
    Errno(i32),
}

impl Aio for Striper {
    fn calls(&self) -> Calls {
        Calls {
            completions: self.context.calls().completions,
            target: self.handle,
            read: self.library.rados_striper_aio_read,
            write: self.library.rados_striper_aio_write,
            remove: self.library.rados_striper_aio_remove,
        }
    }
}

impl Drop for Striper {
    fn drop(&mut self) {
        // SAFETY: the striper is ours alone; queues with operations in flight leak an Arc of it.
        unsafe { (self.library.rados_striper_destroy)(self.handle) };
    }
}
