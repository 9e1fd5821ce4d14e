//! SIGINT and SIGTERM while the engine works: noted in a flag, so that nothing of Python runs in a trial.

use std::sync::atomic::{AtomicI32, Ordering};

/// The last signal noted. A handler can reach nothing but a static.
static NOTED: AtomicI32 = AtomicI32::new(0);
const SIGNALS: [libc::c_int; 2] = [libc::SIGINT, libc::SIGTERM];

extern "C" fn note(signal: libc::c_int) {
    NOTED.store(signal, Ordering::Relaxed);
}

/// While it lives, SIGINT and SIGTERM are noted instead of obeyed; then the former handlers are back.
pub struct SignalWatch {
    former: [libc::sigaction; 2],
}

impl SignalWatch {
    /// Takes over both signals. Signals that the process ignores stay ignored.
    pub fn start() -> Self {
        NOTED.store(0, Ordering::Relaxed);
        Self {
            former: SIGNALS.map(take_over),
        }
    }

    /// The signal that came since the start, if any.
    pub fn noted(&self) -> Option<i32> {
        match NOTED.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(signal),
        }
    }
}

impl Drop for SignalWatch {
    fn drop(&mut self) {
        for (signal, former) in SIGNALS.iter().zip(&self.former) {
            // SAFETY: `former` is what the kernel gave us for this very signal.
            unsafe { libc::sigaction(*signal, former, std::ptr::null_mut()) };
        }
    }
}

fn take_over(signal: libc::c_int) -> libc::sigaction {
    // SAFETY: all-zero bytes are a valid sigaction (default action, empty mask).
    let mut former: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: only reads the current action into `former`.
    unsafe { libc::sigaction(signal, std::ptr::null(), &mut former) };
    if former.sa_sigaction == libc::SIG_IGN {
        return former;
    }
    // SAFETY: as above.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: `note` only stores to an atomic, which is allowed in a handler.
    unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    former
}

/// Sends a signal to this process, so that its own handlers see what we took from them.
pub fn pass_on(signal: i32) {
    // SAFETY: the call takes an integer and touches no memory.
    unsafe { libc::raise(signal) };
}
