//! Calls on names and open files that are waited for, each to its answer or to the session's time; and pieces of
//! operations in flight on one session, with the buffers that they read into and write from. All in the thread that waits
//! for them: the library calls back from there.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::time::Duration;

use super::compound::{Answer, Request, errno_of as protocol_errno};
use super::{
    CREATED_MODE, Callback, DIRECTORY_MODE, Facts, Handle, Keep, Libnfs, OpenFile, Session,
    Waiting, answered, errno_of,
};
use crate::sys::in_flight::{self, InFlight};

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

/// What one piece of an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Read,
    /// Acknowledged when it is on the store.
    WriteThrough,
    /// Acknowledged when the server has it.
    Write,
    Commit,
}

/// Where a read goes to, and how much fits; null for everything else.
type Room = Cell<(usize, usize)>;

extern "C" fn ended(error: c_int, _nfs: Handle, data: *mut c_void, own: *mut c_void) {
    let result = |room: &Room| {
        let (place, bytes) = room.get();
        if error > 0 && place != 0 && !data.is_null() {
            let place = place as *mut u8;
            // SAFETY: the library has `error` bytes at `data`; `place` has room for `bytes`, and nobody else has it
            // while the piece is in flight.
            unsafe { std::ptr::copy_nonoverlapping(data.cast(), place, bytes.min(error as usize)) };
        }
        if error < 0 {
            -i64::from(errno_of(error))
        } else {
            i64::from(error)
        }
    };
    // SAFETY: `own` is the ticket of a piece in flight, which ends with this one call; the library is called only
    // while its queue lives.
    unsafe { in_flight::end::<Room>(own, result) };
}

extern "C" fn compound_ended(_rpc: Handle, status: c_int, data: *mut c_void, own: *mut c_void) {
    let result = match status {
        0 if !data.is_null() => {
            // SAFETY: of a call that was answered the data is what `decode` wrote.
            let answer = unsafe { *data.cast::<Answer>() };
            match answer.status {
                0 => i64::from(answer.written_bytes),
                status => -i64::from(protocol_errno(status)),
            }
        }
        3 => -i64::from(libc::ETIMEDOUT),
        _ => -i64::from(libc::ENOTCONN),
    };
    // SAFETY: as of `ended`.
    unsafe { in_flight::end::<Room>(own, |_| result) };
}

/// Buffers of slots, and pieces of operations on them.
pub struct Queue {
    flight: InFlight<Session, Room>,
}

impl Queue {
    /// `slots` buffers of `slot_bytes`, and at most `pieces` pieces of each in flight.
    pub fn new(
        session: Session,
        slots: u32,
        slot_bytes: usize,
        pieces: u32,
    ) -> std::io::Result<Self> {
        let flight = InFlight::new("libnfs", session, (slots, slot_bytes), pieces)?;
        Ok(Self { flight })
    }

    /// For calls between the queued ones, before and after a trial.
    pub fn session(&mut self) -> &mut Session {
        self.flight.held_mut()
    }

    /// True when nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.flight.is_idle()
    }

    /// The buffer of a slot without a piece in flight.
    #[inline]
    pub fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.flight.buffer(slot)
    }

    /// Starts piece `piece` of a slot: `length` bytes at `start` of its buffer, at `offset` of the file.
    /// 0, or minus errno, and then nothing was started.
    pub fn start(
        &mut self,
        place: (u32, u32),
        action: Action,
        file: OpenFile,
        (offset, start, length): (u64, usize, usize),
    ) -> i64 {
        if self.session().lost {
            return -i64::from(libc::ENOTCONN);
        }
        let piece = self.flight.piece(place, (start, length));
        let (number, memory, ticket) = (piece.number, piece.memory, piece.ticket);
        let room = if action == Action::Read {
            memory as usize
        } else {
            0
        };
        piece.own.set((room, length));
        let session = self.flight.held_mut();
        if !session.start(action, file, offset, (memory, length), ticket) {
            return -i64::from(libc::EIO);
        }
        self.flight.started(number);
        0
    }

    /// Leaves a server that did not answer in time: the library is never called again, so that what it has in flight
    /// is touched by nobody, and every call from here on is refused.
    pub fn leave(&mut self) {
        self.session().lost = true;
        while self.flight.give_up().is_some() {}
    }

    /// Sends what was started, as much as the socket takes.
    pub fn push(&mut self) {
        // A connection that is lost ends all pieces in `reap`.
        let _ = self.session().service(c_int::from(libc::POLLOUT));
    }

    /// Calls `settle` with (slot, piece, result) of every piece that has ended, after waiting for one at most
    /// `timeout`. A lost connection ends all.
    pub fn reap(&mut self, timeout: Duration, mut settle: impl FnMut(u32, u32, i64)) {
        let waits = !self.flight.has_ended();
        let served = self
            .session()
            .serve(if waits { timeout } else { Duration::ZERO });
        self.flight.fetch(Duration::ZERO);
        while let Some((number, result)) = self.flight.next_end() {
            let (slot, piece) = self.flight.place(number);
            settle(slot, piece, result);
        }
        if served.is_err() {
            // The library is not called any more, so it touches none of them.
            while let Some(number) = self.flight.give_up() {
                let (slot, piece) = self.flight.place(number);
                settle(slot, piece, -i64::from(libc::ENOTCONN));
            }
        }
    }
}

impl Session {
    fn start(
        &mut self,
        action: Action,
        file: OpenFile,
        offset: u64,
        (memory, length): (*mut u8, usize),
        own: *mut c_void,
    ) -> bool {
        let (library, nfs, bytes) = (self.library, self.context, length as u64);
        // SAFETY: memory and length lie in a slot that nobody touches while the piece is in flight; the file is one
        // of this session's, and `own` a ticket that lives until it has ended.
        unsafe {
            match (action, self.version) {
                (Action::Read, _) => {
                    (library.nfs_pread_async)(nfs, file.0, offset, bytes, ended, own) == 0
                }
                (Action::Commit, 3) => (library.nfs_fsync_async)(nfs, file.0, ended, own) == 0,
                // Whether it is written through was said when the file was opened.
                (_, 3) => {
                    (library.nfs_pwrite_async)(
                        nfs,
                        file.0,
                        offset,
                        bytes,
                        memory.cast(),
                        ended,
                        own,
                    ) == 0
                }
                (Action::Commit, _) => self.send(file, &Request::Commit, compound_ended, own),
                (Action::Write | Action::WriteThrough, _) => {
                    let data = std::slice::from_raw_parts(memory, length);
                    let stable = action == Action::WriteThrough;
                    self.send(
                        file,
                        &Request::Write(offset, data, stable),
                        compound_ended,
                        own,
                    )
                }
            }
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // Answers that have not come would be told to the tickets, which go now.
        if !self.is_idle() {
            self.leave();
        }
    }
}
