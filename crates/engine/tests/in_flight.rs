//! What a library has in flight, with threads in the library's place. `make sanitize` has Miri run these: it sees
//! memory that two claim at once, and whatever is used after it is gone.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use leadline_engine::sys::in_flight::{InFlight, end};

type Queue = InFlight<Arc<()>>;

const PATIENCE: Duration = Duration::from_secs(60);

fn queue(held: &Arc<()>) -> Queue {
    InFlight::new("a library", Arc::clone(held), (2, 100), 2).unwrap()
}

/// A piece as it is handed to another thread.
struct Taken {
    memory: *mut u8,
    ticket: *mut c_void,
}

// SAFETY: the queue gives what is in flight to nobody else.
unsafe impl Send for Taken {}

impl Taken {
    /// Does what a library does with a read: fills the memory, and tells.
    fn read(self, byte: u8) {
        // SAFETY: the memory is the piece's own, and the ticket is told once.
        unsafe {
            self.memory.write_bytes(byte, 50);
            end::<()>(self.ticket, |()| 50);
        }
    }
}

/// Starts a piece of the second half of its slot.
fn begin(queue: &mut Queue, place: (u32, u32)) -> Taken {
    let piece = queue.piece(place, (50, 50));
    let (number, taken) = (
        piece.number,
        Taken {
            memory: piece.memory,
            ticket: piece.ticket,
        },
    );
    queue.started(number);
    taken
}

#[test]
fn an_end_told_by_another_thread_is_fetched_with_its_place() {
    let mut queue = queue(&Arc::new(()));
    let taken = begin(&mut queue, (1, 1));
    let library = std::thread::spawn(move || taken.read(7));
    queue.fetch(PATIENCE);
    let (number, result) = queue.next_end().unwrap();
    assert_eq!((queue.place(number), result), ((1, 1), 50));
    assert!(queue.is_idle() && queue.next_end().is_none());
    // What the library's thread still rings on outlives the queue.
    drop(queue);
    library.join().unwrap();
}

#[test]
fn a_slot_is_used_while_the_library_writes_to_another() {
    let mut queue = queue(&Arc::new(()));
    let taken = begin(&mut queue, (0, 1));
    let library = std::thread::spawn(move || taken.read(7));
    queue.buffer(1).fill(9);
    queue.fetch(PATIENCE);
    assert_eq!(queue.next_end(), Some((1, 50)));
    let expected = [&[0][..], &[7; 50], &[0]].concat();
    assert_eq!(queue.buffer(0)[49..101], expected);
    assert!(queue.buffer(1).iter().all(|byte| *byte == 9));
    drop(queue);
    library.join().unwrap();
}

#[test]
fn what_is_in_flight_at_the_end_is_kept_for_the_library() {
    let held = Arc::new(());
    let mut lost = queue(&held);
    let taken = begin(&mut lost, (0, 0));
    // A queue is moved, too, while the library writes.
    let library = std::thread::spawn(move || taken.read(7));
    drop(Box::new(lost));
    assert_eq!(Arc::strong_count(&held), 2);
    library.join().unwrap();
    drop(queue(&held));
    assert_eq!(Arc::strong_count(&held), 2);
}

#[test]
#[should_panic(expected = "a library still uses the buffer of slot 0")]
fn the_buffer_of_a_piece_in_flight_is_nobodys() {
    let mut queue = queue(&Arc::new(()));
    begin(&mut queue, (0, 1));
    let _ = queue.buffer(0);
}
