//! Asynchronous I/O: POSIX aio and Linux's own (libaio). A transfer is counted when its result is collected:
//! before that nobody knows it. Its time is not: it passed beside the program.

use core::ffi::{c_int, c_long, c_void};

use leadline_record::trace::Kind;
use libc::{aiocb, ssize_t, timespec};

use super::hook;
use crate::chunks;
use crate::process::{self, lost};
use crate::recording::{Direction, Made, Transfer, on_descriptor, on_nothing, transfer};

/// Whoever is told of the end may have freed the request before the call that made it is back.
unsafe fn descriptor(block: *const aiocb) -> c_int {
    // SAFETY: the real function reads it without a question, too.
    unsafe { block.as_ref() }.map_or(-1, |block| block.aio_fildes)
}

fn asked(made: Made, fd: c_int, kind: Kind) {
    on_descriptor(made, fd, kind, |_, _| ());
}

unsafe fn collected(made: Made, block: *const aiocb) {
    if block.is_null() {
        return;
    }
    // SAFETY: as given to the real function; the C library noted the operation in it.
    let block = unsafe { &*block };
    let direction = match block.aio_lio_opcode {
        libc::LIO_READ => Direction::Read,
        libc::LIO_WRITE => Direction::Write,
        _ => return on_nothing(made, Kind::Meta),
    };
    let memory = block.aio_buf.addr();
    let offset = Some(block.aio_offset as u64);
    transfer(
        made,
        block.aio_fildes,
        Transfer {
            direction,
            offset,
            asked: block.aio_nbytes as u64,
            memory,
        },
    );
}

pub mod requests;

/// The kernel's `struct io_event`.
#[repr(C)]
pub struct Event {
    data: u64,
    request: u64,
    result: i64,
    result2: i64,
}

const PREAD: u16 = 0;
const PWRITE: u16 = 1;
const PREADV: u16 = 7;
const PWRITEV: u16 = 8;

/// Requests were submitted, some of them or none.
pub fn submitted(made: Made, all: (*const *mut c_void, c_long)) {
    requests::submitted(all, made.result);
    on_nothing(made, Kind::Meta);
}

/// Requests whose results have come, in a call that returned so many.
pub unsafe fn events(made: Made, events: *const Event) {
    on_nothing(made, Kind::Meta);
    for place in 0..made.result.max(0) as usize {
        // SAFETY: the kernel has just written so many events.
        let event = unsafe { &*events.wrapping_add(place) };
        let Some(request) = requests::take(event.request as usize, event.data) else {
            if let Some(process) = process::existing() {
                process::count(chunks::header(process), lost::CALLS);
            }
            continue;
        };
        let direction = match request.operation {
            PREAD | PREADV => Direction::Read,
            PWRITE | PWRITEV => Direction::Write,
            _ => continue,
        };
        let asked = if matches!(request.operation, PREAD | PWRITE) {
            request.bytes
        } else {
            0
        };
        let offset = u64::try_from(request.offset).ok();
        let memory = request.memory as usize;
        let made = Made {
            result: event.result,
            ..made
        };
        crate::recording::arrived(
            made,
            request.descriptor as c_int,
            Transfer {
                direction,
                offset,
                asked,
                memory,
            },
        );
    }
}

hook! {
    fn aio_read(block: *mut aiocb) -> c_int, first fd = descriptor(block), |made| asked(made, fd, Kind::Read);
    fn aio_read64(block: *mut aiocb) -> c_int, first fd = descriptor(block), |made| asked(made, fd, Kind::Read);
    fn aio_write(block: *mut aiocb) -> c_int, first fd = descriptor(block), |made| asked(made, fd, Kind::Write);
    fn aio_write64(block: *mut aiocb) -> c_int, first fd = descriptor(block), |made| asked(made, fd, Kind::Write);
    fn aio_fsync(operation: c_int, block: *mut aiocb) -> c_int, first fd = descriptor(block),
        |made| asked(made, fd, Kind::Sync);
    fn aio_fsync64(operation: c_int, block: *mut aiocb) -> c_int, first fd = descriptor(block),
        |made| asked(made, fd, Kind::Sync);
    fn aio_return(block: *mut aiocb) -> ssize_t, |made| collected(made, block);
    fn aio_return64(block: *mut aiocb) -> ssize_t, |made| collected(made, block);
    fn lio_listio(mode: c_int, list: *const *mut aiocb, count: c_int, event: *mut c_void) -> c_int,
        |made| on_nothing(made, Kind::Meta);
    fn lio_listio64(mode: c_int, list: *const *mut aiocb, count: c_int, event: *mut c_void) -> c_int,
        |made| on_nothing(made, Kind::Meta);
    fn io_submit(context: *mut c_void, count: c_long, all: *mut *mut c_void) -> c_int,
        first _kept = requests::submitting((all, count)), |made| submitted(made, (all, count));
    fn io_getevents(
        context: *mut c_void, least: c_long, most: c_long, into: *mut Event, timeout: *mut timespec,
    ) -> c_int, |made| events(made, into);
    fn io_pgetevents(
        context: *mut c_void, least: c_long, most: c_long, into: *mut Event, timeout: *mut timespec,
        signals: *mut c_void,
    ) -> c_int, |made| events(made, into);
}
