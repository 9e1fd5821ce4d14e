//! `io_uring`: batches through a ring shared with the kernel, with registered files and buffers.
//!
//! What a kernel lacks is left out and noted: SINGLE_ISSUER and DEFER_TASKRUN (6.1), registered buffers
//! (RLIMIT_MEMLOCK), registered files.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use super::local::{first_deleted, forget, open_all};
use crate::error::Failure;
use crate::io::{Completion, Direction, Engine, Operation, Queueing, Setup};
use crate::sys::buffer::{ALIGNMENT_BYTES, AlignedBuffer};

/// The kernel takes at most 1 GiB in one registered buffer.
const REGISTERED_MAX_BYTES: usize = 1 << 30;
/// IORING_ENTER_GETEVENTS of io_uring_enter(2).
const ENTER_GETEVENTS: u32 = 1;
/// How long the kernel's submission thread looks for work before it sleeps.
const SQPOLL_IDLE_MS: u32 = 1000;
/// Waits from here on share one timer.
const SHARED_TIMER_MIN: Duration = Duration::from_millis(10);
/// The user data of the timer's completion: no slot has that number.
const TIMER: u64 = u64::MAX;

/// One ring of one thread.
pub struct Ring {
    ring: IoUring,
    files: Vec<File>,
    /// Taken out, and leaked, when the kernel may still write to it.
    buffer: Option<AlignedBuffer>,
    stride_bytes: usize,
    in_flight: Vec<bool>,
    unsubmitted: usize,
    files_registered: bool,
    buffers_registered: bool,
    /// A thread of the kernel takes what is queued (SQPOLL).
    polled_by_kernel: bool,
    /// When the standing timer fires, if one is armed.
    timer: Option<Instant>,
    timer_span: Box<Timespec>,
    notes: Vec<String>,
}

impl Engine for Ring {
    fn start(setup: &Setup) -> Result<Self, Failure> {
        let memory = |error: io::Error| {
            let errno = error.raw_os_error().unwrap_or(libc::ENOMEM);
            Failure::system(errno, "allocation of buffers", "memory".as_ref(), 0)
        };
        let mut notes = Vec::new();
        let ring = build(setup, &mut notes).map_err(|error| {
            let errno = error.raw_os_error().unwrap_or(libc::ENOSYS);
            Failure::system(errno, "set-up", "io_uring".as_ref(), 0)
        })?;
        let stride_bytes = setup.block_bytes.next_multiple_of(ALIGNMENT_BYTES);
        let mut this = Self {
            ring,
            files: open_all(setup)?,
            buffer: Some(AlignedBuffer::new(stride_bytes * setup.depth as usize).map_err(memory)?),
            stride_bytes,
            in_flight: vec![false; setup.depth as usize],
            unsubmitted: 0,
            files_registered: false,
            buffers_registered: false,
            polled_by_kernel: setup.sqthread_poll,
            timer: None,
            timer_span: Box::new(Timespec::new()),
            notes,
        };
        this.register();
        Ok(this)
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    #[inline]
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        let slot = slot as usize;
        assert!(
            !self.in_flight[slot],
            "the kernel still uses the buffer of slot {slot}"
        );
        let buffer = self.buffer.as_mut().expect("it is taken only by drop");
        buffer.part_mut(slot * self.stride_bytes..(slot + 1) * self.stride_bytes)
    }

    fn vanished(&mut self) -> Option<usize> {
        first_deleted(&self.files)
    }

    fn forget(&mut self) {
        forget(&self.files);
    }
}

impl Queueing for Ring {
    #[inline]
    fn queue(&mut self, slot: u32, operation: Operation) {
        let entry = self.entry(slot, operation).user_data(u64::from(slot));
        self.in_flight[slot as usize] = true;
        self.unsubmitted += 1;
        // SAFETY: the entry's buffer lies in `self.buffer` (checked by `entry`), which outlives the
        // operation: `buffer` refuses slots in flight, and `drop` leaks the memory while any is. The
        // descriptors live as long as the ring.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the ring has an entry for every slot");
    }

    #[inline]
    fn submit(&mut self) -> Result<(), i32> {
        while self.unsubmitted > 0 {
            match self.hand_over() {
                Ok(count) => self.unsubmitted = self.unsubmitted.saturating_sub(count),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    // The completion queue is full, or memory short: the rest goes after a reap.
                    Some(libc::EBUSY | libc::EAGAIN) => return Ok(()),
                    errno => return Err(errno.unwrap_or(libc::EIO)),
                },
            }
        }
        Ok(())
    }

    #[inline]
    fn reap(
        &mut self,
        minimum: u32,
        timeout_ns: u64,
        completions: &mut Vec<Completion>,
    ) -> Result<(), i32> {
        // Only to look, nothing needs the kernel: what was handed over last had it post what had ended.
        if self.collect(completions) >= minimum as usize && (minimum > 0 || self.unsubmitted == 0) {
            return Ok(());
        }
        self.wait(minimum, timeout_ns)?;
        self.collect(completions);
        Ok(())
    }
}

impl Ring {
    #[inline]
    fn entry(&self, slot: u32, operation: Operation) -> squeue::Entry {
        let start = slot as usize * self.stride_bytes + operation.start as usize;
        let end = start + operation.length as usize;
        let buffer = self.buffer.as_ref().expect("it is taken only by drop");
        assert!(end <= buffer.len(), "an operation beyond the buffers");
        let memory = buffer.as_ptr().wrapping_add(start);
        let (length, offset) = (operation.length, operation.offset);
        let file = self.descriptor(operation.file);
        let entry = match (operation.direction, self.buffers_registered) {
            (Direction::Sync, _) if operation.data_only => {
                opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build()
            }
            (Direction::Sync, _) => opcode::Fsync::new(file).build(),
            (Direction::Read, true) => opcode::ReadFixed::new(file, memory, length, 0)
                .offset(offset)
                .build(),
            (Direction::Read, false) => opcode::Read::new(file, memory, length)
                .offset(offset)
                .build(),
            (Direction::Write, true) => opcode::WriteFixed::new(file, memory, length, 0)
                .offset(offset)
                .build(),
            (Direction::Write, false) => opcode::Write::new(file, memory, length)
                .offset(offset)
                .build(),
        };
        if self.files_registered {
            entry.flags(squeue::Flags::FIXED_FILE)
        } else {
            entry
        }
    }

    /// A registered file is named by its index, with FIXED_FILE set.
    #[inline]
    fn descriptor(&self, file: u32) -> Fd {
        Fd(if self.files_registered {
            file as i32
        } else {
            self.files[file as usize].as_raw_fd()
        })
    }

    #[inline]
    fn collect(&mut self, completions: &mut Vec<Completion>) -> usize {
        let before = completions.len();
        for entry in self.ring.completion() {
            let entry: cqueue::Entry = entry;
            if entry.user_data() == TIMER {
                self.timer = None;
                continue;
            }
            let slot = entry.user_data() as u32;
            self.in_flight[slot as usize] = false;
            completions.push(Completion {
                slot,
                result: i64::from(entry.result()),
            });
        }
        completions.len() - before
    }

    /// Hands over and, without waiting, has the kernel post what has ended meanwhile: with DEFER_TASKRUN it
    /// posts only when entered for that, and a second call per batch costs as much as the looking.
    #[inline]
    fn hand_over(&mut self) -> io::Result<usize> {
        if self.polled_by_kernel {
            return self.ring.submit();
        }
        let count = self.ring.submission().len() as u32;
        // SAFETY: no argument is passed that the kernel would read or write.
        unsafe {
            self.ring
                .submitter()
                .enter::<libc::sigset_t>(count, 0, ENTER_GETEVENTS, None)
        }
    }

    /// Enters the kernel, which with DEFER_TASKRUN is also what posts completions.
    fn wait(&mut self, minimum: u32, timeout_ns: u64) -> Result<(), i32> {
        let timeout = Duration::from_nanos(timeout_ns);
        let entered = if minimum > 0 && self.timer_wakes_within(timeout) {
            self.ring.submit_and_wait(minimum as usize)
        } else {
            let time = Timespec::from(timeout);
            let arguments = SubmitArgs::new().timespec(&time);
            self.ring
                .submitter()
                .submit_with_args(minimum as usize, &arguments)
        };
        match entered {
            Ok(count) => {
                self.unsubmitted = self.unsubmitted.saturating_sub(count);
                Ok(())
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
                errno => Err(errno.unwrap_or(libc::EIO)),
            },
        }
    }

    /// Whether the standing timer ends a wait of `timeout` in time; arms one when there is none and it pays.
    /// A timer of each wait's own would be programmed and cancelled some ten thousand times a second, which
    /// in a virtual machine costs a microsecond each.
    fn timer_wakes_within(&mut self, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        if let Some(fires) = self.timer {
            return fires <= end;
        }
        if timeout < SHARED_TIMER_MIN {
            return false;
        }
        *self.timer_span = Timespec::from(timeout);
        let span: *const Timespec = &raw const *self.timer_span;
        let entry = opcode::Timeout::new(span).build().user_data(TIMER);
        // SAFETY: the kernel reads the span when it takes the entry, and the span lives, unchanged while the
        // timer is armed, as long as the ring.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        self.timer = pushed.is_ok().then_some(end);
        pushed.is_ok()
    }

    fn register(&mut self) {
        let descriptors: Vec<i32> = self.files.iter().map(AsRawFd::as_raw_fd).collect();
        match self.ring.submitter().register_files(&descriptors) {
            Ok(()) => self.files_registered = true,
            Err(error) => self
                .notes
                .push(format!("io_uring: files are not registered ({error})")),
        }
        let buffer = self.buffer.as_ref().expect("it is taken only by drop");
        if buffer.len() > REGISTERED_MAX_BYTES {
            self.notes
                .push("io_uring: buffers beyond 1 GiB are not registered".to_owned());
            return;
        }
        let memory = libc::iovec {
            iov_base: buffer.as_ptr().cast(),
            iov_len: buffer.len(),
        };
        // SAFETY: the memory is a live mapping of that length; `drop` frees it only when nothing is in flight.
        match unsafe { self.ring.submitter().register_buffers(&[memory]) } {
            Ok(()) => self.buffers_registered = true,
            Err(error) => {
                self.notes
                    .push(format!("io_uring: buffers are not registered ({error})"));
            }
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.in_flight.contains(&true) {
            // Operations that the kernel never ended may yet write there.
            std::mem::forget(self.buffer.take());
        } else if self.files_registered {
            // The kernel takes a ring apart some time after it was closed: files that it still holds then keep
            // their file system busy, and an unmount after the trial would fail.
            let _ = self.ring.submitter().unregister_files();
        }
    }
}

/// The best ring that this kernel makes. SQPOLL and DEFER_TASKRUN exclude each other.
fn build(setup: &Setup, notes: &mut Vec<String>) -> io::Result<IoUring> {
    // One entry more than slots: for the timer.
    let entries = (setup.depth + 1).next_power_of_two();
    let best = if setup.sqthread_poll {
        IoUring::builder()
            .setup_single_issuer()
            .setup_sqpoll(SQPOLL_IDLE_MS)
            .setup_cqsize(entries * 2)
            .build(entries)
    } else {
        IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_cqsize(entries * 2)
            .build(entries)
    };
    match best {
        Ok(ring) => Ok(ring),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) && !setup.sqthread_poll => {
            notes.push("io_uring: this kernel has no DEFER_TASKRUN (Linux 6.1)".to_owned());
            IoUring::builder().build(entries)
        }
        Err(error) => Err(error),
    }
}
