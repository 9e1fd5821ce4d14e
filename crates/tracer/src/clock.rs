//! The clock of all records: the CPU's counter where the launcher found it steady, else the kernel's.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

const PAIRS: u32 = 3;

static TICKS_PER_SECOND: AtomicU64 = AtomicU64::new(0);
/// What the clock shows since it may not be read any more; 0 while it may.
static STOPPED_AT: AtomicU64 = AtomicU64::new(0);

/// Uses the counter, which runs at this rate; 0 for the kernel's clock.
pub fn set(ticks_per_second: u64) {
    TICKS_PER_SECOND.store(ticks_per_second, Relaxed);
}

/// The program gives up its right to read the counter, which the kernel's clock needs, too: time stands still.
pub fn stop() -> Stopped {
    let rate = rate();
    STOPPED_AT.store(ticks(), Relaxed);
    set(0);
    crate::symbols::time_by_counter(false);
    Stopped { rate }
}

pub struct Stopped {
    rate: u64,
}

impl Stopped {
    /// It was not taken after all.
    pub fn go_on(self) {
        set(self.rate);
        crate::symbols::time_by_counter(self.rate != 0);
        STOPPED_AT.store(0, Relaxed);
    }
}

/// Of the counter; 0 for the kernel's clock.
pub fn rate() -> u64 {
    TICKS_PER_SECOND.load(Relaxed)
}

/// Now.
#[inline(always)]
pub fn ticks() -> u64 {
    if !is_counter() {
        return kernel_ns();
    }
    counter()
}

/// Now, by this clock and by the time of day in ns: the closest of a few pairs. A thread that loses the CPU between
/// the two reads would shift the times of all its calls.
pub fn pair() -> (u64, u64) {
    (0..PAIRS)
        .map(|_| {
            let before = ticks();
            let unix_ns = crate::sys::clock_ns(libc::CLOCK_REALTIME);
            let apart = ticks().wrapping_sub(before);
            (apart, before + apart / 2, unix_ns)
        })
        .min()
        .map_or((0, 0), |(_, ticks, unix_ns)| (ticks, unix_ns))
}

/// Is it the CPU's counter? So it stays, once it is.
#[inline(always)]
pub fn is_counter() -> bool {
    TICKS_PER_SECOND.load(Relaxed) != 0
}

/// How a call's clock is read: looking once whether it is the counter spares the second look.
#[derive(Clone, Copy)]
pub enum Clock {
    Counter,
    Either,
}

impl Clock {
    /// Now.
    #[inline(always)]
    pub fn now(self) -> u64 {
        match self {
            Self::Counter => counter(),
            Self::Either => ticks(),
        }
    }
}

#[inline(always)]
fn counter() -> u64 {
    crate::machine::counter()
}

#[cold]
fn kernel_ns() -> u64 {
    // A call from the constructor of another library, before ours: one call must not be timed by two clocks.
    crate::process::start();
    let stopped_at = STOPPED_AT.load(Relaxed);
    if is_counter() {
        return counter();
    }
    if stopped_at != 0 {
        return stopped_at;
    }
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid; the vDSO's clock is cheaper than a system call, and never fails for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
