//! Names of an NFS export through libnfs: `Names` by one connection of the thread, which takes whole paths.

use std::ffi::CStr;
use std::path::Path;

use super::volume::{Channel, path_of};
use crate::sys::libnfs::{Access, OpenFile, Refusal, Session};
use crate::volume::names::{Names, WholePath};

/// One thread's directory and open file.
pub struct NfsNames {
    access: Access,
    channel: Channel,
    path: WholePath,
    other: WholePath,
    file: Option<OpenFile>,
}

fn code(result: Result<(), i32>) -> i32 {
    result.map_or_else(|errno| -errno, |()| 0)
}

impl NfsNames {
    pub fn new(access: Access, session: Session) -> std::io::Result<Self> {
        Ok(Self {
            channel: Channel::new(session, access.timeout)?,
            access,
            path: WholePath::default(),
            other: WholePath::default(),
            file: None,
        })
    }

    /// Makes the connection anew that an OPEN of version 4 has cost.
    fn connect_again(&mut self) -> Result<(), i32> {
        if !self.channel.session().is_lost() {
            return Ok(());
        }
        let session = Session::connect(&self.access).map_err(|refusal| match refusal {
            Refusal::Library(_) => libc::ENOPKG,
            Refusal::Step(_, errno, _) => errno,
        })?;
        // A file of the lost connection is none of the new one's.
        self.file = None;
        self.channel = Channel::new(session, self.access.timeout).map_err(|_| libc::ENOMEM)?;
        Ok(())
    }

    fn open_with(&mut self, name: &CStr, create: bool, direct: bool) -> i32 {
        if let Err(errno) = self.connect_again() {
            return -errno;
        }
        let path = self.path.of(name);
        match self.channel.session().open(path, create, create, direct) {
            Ok(file) => {
                self.file = Some(file);
                0
            }
            Err(errno) => -errno,
        }
    }

    fn on(&mut self, work: impl FnOnce(&mut Session, &mut WholePath) -> Result<(), i32>) -> i32 {
        match self.connect_again() {
            Ok(()) => code(work(self.channel.session(), &mut self.path)),
            Err(errno) => -errno,
        }
    }
}

impl Names for NfsNames {
    fn enter(&mut self, directory: &Path) -> i32 {
        let directory = path_of(&directory.to_string_lossy());
        self.path.enter(&directory);
        self.other.enter(&directory);
        0
    }

    fn leave(&mut self) {}

    fn make_tree_directory(&mut self, path: &Path) -> i32 {
        let path = path_of(&path.to_string_lossy());
        self.on(|session, _| session.make_directory(&path))
    }

    fn create(&mut self, name: &CStr) -> i32 {
        self.open_with(name, true, false)
    }

    fn open(&mut self, name: &CStr, direct: bool) -> i32 {
        self.open_with(name, false, direct)
    }

    fn write(&mut self, data: &[u8], offset: u64) -> i32 {
        let Some(file) = self.file else {
            return -libc::EBADF;
        };
        let mut done = 0;
        while done < data.len() {
            match self
                .channel
                .write(file, &data[done..], offset + done as u64, false)
            {
                0 => return -libc::ENOSPC,
                count if count < 0 => return count as i32,
                count => done += count as usize,
            }
        }
        0
    }

    fn read(&mut self, buffer: &mut [u8]) -> i32 {
        match self.file {
            Some(file) => self.channel.read(file, buffer, 0) as i32,
            None => -libc::EBADF,
        }
    }

    fn close(&mut self) -> i32 {
        match self.file.take() {
            Some(file) => code(self.channel.session().close(file)),
            None => 0,
        }
    }

    fn stat(&mut self, name: &CStr) -> i32 {
        self.on(|session, path| session.look(path.of(name)).map(|_| ()))
    }

    fn rename(&mut self, from: &CStr, to: &CStr) -> i32 {
        if let Err(errno) = self.connect_again() {
            return -errno;
        }
        let (from, to) = (self.path.of(from), self.other.of(to));
        code(self.channel.session().rename(from, to))
    }

    fn unlink(&mut self, name: &CStr) -> i32 {
        self.on(|session, path| session.unlink(path.of(name)))
    }

    fn make_directory(&mut self, name: &CStr) -> i32 {
        self.on(|session, path| session.make_directory(path.of(name)))
    }

    fn remove_directory(&mut self, name: &CStr) -> i32 {
        self.on(|session, path| session.remove_directory(path.of(name)))
    }

    fn list(&mut self, directory: &Path, _buffer: &mut [u8]) -> i32 {
        let directory = path_of(&directory.to_string_lossy());
        self.on(|session, _| session.list(&directory, |_| ()))
    }
}
