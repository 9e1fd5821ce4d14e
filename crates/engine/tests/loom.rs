//! Every order in which threads can meet in the two queues, by loom: their sources are built here once more, with
//! loom's types for what threads wait on. An end that nobody is woken for is a deadlock, which loom finds; so is a
//! ticket that goes while a library's thread looks into it.

mod sync {
    pub use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub use std::sync::PoisonError;
}

mod sys {
    pub mod buffer {
        pub const ALIGNMENT_BYTES: usize = 64;

        /// Memory as the engine's, which loom does not look at: Miri does.
        pub struct AlignedBuffer(Box<[u8]>);

        impl AlignedBuffer {
            #[allow(clippy::unnecessary_wraps, reason = "the engine's can fail")]
            pub fn new(length: usize) -> std::io::Result<Self> {
                Ok(Self(vec![0; length].into()))
            }

            pub fn part_mut(&mut self, part: std::ops::Range<usize>) -> &mut [u8] {
                &mut self.0[part]
            }

            pub fn as_ptr(&self) -> *mut u8 {
                self.0.as_ptr().cast_mut()
            }
        }
    }
}

#[allow(
    dead_code,
    reason = "libraries without tickets of their own need more of it"
)]
#[path = "../src/sys/in_flight.rs"]
mod in_flight;

#[path = "../src/io/exchange.rs"]
mod exchange;

use std::ffi::c_void;
use std::time::Duration;

use exchange::Exchange;
use in_flight::{InFlight, end};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// Longer than any model.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Every order with at most so many interruptions of a thread that could go on; with any number it takes minutes.
const INTERRUPTED_MAX: usize = 2;

fn every_order(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(INTERRUPTED_MAX);
    builder.check(model);
}

/// The library's own in a ticket: loom sees it read, and go.
#[derive(Default)]
struct Own(UnsafeCell<i64>);

impl Own {
    fn read(&self) -> i64 {
        // SAFETY: nobody writes to it but its end.
        self.0.with(|value| unsafe { *value })
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // SAFETY: it goes, so it is nobody else's; loom sees whether that is so.
        self.0.with_mut(|value| unsafe { *value = -1 });
    }
}

/// Starts a piece, and ends it in a thread of its own.
fn begin(queue: &mut InFlight<(), Own>, slot: u32) -> thread::JoinHandle<()> {
    let piece = queue.piece((slot, 0), (0, 8));
    let (number, ticket) = (piece.number, piece.ticket as usize);
    queue.started(number);
    // SAFETY: the ticket is of this queue, and told once.
    thread::spawn(move || unsafe { end::<Own>(ticket as *mut c_void, Own::read) })
}

#[test]
fn every_end_is_fetched_and_the_queue_may_go_at_once() {
    every_order(|| {
        let mut queue = InFlight::new("a library", (), (2, 8), 1).unwrap();
        let library = [begin(&mut queue, 0), begin(&mut queue, 1)];
        let mut ended = 0;
        while ended < 2 {
            queue.fetch(PATIENCE);
            while let Some((number, result)) = queue.next_end() {
                assert_eq!(result, 0);
                queue.buffer(number).fill(1);
                ended += 1;
            }
        }
        drop(queue);
        for thread in library {
            thread.join().unwrap();
        }
    });
}

#[test]
fn every_task_is_taken_once_and_its_end_collected() {
    every_order(|| {
        let exchange = Arc::new(Exchange::default());
        let work = || {
            let own = Arc::clone(&exchange);
            thread::spawn(move || {
                while let Some(task) = own.take() {
                    own.give(task * 10);
                }
            })
        };
        let callers = [work(), work()];
        exchange.post([1, 2].into_iter());
        let mut ends = Vec::new();
        while ends.len() < 2 {
            exchange.collect(1, PATIENCE, |end| ends.push(end));
        }
        ends.sort_unstable();
        assert_eq!(ends, [10, 20]);
        exchange.close();
        for caller in callers {
            caller.join().unwrap();
        }
    });
}

#[test]
fn a_close_lets_everybody_go_and_drops_what_nobody_took() {
    every_order(|| {
        let task = Arc::new(());
        let exchange: Arc<Exchange<Arc<()>, Arc<()>>> = Arc::new(Exchange::default());
        let own = Arc::clone(&exchange);
        let caller = thread::spawn(move || {
            while let Some(task) = own.take() {
                own.give(task);
            }
        });
        exchange.post([Arc::clone(&task), Arc::clone(&task)].into_iter());
        exchange.close();
        caller.join().unwrap();
        assert!(exchange.take().is_none());
        drop(exchange);
        assert_eq!(Arc::strong_count(&task), 1);
    });
}

#[test]
fn who_waits_until_all_have_left_finds_nothing_held_any_more() {
    every_order(|| {
        let held = Arc::new(());
        let exchange: Arc<Exchange<(), ()>> = Arc::new(Exchange::default());
        let start = |own: Arc<Exchange<(), ()>>, held: Arc<()>| {
            thread::spawn(move || {
                while own.take().is_some() {
                    own.give(());
                }
                drop(held);
                own.leave();
            })
        };
        let callers = [0, 1].map(|_| start(Arc::clone(&exchange), Arc::clone(&held)));
        exchange.close();
        assert!(exchange.wait_left(callers.len(), PATIENCE));
        assert_eq!(Arc::strong_count(&held), 1);
        for caller in callers {
            caller.join().unwrap();
        }
    });
}
