//! What changes the tree: rename, unlink, mkdir, rmdir, links, and the working and root directories.

use core::ffi::{c_char, c_int, c_uint};

use leadline_record::trace::Kind;
use leadline_record::trace::layout::NOTE_CHROOT;
use libc::{AT_FDCWD, mode_t};

use super::hook;
use crate::recording::{Made, also_on_path, on_descriptor, on_path};
use crate::{chunks, paths, process, thread};

pub type At = (c_int, *const c_char);

pub unsafe fn renamed(made: Made, from: At, to: At) {
    // SAFETY: as given to the real function.
    unsafe {
        on_path(made, from, |record| record.rename_sources += 1);
        also_on_path(made, to, |record| record.rename_targets += 1);
    }
}

unsafe fn unlinked(made: Made, at: At, flags: c_int) {
    // SAFETY: as given to the real function.
    unsafe {
        on_path(made, at, |record| {
            if flags & libc::AT_REMOVEDIR != 0 {
                record.rmdirs += 1;
            } else {
                record.unlinks += 1;
            }
        });
    }
}

/// `remove` is one of the two, and which is not known: it counts as unlink.
unsafe fn removed(made: Made, path: *const c_char) {
    // SAFETY: as given to the real function.
    unsafe { unlinked(made, (AT_FDCWD, path), 0) };
}

unsafe fn made_directory(made: Made, at: At) {
    // SAFETY: as given to the real function.
    unsafe { on_path(made, at, |record| record.mkdirs += 1) };
}

/// Counted at the new name.
unsafe fn linked(made: Made, at: At) {
    // SAFETY: as given to the real function.
    unsafe { on_path(made, at, |record| record.links += 1) };
}

unsafe fn moved_to(made: Made, path: *const c_char) {
    // SAFETY: as given to the real function; the path is relative to the directory before.
    unsafe { on_path(made, (AT_FDCWD, path), |_| ()) };
    paths::directory_changed();
}

unsafe fn changed_root(made: Made, path: *const c_char) {
    // SAFETY: as given to the real function.
    unsafe { on_path(made, (AT_FDCWD, path), |_| ()) };
    if let (true, Some(process)) = (made.result >= 0, process::existing()) {
        process::flag(chunks::header(process), NOTE_CHROOT);
        paths::directory_changed();
    }
}

fn moved_to_descriptor(made: Made, fd: c_int) {
    on_descriptor(made, fd, Kind::Meta, |_, _| ());
    paths::directory_changed();
}

/// The directory that a relative path begins at has to be known before it is left.
fn leaving() {
    if let Some(mut thread) = thread::enter() {
        thread.learn_directory();
    }
}

const HERE: c_int = AT_FDCWD;

hook! {
    fn rename: (from: *const c_char, to: *const c_char) -> c_int,
        |made| renamed(made, (HERE, from), (HERE, to));
    fn renameat: (old: c_int, from: *const c_char, new: c_int, to: *const c_char) -> c_int,
        |made| renamed(made, (old, from), (new, to));
    fn renameat2: (old: c_int, from: *const c_char, new: c_int, to: *const c_char, flags: c_uint) -> c_int,
        |made| renamed(made, (old, from), (new, to));
    fn unlink: (path: *const c_char) -> c_int, |made| unlinked(made, (HERE, path), 0);
    fn unlinkat: (directory: c_int, path: *const c_char, flags: c_int) -> c_int,
        |made| unlinked(made, (directory, path), flags);
    fn remove: (path: *const c_char) -> c_int, |made| removed(made, path);
    fn mkdir: (path: *const c_char, mode: mode_t) -> c_int, |made| made_directory(made, (HERE, path));
    fn mkdirat: (directory: c_int, path: *const c_char, mode: mode_t) -> c_int,
        |made| made_directory(made, (directory, path));
    fn rmdir: (path: *const c_char) -> c_int, |made| unlinked(made, (HERE, path), libc::AT_REMOVEDIR);
    fn link: (from: *const c_char, to: *const c_char) -> c_int, |made| linked(made, (HERE, to));
    fn linkat: (old: c_int, from: *const c_char, new: c_int, to: *const c_char, flags: c_int) -> c_int,
        |made| linked(made, (new, to));
    fn symlink: (text: *const c_char, to: *const c_char) -> c_int, |made| linked(made, (HERE, to));
    fn symlinkat: (text: *const c_char, directory: c_int, to: *const c_char) -> c_int,
        |made| linked(made, (directory, to));
    fn chdir: (path: *const c_char) -> c_int, first _here = leaving(), |made| moved_to(made, path);
    fn fchdir: (fd: c_int) -> c_int, |made| moved_to_descriptor(made, fd);
    fn chroot: (path: *const c_char) -> c_int, first _here = leaving(), |made| changed_root(made, path);
}
