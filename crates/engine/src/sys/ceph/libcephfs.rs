//! libcephfs by dlopen: one mounted client and its calls, which block. Its header:
//! /usr/include/cephfs/libcephfs.h of Ceph 16 and later.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::sys::library::{Refusal, functions, step, text};

type Client = *mut c_void;
type Listing = *mut c_void;

const POOL_NAME_BYTES_MAX: usize = 4096;

functions! {
    /// The functions that are used.
    Libcephfs from &["libcephfs.so.2"], "libcephfs2";
    ceph_create: unsafe extern "C" fn(*mut Client, *const c_char) -> c_int,
    ceph_conf_read_file: unsafe extern "C" fn(Client, *const c_char) -> c_int,
    ceph_conf_parse_env: unsafe extern "C" fn(Client, *const c_char) -> c_int,
    ceph_conf_set: unsafe extern "C" fn(Client, *const c_char, *const c_char) -> c_int,
    ceph_select_filesystem: unsafe extern "C" fn(Client, *const c_char) -> c_int,
    ceph_mount: unsafe extern "C" fn(Client, *const c_char) -> c_int,
    ceph_unmount: unsafe extern "C" fn(Client) -> c_int,
    ceph_release: unsafe extern "C" fn(Client) -> c_int,
    ceph_statfs: unsafe extern "C" fn(Client, *const c_char, *mut libc::statvfs) -> c_int,
    ceph_get_path_pool_name: unsafe extern "C" fn(Client, *const c_char, *mut c_char, usize) -> c_int,
    ceph_mkdir: unsafe extern "C" fn(Client, *const c_char, libc::mode_t) -> c_int,
    ceph_rmdir: unsafe extern "C" fn(Client, *const c_char) -> c_int,
    ceph_unlink: unsafe extern "C" fn(Client, *const c_char) -> c_int,
    ceph_rename: unsafe extern "C" fn(Client, *const c_char, *const c_char) -> c_int,
    ceph_lstat: unsafe extern "C" fn(Client, *const c_char, *mut libc::stat64) -> c_int,
    ceph_opendir: unsafe extern "C" fn(Client, *const c_char, *mut Listing) -> c_int,
    ceph_readdir: unsafe extern "C" fn(Client, Listing) -> *mut libc::dirent64,
    ceph_closedir: unsafe extern "C" fn(Client, Listing) -> c_int,
    ceph_open: unsafe extern "C" fn(Client, *const c_char, c_int, libc::mode_t) -> c_int,
    ceph_close: unsafe extern "C" fn(Client, c_int) -> c_int,
    ceph_read: unsafe extern "C" fn(Client, c_int, *mut c_char, i64, i64) -> c_int,
    ceph_write: unsafe extern "C" fn(Client, c_int, *const c_char, i64, i64) -> c_int,
    ceph_fsync: unsafe extern "C" fn(Client, c_int, c_int) -> c_int,
    ceph_lseek: unsafe extern "C" fn(Client, c_int, i64, c_int) -> i64,
}

/// How to reach a file system; `id` is the user's name without `client.`.
#[derive(Debug, Clone, Default)]
pub struct Access {
    pub id: String,
    pub conf: String,
    pub keyring: String,
    pub file_system: String,
    pub settings: Vec<(&'static str, String)>,
}

/// A client that is mounted at the file system's root. Unmounted on drop.
pub struct Mounted {
    library: &'static Libcephfs,
    client: Client,
    is_mounted: bool,
}

// SAFETY: libcephfs locks each client, so that several threads may use one (libcephfs.h has no call that binds
// a client to a thread).
unsafe impl Send for Mounted {}
// SAFETY: as above.
unsafe impl Sync for Mounted {}

impl Mounted {
    /// Connects and mounts; waits as long as the settings allow.
    pub fn mount(access: &Access) -> Result<Self, Refusal> {
        let library = Libcephfs::get().map_err(Refusal::Library)?;
        let mut client: Client = std::ptr::null_mut();
        let id = text(&access.id);
        // SAFETY: the out-pointer and the text live for the call.
        step("make a client as the Ceph user", unsafe {
            (library.ceph_create)(&raw mut client, id.as_ptr())
        })?;
        let mut this = Self {
            library,
            client,
            is_mounted: false,
        };
        this.configure(access)?;
        let root = text("/");
        // SAFETY: the client is configured; the text lives for the call.
        step("mount the file system", unsafe {
            (library.ceph_mount)(client, root.as_ptr())
        })?;
        this.is_mounted = true;
        Ok(this)
    }

    fn configure(&self, access: &Access) -> Result<(), Refusal> {
        let (library, client) = (self.library, self.client);
        let conf = text(&access.conf);
        let conf = if access.conf.is_empty() {
            std::ptr::null()
        } else {
            conf.as_ptr()
        };
        // SAFETY: null stands for Ceph's default places; else a text that lives for the call.
        step("read Ceph's configuration", unsafe {
            (library.ceph_conf_read_file)(client, conf)
        })?;
        // SAFETY: a null name stands for the default (CEPH_ARGS).
        let _ = unsafe { (library.ceph_conf_parse_env)(client, std::ptr::null()) };
        let keyring = (!access.keyring.is_empty()).then(|| ("keyring", access.keyring.clone()));
        for (name, value) in keyring.iter().chain(&access.settings) {
            let (name, value) = (text(name), text(value));
            // SAFETY: both texts live for the call.
            step("change a setting of the client", unsafe {
                (library.ceph_conf_set)(client, name.as_ptr(), value.as_ptr())
            })?;
        }
        if access.file_system.is_empty() {
            return Ok(());
        }
        let name = text(&access.file_system);
        // SAFETY: the text lives for the call.
        step("choose the file system", unsafe {
            (library.ceph_select_filesystem)(client, name.as_ptr())
        })
    }

    /// 0, or minus errno.
    pub fn make_directory(&self, path: &CStr) -> i64 {
        // SAFETY: the text lives for the call.
        i64::from(unsafe { (self.library.ceph_mkdir)(self.client, path.as_ptr(), 0o700) })
    }

    /// 0, or minus errno.
    pub fn remove_directory(&self, path: &CStr) -> i64 {
        // SAFETY: the text lives for the call.
        i64::from(unsafe { (self.library.ceph_rmdir)(self.client, path.as_ptr()) })
    }

    /// 0, or minus errno.
    pub fn unlink(&self, path: &CStr) -> i64 {
        // SAFETY: the text lives for the call.
        i64::from(unsafe { (self.library.ceph_unlink)(self.client, path.as_ptr()) })
    }

    /// Both are paths; 0, or minus errno.
    pub fn rename(&self, from: &CStr, to: &CStr) -> i64 {
        // SAFETY: both texts live for the call.
        i64::from(unsafe { (self.library.ceph_rename)(self.client, from.as_ptr(), to.as_ptr()) })
    }

    /// Asks for a file's attributes, which nobody looks at; 0, or minus errno.
    pub fn look_at(&self, path: &CStr) -> i64 {
        let mut facts = std::mem::MaybeUninit::<libc::stat64>::uninit();
        // SAFETY: the text lives for the call, and `facts` is writable.
        i64::from(unsafe {
            (self.library.ceph_lstat)(self.client, path.as_ptr(), facts.as_mut_ptr())
        })
    }

    /// Whether a path is a directory itself, and no link to one; or the errno.
    pub fn is_directory(&self, path: &CStr) -> Result<bool, i32> {
        let mut facts = std::mem::MaybeUninit::<libc::stat64>::uninit();
        // SAFETY: the text lives for the call, and `facts` is writable.
        let result =
            unsafe { (self.library.ceph_lstat)(self.client, path.as_ptr(), facts.as_mut_ptr()) };
        if result < 0 {
            return Err(-result);
        }
        // SAFETY: the call succeeded and filled it.
        let mode = unsafe { facts.assume_init() }.st_mode;
        Ok(mode & libc::S_IFMT == libc::S_IFDIR)
    }

    /// 0 where a directory can be listed, or minus errno.
    pub fn look_into(&self, path: &CStr) -> i64 {
        let mut listing: Listing = std::ptr::null_mut();
        // SAFETY: the text and the out-pointer live for the call.
        let opened =
            unsafe { (self.library.ceph_opendir)(self.client, path.as_ptr(), &raw mut listing) };
        if opened >= 0 {
            // SAFETY: the listing is open, and not used afterwards.
            unsafe { (self.library.ceph_closedir)(self.client, listing) };
        }
        i64::from(opened)
    }

    /// Names in a directory, `.` and `..` left out, or the errno.
    pub fn names(&self, path: &CStr) -> Result<Vec<String>, i32> {
        let mut names = Vec::new();
        let listed = self.each_name(path, |name| {
            if name != c"." && name != c".." {
                names.push(name.to_string_lossy().into_owned());
            }
        });
        match listed {
            0 => Ok(names),
            refused => Err(-refused as i32),
        }
    }

    /// Opens a directory, lists it to its end and closes it; 0, or minus errno.
    pub fn list(&self, path: &CStr) -> i64 {
        self.each_name(path, |_| ())
    }

    fn each_name(&self, path: &CStr, mut visit: impl FnMut(&CStr)) -> i64 {
        let mut listing: Listing = std::ptr::null_mut();
        // SAFETY: the text and the out-pointer live for the call.
        let opened =
            unsafe { (self.library.ceph_opendir)(self.client, path.as_ptr(), &raw mut listing) };
        if opened < 0 {
            return i64::from(opened);
        }
        loop {
            // SAFETY: the listing is open and used by this thread alone.
            let entry = unsafe { (self.library.ceph_readdir)(self.client, listing) };
            if entry.is_null() {
                break;
            }
            // SAFETY: the entry is valid until the next call, its name ends with NUL.
            visit(unsafe { CStr::from_ptr((*entry).d_name.as_ptr()) });
        }
        // SAFETY: the listing is open, and not used afterwards.
        i64::from(unsafe { (self.library.ceph_closedir)(self.client, listing) })
    }

    /// (total, free) bytes, or the errno.
    pub fn space(&self, path: &CStr) -> Result<(u64, u64), i32> {
        let mut found = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
        // SAFETY: the text and the out-pointer live for the call.
        let result =
            unsafe { (self.library.ceph_statfs)(self.client, path.as_ptr(), found.as_mut_ptr()) };
        if result < 0 {
            return Err(-result);
        }
        // SAFETY: zeroed bytes are a valid statvfs, and the library filled it.
        let found = unsafe { found.assume_init() };
        Ok((
            found.f_blocks * found.f_frsize,
            found.f_bavail * found.f_frsize,
        ))
    }

    /// The pool that new files of a directory go to; None where the client does not say, or in other words than text.
    pub fn pool(&self, path: &CStr) -> Option<String> {
        let mut name = vec![0_u8; POOL_NAME_BYTES_MAX];
        // SAFETY: the text and the buffer live for the call, which writes no more than the buffer's length.
        let length = unsafe {
            (self.library.ceph_get_path_pool_name)(
                self.client,
                path.as_ptr(),
                name.as_mut_ptr().cast(),
                name.len(),
            )
        };
        name.truncate(usize::try_from(length).ok()?);
        String::from_utf8(name).ok().filter(|name| !name.is_empty())
    }

    /// A descriptor of the client's own, or minus errno.
    pub fn open(&self, path: &CStr, flags: i32) -> i64 {
        // SAFETY: the text lives for the call.
        i64::from(unsafe { (self.library.ceph_open)(self.client, path.as_ptr(), flags, 0o644) })
    }

    /// Closes a descriptor of `open`; 0, or minus errno.
    pub fn close(&self, descriptor: i32) -> i64 {
        // SAFETY: the library checks the number.
        i64::from(unsafe { (self.library.ceph_close)(self.client, descriptor) })
    }

    /// Bytes read, or minus errno.
    pub fn read(&self, descriptor: i32, buffer: &mut [u8], offset: u64) -> i64 {
        // SAFETY: pointer and length are those of `buffer`, which outlives the call.
        i64::from(unsafe {
            (self.library.ceph_read)(
                self.client,
                descriptor,
                buffer.as_mut_ptr().cast(),
                buffer.len() as i64,
                offset as i64,
            )
        })
    }

    /// Bytes written, or minus errno.
    pub fn write(&self, descriptor: i32, buffer: &[u8], offset: u64) -> i64 {
        // SAFETY: pointer and length are those of `buffer`, which outlives the call.
        i64::from(unsafe {
            (self.library.ceph_write)(
                self.client,
                descriptor,
                buffer.as_ptr().cast(),
                buffer.len() as i64,
                offset as i64,
            )
        })
    }

    /// 0, or minus errno.
    pub fn sync(&self, descriptor: i32, data_only: bool) -> i64 {
        // SAFETY: the library checks the number.
        i64::from(unsafe {
            (self.library.ceph_fsync)(self.client, descriptor, c_int::from(data_only))
        })
    }

    /// The file's bytes, or minus errno.
    pub fn size(&self, descriptor: i32) -> i64 {
        // SAFETY: the library checks the number; positions are given with every call, so that moving this one
        // disturbs nobody.
        unsafe { (self.library.ceph_lseek)(self.client, descriptor, 0, libc::SEEK_END) }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // SAFETY: nobody uses the client any more: open files hold it by an Arc.
        unsafe {
            if self.is_mounted {
                (self.library.ceph_unmount)(self.client);
            }
            (self.library.ceph_release)(self.client);
        }
    }
}
