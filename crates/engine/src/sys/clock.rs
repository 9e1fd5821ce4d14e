//! The clock of the hot loop: the CPU's time stamp counter where the kernel trusts it, else CLOCK_MONOTONIC.
//! One reading costs half of clock_gettime, which matters where an operation takes 250 ns.

use std::time::Duration;

use crate::sys::file::check;

/// Nanoseconds since an arbitrary origin, the same for all copies of one clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    source: Source,
}

#[derive(Debug, Clone, Copy)]
enum Source {
    /// `CLOCK_MONOTONIC - origin_ns`
    Monotonic { origin_ns: u64 },
    /// `base_ns + ((ticks - base_ticks) * scale >> 32)`
    Counter {
        base_ticks: u64,
        base_ns: u64,
        scale: u64,
    },
}

impl Clock {
    /// Calibrates for about 10 ms (relative error below 1e-5) where the counter can be used.
    pub fn new() -> Self {
        if counter_is_trusted() {
            calibrate(Duration::from_millis(10))
        } else {
            Self::monotonic()
        }
    }

    /// The clock of the kernel.
    pub fn monotonic() -> Self {
        Self {
            source: Source::Monotonic { origin_ns: 0 },
        }
    }

    /// The same clock, counting from a moment of this one: what the hot loop reads without a subtraction.
    /// Nothing before that moment is told apart from it.
    pub fn from_origin(self, moment_ns: u64) -> Self {
        let source = match self.source {
            Source::Monotonic { origin_ns } => Source::Monotonic {
                origin_ns: origin_ns + moment_ns,
            },
            Source::Counter {
                base_ticks,
                base_ns,
                scale,
            } => {
                let since_base = u128::from(moment_ns.saturating_sub(base_ns)) << 32;
                Source::Counter {
                    base_ticks: base_ticks + (since_base / u128::from(scale)) as u64,
                    base_ns: 0,
                    scale,
                }
            }
        };
        Self { source }
    }

    /// `tsc` or `monotonic`, as records name it.
    pub fn name(&self) -> &'static str {
        match self.source {
            Source::Monotonic { .. } => "monotonic",
            Source::Counter { .. } => "tsc",
        }
    }

    /// Ticks per second of the time stamp counter, 0 where CLOCK_MONOTONIC is read: for programs that read it
    /// themselves.
    pub fn ticks_per_second(&self) -> u64 {
        match self.source {
            Source::Monotonic { .. } => 0,
            Source::Counter { scale, .. } => {
                let ticks = (1_000_000_000_u128 << 32) / u128::from(scale);
                u64::try_from(ticks).unwrap_or(0)
            }
        }
    }

    /// Now, in nanoseconds.
    #[inline(always)]
    pub fn now_ns(&self) -> u64 {
        match self.source {
            Source::Monotonic { origin_ns } => monotonic_ns().saturating_sub(origin_ns),
            Source::Counter {
                base_ticks,
                base_ns,
                scale,
            } => {
                let elapsed = ticks().saturating_sub(base_ticks);
                base_ns + ((u128::from(elapsed) * u128::from(scale)) >> 32) as u64
            }
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

fn calibrate(span: Duration) -> Clock {
    let (first_ticks, first_ns) = paired_reading();
    std::thread::sleep(span);
    let (last_ticks, last_ns) = paired_reading();
    let ticks = u128::from(last_ticks.saturating_sub(first_ticks));
    let scale = (u128::from(last_ns - first_ns) << 32)
        .checked_div(ticks)
        .unwrap_or(0);
    match u64::try_from(scale) {
        Ok(scale) if scale > 0 => Clock {
            source: Source::Counter {
                base_ticks: last_ticks,
                base_ns: last_ns,
                scale,
            },
        },
        _ => Clock::monotonic(),
    }
}

/// Counter and kernel clock at one moment: the closest of several tries, so that no interrupt lies between.
fn paired_reading() -> (u64, u64) {
    (0..16)
        .map(|_| {
            let before = ticks();
            let ns = monotonic_ns();
            let after = ticks();
            (after - before, before + (after - before) / 2, ns)
        })
        .min()
        .map_or((0, 0), |(_, ticks, ns)| (ticks, ns))
}

/// The kernel itself uses the counter only after it found it constant and equal on all CPUs.
fn counter_is_trusted() -> bool {
    cfg!(target_arch = "x86_64")
        && std::fs::read_to_string(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        )
        .is_ok_and(|source| source.trim() == "tsc")
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn ticks() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 CPU, reads a register and touches no memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    0
}

/// CLOCK_MONOTONIC in nanoseconds.
pub fn monotonic_ns() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// Time since 1970 in nanoseconds.
pub fn unix_ns() -> u64 {
    read_clock(libc::CLOCK_REALTIME)
}

fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid timespec for the call's duration.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    debug_assert_eq!(result, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Wakes the calling thread's sleeps on time (the default slack is 50 us); ends with the thread.
pub fn set_timer_slack_minimal() {
    // SAFETY: this option of prctl takes an integer and touches no memory of ours.
    let _ = check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_agrees_with_the_kernel_clock() {
        let clock = Clock::new();
        let (start, start_kernel) = (clock.now_ns(), monotonic_ns());
        std::thread::sleep(Duration::from_millis(50));
        let (end, end_kernel) = (clock.now_ns(), monotonic_ns());
        let difference = (end - start).abs_diff(end_kernel - start_kernel);
        assert!(difference < 100_000, "{difference} ns apart over 50 ms");
    }

    #[test]
    fn a_clock_from_an_origin_counts_what_the_clock_does() {
        for clock in [Clock::new(), Clock::monotonic()] {
            let origin = clock.now_ns();
            let from_origin = clock.from_origin(origin);
            let before = clock.now_ns() - origin;
            let between = from_origin.now_ns();
            let after = clock.now_ns() - origin;
            // Rounding to ticks and back costs a nanosecond.
            assert!(
                (before..=after + 1).contains(&(between + 1)),
                "{before} {between} {after}"
            );
        }
    }

    #[test]
    fn the_clock_never_goes_backwards() {
        let clock = Clock::new();
        let mut last = 0;
        for _ in 0..10_000 {
            let now = clock.now_ns();
            assert!(now >= last);
            last = now;
        }
    }
}
