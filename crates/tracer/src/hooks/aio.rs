//! Asynchronous I/O: POSIX aio and Linux's own (libaio). A transfer is counted when its result is collected:
//! before that nobody knows it. Its time is not: it passed beside the program.

use core::ffi::{c_int, c_long, c_void};

use leadline_record::trace::Kind;
use libc::{aiocb, ssize_t, timespec};

use super::hook;
use crate::recording::{Direction, Made, Transfer, on_descriptor, on_nothing, transfer};

unsafe fn asked(made: Made, block: *const aiocb, kind: Kind) {
    if !block.is_null() {
        // SAFETY: as given to the real function, which has read it.
        on_descriptor(made, unsafe { (*block).aio_fildes }, kind, |_, _| ());
    }
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

/// The kernel's `struct iocb`.
#[repr(C)]
struct Request {
    data: u64,
    key: u32,
    flags: u32,
    operation: u16,
    priority: i16,
    descriptor: u32,
    memory: u64,
    bytes: u64,
    offset: i64,
}

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

/// Requests whose results have come, in a call that returned so many.
pub unsafe fn events(made: Made, events: *const Event) {
    on_nothing(made, Kind::Meta);
    for place in 0..made.result.max(0) as usize {
        // SAFETY: the kernel has just written so many events; requests stay valid until they are collected.
        let (event, request) = unsafe {
            let event = &*events.wrapping_add(place);
            let request = core::ptr::with_exposed_provenance::<Request>(event.request as usize);
            (event, request.as_ref())
        };
        let Some(request) = request else {
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
    fn aio_read(block: *mut aiocb) -> c_int, |made| asked(made, block, Kind::Read);
    fn aio_read64(block: *mut aiocb) -> c_int, |made| asked(made, block, Kind::Read);
    fn aio_write(block: *mut aiocb) -> c_int, |made| asked(made, block, Kind::Write);
    fn aio_write64(block: *mut aiocb) -> c_int, |made| asked(made, block, Kind::Write);
    fn aio_fsync(operation: c_int, block: *mut aiocb) -> c_int, |made| asked(made, block, Kind::Sync);
    fn aio_fsync64(operation: c_int, block: *mut aiocb) -> c_int, |made| asked(made, block, Kind::Sync);
    fn aio_return(block: *mut aiocb) -> ssize_t, |made| collected(made, block);
    fn aio_return64(block: *mut aiocb) -> ssize_t, |made| collected(made, block);
    fn lio_listio(mode: c_int, list: *const *mut aiocb, count: c_int, event: *mut c_void) -> c_int,
        |made| on_nothing(made, Kind::Meta);
    fn lio_listio64(mode: c_int, list: *const *mut aiocb, count: c_int, event: *mut c_void) -> c_int,
        |made| on_nothing(made, Kind::Meta);
    fn io_submit(context: *mut c_void, count: c_long, requests: *mut *mut c_void) -> c_int,
        |made| on_nothing(made, Kind::Meta);
    fn io_getevents(
        context: *mut c_void, least: c_long, most: c_long, into: *mut Event, timeout: *mut timespec,
    ) -> c_int, |made| events(made, into);
    fn io_pgetevents(
        context: *mut c_void, least: c_long, most: c_long, into: *mut Event, timeout: *mut timespec,
        signals: *mut c_void,
    ) -> c_int, |made| events(made, into);
}
