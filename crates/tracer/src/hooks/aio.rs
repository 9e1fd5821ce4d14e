//! Asynchronous I/O: POSIX aio and Linux's own (libaio). A request is counted when its result is collected: before
//! that nobody knows what it moved. Its time is from its submission until then, and no time of the calls that submit
//! and collect, which only wait for it.

use core::ffi::{c_int, c_long, c_void};
use core::mem::offset_of;

use leadline_record::trace::Call;
use libc::{aiocb, ssize_t, timespec};

use super::hook;
use crate::recording::{Asked, Made, arrived, only_counted};
use crate::thread;

pub mod requests;

/// The kernel's `struct io_event`.
#[repr(C)]
pub struct Event {
    data: u64,
    request: u64,
    result: i64,
    result2: i64,
}

/// Requests were submitted, some of them or none.
pub fn submitted(made: Made, all: (*const *mut c_void, c_long)) {
    requests::submitted(all, made.result);
    only_counted(made);
}

/// Requests whose results have come, in a call that returned so many.
pub unsafe fn events(made: Made, events: *const Event) {
    only_counted(made);
    for place in 0..made.result.max(0) as usize {
        // SAFETY: the kernel has just written so many events.
        let event = unsafe { &*events.wrapping_add(place) };
        match requests::take(event.request as usize, event.data) {
            Some(request) => arrived(&request, event.result),
            None => requests::lose(),
        }
    }
}

/// The C library has taken a request, or refused it.
fn given(made: Made, block: *const aiocb) {
    if made.result < 0
        && let Some(request) = requests::returned(block)
    {
        arrived(&request, made.result);
    }
}

/// The kind of sync that `aio_fsync` is asked for.
fn sync_of(operation: c_int) -> Asked {
    if operation == libc::O_DSYNC {
        Asked::DataSync
    } else {
        Asked::Sync
    }
}

/// What the requests of a list ask for, which may have empty places.
unsafe fn listed(
    list: *const *mut aiocb,
    count: c_int,
    mut each: impl FnMut(*const aiocb, Call, Asked),
) {
    for place in 0..count.max(0) as usize {
        // SAFETY: the real function reads so many, and what they point to, without a question, too.
        let block = unsafe { *list.wrapping_add(place) }.cast_const();
        // SAFETY: as above.
        match unsafe { block.as_ref() }.map(|block| block.aio_lio_opcode) {
            Some(libc::LIO_READ) => each(block, Call::lio_listio_read, Asked::Read),
            Some(libc::LIO_WRITE) => each(block, Call::lio_listio_write, Asked::Write),
            _ => {}
        }
    }
}

const MODES: [c_int; 2] = [libc::LIO_WAIT, libc::LIO_NOWAIT];

unsafe fn listing(mode: c_int, list: *const *mut aiocb, count: c_int) {
    if MODES.contains(&mode) {
        // SAFETY: promised by the caller.
        unsafe {
            listed(list, count, |block, call, asked| {
                requests::giving(block, call, asked)
            })
        };
    }
}

/// Where the C library notes a request's error, before what it returns: it does not set errno to it.
const ERROR_AT: usize = offset_of!(aiocb, aio_offset) - 16;

unsafe fn collected(made: Made, block: *const aiocb) {
    only_counted(made);
    let Some(request) = requests::returned(block) else {
        return;
    };
    let result = if made.result < 0 {
        // SAFETY: the real function has just read what it returned from beside it.
        -i64::from(unsafe { block.byte_add(ERROR_AT).cast::<c_int>().read() })
    } else {
        made.result
    };
    arrived(&request, result);
}

use Asked::{Read, Write};

hook! {
    fn aio_read: (block: *mut aiocb) -> c_int, first _kept = requests::giving(block, Call::aio_read, Read),
        |made| given(made, block);
    fn aio_read64: (block: *mut aiocb) -> c_int, first _kept = requests::giving(block, Call::aio_read64, Read),
        |made| given(made, block);
    fn aio_write: (block: *mut aiocb) -> c_int, first _kept = requests::giving(block, Call::aio_write, Write),
        |made| given(made, block);
    fn aio_write64: (block: *mut aiocb) -> c_int, first _kept = requests::giving(block, Call::aio_write64, Write),
        |made| given(made, block);
    fn aio_fsync: (operation: c_int, block: *mut aiocb) -> c_int,
        first _kept = requests::giving(block, Call::aio_fsync, sync_of(operation)), |made| given(made, block);
    fn aio_fsync64: (operation: c_int, block: *mut aiocb) -> c_int,
        first _kept = requests::giving(block, Call::aio_fsync64, sync_of(operation)), |made| given(made, block);
    fn aio_return | aio_return64: (block: *mut aiocb) -> ssize_t, |made| collected(made, block);
    fn lio_listio | lio_listio64: (mode: c_int, list: *const *mut aiocb, count: c_int, event: *mut c_void) -> c_int,
        first _kept = listing(mode, list, count), |made| only_counted(made);
}

// Of libaio, which may reach the kernel by `syscall`, where these would be seen a second time.
hook! {
    fn io_submit: (context: *mut c_void, count: c_long, all: *mut *mut c_void) -> c_int,
        first _kept = {
            requests::submitting((all, count));
            thread::within(Some(Call::io_submit));
        },
        |made| {
            thread::within(None);
            submitted(made, (all, count));
        };
    fn io_getevents: (
        context: *mut c_void, least: c_long, most: c_long, into: *mut Event, timeout: *mut timespec,
    ) -> c_int, first _kept = thread::within(Some(Call::io_getevents)),
        |made| {
            thread::within(None);
            events(made, into);
        };
    fn io_pgetevents: (
        context: *mut c_void, least: c_long, most: c_long, into: *mut Event, timeout: *mut timespec,
        signals: *mut c_void,
    ) -> c_int, first _kept = thread::within(Some(Call::io_pgetevents)),
        |made| {
            thread::within(None);
            events(made, into);
        };
}
