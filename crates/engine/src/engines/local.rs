//! Engines on paths that do one call at a time: `psync` by pread, pwrite and fsync, `mmap` by copies to and from files
//! mapped into memory. And the open files of a thread, as all engines on paths need them: opened, checked, advised.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::error::{Failure, FailureKind};
use crate::io::{Blocking, Direction, Engine, Operation, Setup, no_memory};
use crate::sys::buffer::AlignedBuffer;
use crate::sys::directory::OwnDirectory;
use crate::sys::file::{self, Advice};
use crate::sys::map::MappedFile;
use crate::volume;

/// Plain system calls on one buffer.
pub struct Psync {
    files: Vec<File>,
    buffer: AlignedBuffer,
}

/// One buffer for an engine that does one call at a time.
pub fn single_buffer(setup: &Setup) -> Result<AlignedBuffer, Failure> {
    AlignedBuffer::new(setup.block_bytes).map_err(|error| no_memory(&error))
}

impl Engine for Psync {
    const BLOCKING: bool = true;

    fn start(setup: &Setup) -> Result<Self, Failure> {
        let buffer = single_buffer(setup)?;
        Ok(Self {
            files: open_all(setup)?,
            buffer,
        })
    }

    #[inline]
    fn buffer(&mut self, _slot: u32) -> &mut [u8] {
        self.buffer.as_mut_slice()
    }

    fn vanished(&mut self) -> Option<usize> {
        first_deleted(&self.files)
    }

    fn forget(&mut self) {
        forget(&self.files);
    }
}

impl Blocking for Psync {
    #[inline]
    fn perform(&mut self, operation: Operation) -> i64 {
        let file = &self.files[operation.file as usize];
        let start = operation.start as usize;
        let part = &mut self.buffer.as_mut_slice()[start..start + operation.length as usize];
        match operation.direction {
            Direction::Read => file::read_at(file, part, operation.offset),
            Direction::Write => file::write_at(file, part, operation.offset),
            Direction::Sync if operation.data_only => file::sync_data(file),
            Direction::Sync => file::sync(file),
        }
    }
}

/// Whole files, mapped shared.
pub struct Mmap {
    files: Vec<File>,
    mapped: Vec<MappedFile>,
    buffer: AlignedBuffer,
}

impl Engine for Mmap {
    const BLOCKING: bool = true;

    fn start(setup: &Setup) -> Result<Self, Failure> {
        let buffer = single_buffer(setup)?;
        let files = open_all(setup)?;
        let mapped = files
            .iter()
            .zip(&setup.files)
            .map(|(file, path)| {
                map(file, setup).map_err(|error| {
                    let errno = error.raw_os_error().unwrap_or(libc::EIO);
                    Failure::system(errno, "mmap", path, 0)
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            files,
            mapped,
            buffer,
        })
    }

    #[inline]
    fn buffer(&mut self, _slot: u32) -> &mut [u8] {
        self.buffer.as_mut_slice()
    }

    fn vanished(&mut self) -> Option<usize> {
        first_deleted(&self.files)
    }

    fn forget(&mut self) {
        forget(&self.files);
    }
}

impl Blocking for Mmap {
    #[inline]
    fn perform(&mut self, operation: Operation) -> i64 {
        let mapped = &mut self.mapped[operation.file as usize];
        let start = operation.start as usize;
        let part = &mut self.buffer.as_mut_slice()[start..start + operation.length as usize];
        let offset = operation.offset as usize;
        let copied = match operation.direction {
            Direction::Read => mapped.read(part, offset),
            Direction::Write => mapped.write(part, offset),
            Direction::Sync => return mapped.sync(),
        };
        match copied {
            Ok(()) => i64::from(operation.length),
            Err(errno) => self.why(errno, operation),
        }
    }
}

impl Mmap {
    /// A fault on a file that has become too short is the end of the file (0 bytes), as read() would say.
    #[cold]
    fn why(&self, errno: i32, operation: Operation) -> i64 {
        let end = operation.offset + u64::from(operation.length);
        match self.files[operation.file as usize].metadata() {
            Ok(facts) if facts.len() < end => 0,
            _ => -i64::from(errno),
        }
    }
}

fn map(file: &File, setup: &Setup) -> std::io::Result<MappedFile> {
    if setup.how.fresh {
        file.set_len(setup.file_bytes)?;
    }
    let mut mapped = MappedFile::new(file, setup.file_bytes as usize, setup.how.write)?;
    mapped.advise(if setup.random {
        Advice::Random
    } else {
        Advice::Sequential
    });
    Ok(mapped)
}

/// Opens every file of `setup`. Files that are not fresh must have their full size.
pub fn open_all(setup: &Setup) -> Result<Vec<File>, Failure> {
    if let Some(descriptor) = setup.descriptor {
        return Ok(vec![open_again(descriptor, setup)?]);
    }
    let Some(directory) = setup.files.first().and_then(|path| path.parent()) else {
        return Ok(Vec::new());
    };
    let directory = volume::own_directory(directory).map_err(crate::io::refused)?;
    let open = |path: &PathBuf| open_one(&directory, path, setup);
    setup.files.iter().map(open).collect()
}

fn open_one(directory: &OwnDirectory, path: &Path, setup: &Setup) -> Result<File, Failure> {
    let opened = directory.open_file(path, setup.how);
    let file = opened.map_err(|error| refused(path, setup, &error))?;
    ready(file, path, setup)
}

/// What a descriptor of this process has open, once more and in this job's way. A device has its size only at its
/// end.
fn open_again(descriptor: i32, setup: &Setup) -> Result<File, Failure> {
    let path = PathBuf::from(format!("/proc/self/fd/{descriptor}"));
    let opened = std::fs::OpenOptions::new()
        .read(true)
        .write(setup.how.write)
        .custom_flags(if setup.how.direct { libc::O_DIRECT } else { 0 })
        .open(&path);
    let file = opened.map_err(|error| refused(&path, setup, &error))?;
    ready(file, &path, setup)
}

fn ready(mut file: File, path: &Path, setup: &Setup) -> Result<File, Failure> {
    if setup.how.direct {
        check_alignment(&file, path, setup)?;
    }
    if !setup.how.fresh {
        check_size(&mut file, path, setup)?;
    }
    if !setup.how.direct {
        // As fio's `invalidate` and `fadvise_hint`: cached pages of an earlier trial are not this one's.
        file::advise(&file, Advice::DontNeed);
        file::advise(
            &file,
            if setup.random {
                Advice::Random
            } else {
                Advice::Sequential
            },
        );
    }
    Ok(file)
}

fn refused(path: &Path, setup: &Setup, error: &io::Error) -> Failure {
    let Some(errno) = error.raw_os_error() else {
        let words = path.display().to_string();
        return crate::io::refused(volume::system(error, "open", &words));
    };
    let mut failure = Failure::system(errno, "open", path, 0);
    if setup.how.direct && errno == libc::EINVAL {
        failure.message = format!(
            "{}: its file system has no direct I/O; use direct: false",
            path.display()
        );
    }
    failure
}

fn check_alignment(file: &File, path: &Path, setup: &Setup) -> Result<(), Failure> {
    let alignment = match file::direct_alignment(file) {
        Ok(Some(alignment)) => alignment as usize,
        Ok(None) | Err(_) => return Ok(()),
    };
    let what = if alignment == 0 {
        "its file system has no direct I/O; use direct: false".to_owned()
    } else if !setup.block_bytes.is_multiple_of(alignment) {
        let bs = setup.block_bytes;
        format!(
            "direct I/O there needs blocks that are a multiple of {alignment} bytes, and bs is {bs}; \
             change bs, or use direct: false"
        )
    } else {
        return Ok(());
    };
    let failure = Failure::found(FailureKind::Io, "open", path, 0, &what);
    Err(Failure {
        errno: Some(libc::EINVAL),
        ..failure
    })
}

fn check_size(file: &mut File, path: &Path, setup: &Setup) -> Result<(), Failure> {
    let found = file.seek(SeekFrom::End(0)).map_err(|error| {
        Failure::system(error.raw_os_error().unwrap_or(libc::EIO), "stat", path, 0)
    })?;
    if found >= setup.file_bytes {
        return Ok(());
    }
    let what = format!(
        "the file has {found} bytes and the job needs {}: prefill it first",
        setup.file_bytes
    );
    Err(Failure::found(
        FailureKind::Short,
        "open",
        path,
        found,
        &what,
    ))
}

/// Drops cached pages of all of them; what is dirty stays.
pub fn forget(files: &[File]) {
    for file in files {
        file::advise(file, Advice::DontNeed);
    }
}

/// The first file whose last name is gone.
pub fn first_deleted(files: &[File]) -> Option<usize> {
    files
        .iter()
        .position(|file| file::is_deleted(file).unwrap_or(false))
}
