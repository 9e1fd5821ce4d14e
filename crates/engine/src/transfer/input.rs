//! What a writing stream sends: generated data, or files of the user, read through.

use std::fs::File;
use std::path::PathBuf;

use leadline_record::open_plain;

use super::job::TransferJob;
use crate::error::{Failure, FailureKind};
use crate::sys::file::{self, Advice};

/// Files of the user, one behind the other, over and over.
pub struct Input {
    files: Vec<(PathBuf, File, u64)>,
    bytes: u64,
}

impl Input {
    /// What `stream` sends; `None`: generated data. The files are dealt out in turn; where there are fewer than streams
    /// that write, several send the same.
    pub fn open(job: &TransferJob, stream: u32) -> Result<Option<Self>, Failure> {
        let (count, stream) = (job.sources.len(), stream as usize);
        if count == 0 {
            return Ok(None);
        }
        let dealt = (stream % count..count).step_by(job.writers().max(1) as usize);
        let mut files = Vec::new();
        for path in dealt.map(|number| &job.sources[number]) {
            let failed = |error: std::io::Error| {
                let errno = error.raw_os_error().unwrap_or(libc::EINVAL);
                Failure::system(errno, "open of a source", path, 0)
            };
            let opened = open_plain(path).map_err(failed)?;
            let bytes = opened.metadata().map_err(failed)?.len();
            file::advise(&opened, Advice::Sequential);
            files.push((path.clone(), opened, bytes));
        }
        let bytes = files.iter().map(|(_, _, bytes)| bytes).sum();
        if bytes == 0 {
            let what = "there is nothing in it to send; name another file, or generate data";
            let path = &files[0].0;
            return Err(Failure::found(
                FailureKind::Short,
                "open of a source",
                path,
                0,
                what,
            ));
        }
        Ok(Some(Self { files, bytes }))
    }

    /// Fills `part` with what belongs at `offset` of the stream's file.
    pub fn fill(&self, part: &mut [u8], offset: u64) -> Result<(), Failure> {
        let mut done = 0;
        let mut place = offset % self.bytes;
        while done < part.len() {
            for (path, file, bytes) in &self.files {
                if place >= *bytes {
                    place -= bytes;
                    continue;
                }
                let room = usize::try_from(bytes - place).unwrap_or(usize::MAX);
                let length = room.min(part.len() - done);
                read_whole(file, &mut part[done..done + length], place)
                    .map_err(|(errno, at)| failed(path, errno, at))?;
                done += length;
                place = 0;
                if done == part.len() {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// The error is an errno, or `None` at the end of the file; and where.
fn read_whole(file: &File, part: &mut [u8], offset: u64) -> Result<(), (Option<i32>, u64)> {
    let mut done = 0;
    while done < part.len() {
        let at = offset + done as u64;
        match file::read_at(file, &mut part[done..], at) {
            count if count > 0 => done += count as usize,
            0 => return Err((None, at)),
            result => return Err((Some(-result as i32), at)),
        }
    }
    Ok(())
}

fn failed(path: &std::path::Path, errno: Option<i32>, offset: u64) -> Failure {
    match errno {
        Some(errno) => Failure::system(errno, "read of a source", path, offset),
        None => {
            let what = "the file became shorter while it was sent";
            Failure::found(FailureKind::Short, "read of a source", path, offset, what)
        }
    }
}
