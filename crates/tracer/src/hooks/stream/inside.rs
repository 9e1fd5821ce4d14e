//! What streams do with their descriptors, whoever made them do it: `printf`, the last flush of a process, a
//! character that a compiler put into the buffer itself, or the C library for its own ends.
//!
//! The C library reaches the kernel from its streams by tables of functions only. These have no name that a program
//! calls, so ours are put into the tables: once, as a program begins, before it has threads. What is in the tables is
//! checked by what the C library itself exports, and where it is anything else, nothing is changed and that is noted.

use core::ffi::{c_int, c_void};
use core::ops::Range;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;

use leadline_record::trace::Call;
use leadline_record::trace::layout::PAGE_BYTES;
use libc::{FILE, off64_t, ssize_t};

use super::descriptor;
use crate::hooks::position::sought;
use crate::hooks::stat::status;
use crate::recording::{Direction, Made, Transfer, before_close, closed, transfer};
use crate::{clock, descriptors, process, symbols, sys, thread};

type Move = unsafe extern "C" fn(*mut FILE, *mut c_void, ssize_t) -> ssize_t;
type Seek = unsafe extern "C" fn(*mut FILE, off64_t, c_int) -> off64_t;
type Stat = unsafe extern "C" fn(*mut FILE, *mut c_void) -> c_int;
type Close = unsafe extern "C" fn(*mut FILE) -> c_int;

/// The function of a stream that a program gets when it does not ask for another kind.
struct Inside {
    name: &'static str,
    real: AtomicPtr<c_void>,
}

impl Inside {
    const fn new(name: &'static str) -> Self {
        let real = AtomicPtr::new(core::ptr::null_mut());
        Self { name, real }
    }

    fn real(&self) -> *mut c_void {
        self.real.load(Relaxed)
    }
}

static READ: Inside = Inside::new("_IO_file_read\0");
static WRITE: Inside = Inside::new("_IO_file_write\0");
static SEEK: Inside = Inside::new("_IO_file_seek\0");
static STAT: Inside = Inside::new("_IO_file_stat\0");
static CLOSE: Inside = Inside::new("_IO_file_close\0");

const INSIDES: usize = 5;

/// What the thread has spent in them until now.
pub fn ticks() -> u64 {
    thread::enter_idle().map_or(0, |thread| thread.inside_ticks)
}

fn spent(made: Made) {
    if let Some(mut thread) = thread::enter_idle() {
        thread.inside_ticks += made.clock.now().wrapping_sub(made.start);
    }
}

/// Puts ours into the tables; false where these are not as they are known.
pub fn take_place() -> bool {
    let ours: [(&Inside, *mut c_void); INSIDES] = [
        (&READ, read as Move as *mut c_void),
        (&WRITE, write as Move as *mut c_void),
        (&SEEK, seek as Seek as *mut c_void),
        (&CLOSE, close as Close as *mut c_void),
        (&STAT, look as Stat as *mut c_void),
    ];
    for (inside, _) in &ours {
        inside.real.store(symbols::next(inside.name), Relaxed);
    }
    let table = symbols::next("_IO_file_jumps\0");
    if table.is_null() || ours.iter().any(|(inside, _)| inside.real().is_null()) {
        return false;
    }
    let mut part = Constants {
        holds: table.addr(),
        found: 0..0,
    };
    // SAFETY: the function has the type that is asked for, and `part` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(constants_of), (&raw mut part).cast()) };
    let words = part.found;
    // The loader protects whole pages: what is on the last, partial one may be written anyway.
    let pages = words.start / PAGE_BYTES * PAGE_BYTES..words.end / PAGE_BYTES * PAGE_BYTES;
    if pages.is_empty() || !sys::protect(pages.clone(), libc::PROT_READ | libc::PROT_WRITE) {
        return false;
    }
    let mut replaced = [false; INSIDES];
    for at in words.step_by(size_of::<usize>()) {
        let word: *mut *mut c_void = core::ptr::with_exposed_provenance_mut(at);
        for ((inside, own), replaced) in ours.iter().zip(&mut replaced) {
            // SAFETY: within a readable and now writable part of the C library, aligned, and no other thread is there.
            unsafe {
                if word.read() == inside.real() {
                    word.write(*own);
                    *replaced = true;
                }
            }
        }
    }
    sys::protect(pages, libc::PROT_READ);
    replaced == [true; INSIDES]
}

/// The part of a library that the loader makes constant after it has filled it in, and an address in it.
struct Constants {
    holds: usize,
    found: Range<usize>,
}

unsafe extern "C" fn constants_of(
    library: *mut libc::dl_phdr_info,
    _: usize,
    into: *mut c_void,
) -> c_int {
    // SAFETY: as given by the loader, and by `take_place`.
    let (library, into) = unsafe { (&*library, &mut *into.cast::<Constants>()) };
    for place in 0..usize::from(library.dlpi_phnum) {
        // SAFETY: there are as many as that.
        let part = unsafe { &*library.dlpi_phdr.wrapping_add(place) };
        let start = (library.dlpi_addr as usize).wrapping_add(part.p_vaddr as usize);
        let range = start..start.wrapping_add(part.p_memsz as usize);
        if part.p_type == libc::PT_GNU_RELRO && range.contains(&into.holds) {
            into.found = range.start.next_multiple_of(size_of::<usize>())
                ..range.end / size_of::<usize>() * size_of::<usize>();
            return 1;
        }
    }
    0
}

/// Ours in the table begin so.
macro_rules! real {
    ($inside:ident as $type:ty) => {
        core::mem::transmute::<*mut c_void, $type>($inside.real())
    };
}

unsafe fn moved(
    made: Made,
    stream: *mut FILE,
    direction: Direction,
    memory: usize,
    asked: ssize_t,
) {
    // SAFETY: the stream is open.
    let fd = unsafe { descriptor(stream) };
    transfer(
        made,
        fd,
        Transfer {
            direction,
            offset: None,
            asked: asked.max(0) as u64,
            memory,
        },
    );
    spent(made);
    process::goes_on();
}

unsafe extern "C" fn read(stream: *mut FILE, into: *mut c_void, bytes: ssize_t) -> ssize_t {
    // SAFETY: the real function of this place has this type; the arguments are the C library's own.
    unsafe {
        let start = clock::ticks();
        let result = real!(READ as Move)(stream, into, bytes);
        let made = Made::new(Call::read, start, result as i64);
        moved(made, stream, Direction::Read, into.addr(), bytes);
        result
    }
}

/// The real one goes on until all is written, and returns less when it cannot.
unsafe extern "C" fn write(stream: *mut FILE, from: *mut c_void, bytes: ssize_t) -> ssize_t {
    // SAFETY: as in `read`.
    unsafe {
        let start = clock::ticks();
        let result = real!(WRITE as Move)(stream, from, bytes);
        let told = if result == 0 && bytes > 0 {
            -1
        } else {
            result as i64
        };
        let made = Made::new(Call::write, start, told);
        moved(made, stream, Direction::Write, from.addr(), bytes);
        result
    }
}

/// A stream that begins to append looks for the end before its descriptor is known: its opening counts that.
unsafe extern "C" fn seek(stream: *mut FILE, offset: off64_t, whence: c_int) -> off64_t {
    // SAFETY: as in `read`.
    unsafe {
        let start = clock::ticks();
        let result = real!(SEEK as Seek)(stream, offset, whence);
        let fd = descriptor(stream);
        let known = process::existing().and_then(|process| descriptors::file_of(process, fd));
        if known.is_some() {
            let made = Made::new(Call::lseek, start, result);
            sought(made, fd);
            spent(made);
        }
        result
    }
}

unsafe extern "C" fn close(stream: *mut FILE) -> c_int {
    // SAFETY: as in `read`.
    unsafe {
        let record = before_close(descriptor(stream));
        let start = clock::ticks();
        let result = real!(CLOSE as Close)(stream);
        closed(Made::new(Call::close, start, i64::from(result)), record);
        result
    }
}

/// How large its buffer is to be.
unsafe extern "C" fn look(stream: *mut FILE, into: *mut c_void) -> c_int {
    // SAFETY: as in `read`.
    unsafe {
        let start = clock::ticks();
        let result = real!(STAT as Stat)(stream, into);
        let made = Made::new(Call::fstat, start, i64::from(result));
        status(made, descriptor(stream), into);
        spent(made);
        result
    }
}
