//! Calls on names and open files that are waited for: each to its answer, or to the session's time.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::{
    CREATED_MODE, Callback, DIRECTORY_MODE, Facts, Handle, Keep, Libnfs, OpenFile, Session,
    Waiting, answered,
};

type OnPath = unsafe extern "C" fn(Handle, *const c_char, Callback, *mut c_void) -> c_int;
type WithNumber =
    unsafe extern "C" fn(Handle, *const c_char, c_int, Callback, *mut c_void) -> c_int;

impl Session {
    /// Opens a file that is there, or makes it where `create` says so; `stable`: writes are on the store when
    /// they end.
    pub fn open(
        &mut self,
        path: &CStr,
        write: bool,
        create: bool,
        stable: bool,
    ) -> Result<OpenFile, i32> {
        let access = if write { libc::O_RDWR } else { libc::O_RDONLY };
        let flags =
            access | if create { libc::O_CREAT } else { 0 } | if stable { libc::O_SYNC } else { 0 };
        let opened = self.call(Keep::Handle, |library, nfs, own| {
            // SAFETY: the path lives until the call has ended.
            unsafe {
                (library.nfs_open2_async)(nfs, path.as_ptr(), flags, CREATED_MODE, answered, own)
            }
        });
        let opened = opened.inspect_err(|_| self.lost |= self.version != 3)?;
        Ok(OpenFile(opened.handle.get()))
    }

    /// Gives a new file the mode of any other.
    pub fn make_readable(&mut self, path: &CStr) -> Result<(), i32> {
        self.named(path, |library| library.nfs_chmod_async, CREATED_MODE)
    }

    fn named(
        &mut self,
        path: &CStr,
        function: impl FnOnce(&Libnfs) -> WithNumber,
        number: c_int,
    ) -> Result<(), i32> {
        self.call(Keep::Nothing, |library, nfs, own| {
            // SAFETY: the path lives until the call has ended.
            unsafe { function(library)(nfs, path.as_ptr(), number, answered, own) }
        })
        .map(|_| ())
    }

    fn on(
        &mut self,
        keep: Keep,
        path: &CStr,
        function: impl FnOnce(&Libnfs) -> OnPath,
    ) -> Result<Box<Waiting>, i32> {
        self.call(keep, |library, nfs, own| {
            // SAFETY: the path lives until the call has ended.
            unsafe { function(library)(nfs, path.as_ptr(), answered, own) }
        })
    }

    pub fn close(&mut self, file: OpenFile) -> Result<(), i32> {
        self.call(Keep::Nothing, |library, nfs, own| {
            // SAFETY: the file is one of this session's, and is not used again.
            unsafe { (library.nfs_close_async)(nfs, file.0, answered, own) }
        })
        .map(|_| ())
    }

    /// What the server knows of an open file.
    pub fn facts(&mut self, file: OpenFile) -> Result<Facts, i32> {
        self.call(Keep::Facts, |library, nfs, own| {
            // SAFETY: the file is one of this session's.
            unsafe { (library.nfs_fstat64_async)(nfs, file.0, answered, own) }
        })
        .map(|answer| answer.facts.get())
    }

    /// What the server knows of a name; of a symbolic link itself.
    pub fn look(&mut self, path: &CStr) -> Result<Facts, i32> {
        self.on(Keep::Facts, path, |library| library.nfs_lstat64_async)
            .map(|answer| answer.facts.get())
    }

    /// (total, free) bytes.
    pub fn space(&mut self, path: &CStr) -> Result<(u64, u64), i32> {
        self.on(Keep::Space, path, |library| library.nfs_statvfs_async)
            .map(|answer| answer.space.get())
    }

    pub fn make_directory(&mut self, path: &CStr) -> Result<(), i32> {
        self.named(path, |library| library.nfs_mkdir2_async, DIRECTORY_MODE)
    }

    pub fn remove_directory(&mut self, path: &CStr) -> Result<(), i32> {
        self.on(Keep::Nothing, path, |library| library.nfs_rmdir_async)
            .map(|_| ())
    }

    pub fn unlink(&mut self, path: &CStr) -> Result<(), i32> {
        self.on(Keep::Nothing, path, |library| library.nfs_unlink_async)
            .map(|_| ())
    }

    pub fn rename(&mut self, old: &CStr, new: &CStr) -> Result<(), i32> {
        self.call(Keep::Nothing, |library, nfs, own| {
            // SAFETY: both paths live until the call has ended.
            unsafe { (library.nfs_rename_async)(nfs, old.as_ptr(), new.as_ptr(), answered, own) }
        })
        .map(|_| ())
    }

    /// Lists a directory to its end, without `.` and `..`.
    pub fn list(&mut self, path: &CStr, mut each: impl FnMut(&CStr)) -> Result<(), i32> {
        let listed = self.on(Keep::Handle, path, |library| library.nfs_opendir_async)?;
        let directory = listed.handle.get();
        loop {
            // SAFETY: the directory is open; an entry and its name are its own, and are looked at before the next.
            let name = unsafe {
                let entry = (self.library.nfs_readdir)(self.context, directory);
                if entry.is_null() {
                    break;
                }
                CStr::from_ptr((*entry).name)
            };
            if name != c"." && name != c".." {
                each(name);
            }
        }
        // SAFETY: it is not used again.
        unsafe { (self.library.nfs_closedir)(self.context, directory) };
        Ok(())
    }
}
