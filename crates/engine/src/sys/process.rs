//! The process and its threads: CPU time, thread numbers, dying with the parent, polling a pipe.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::sys::file::check;

/// CPU time, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    pub user_ns: u64,
    pub system_ns: u64,
}

impl CpuTime {
    /// What was used since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
        }
    }
}

/// CPU time of the calling thread; the sum is exact, the kernel estimates the split by ticks.
pub fn thread_cpu() -> CpuTime {
    let split = usage(libc::RUSAGE_THREAD);
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid timespec for the call's duration.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    if result != 0 {
        return split;
    }
    let exact_ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    let user_ns = split.user_ns.min(exact_ns);
    CpuTime {
        user_ns,
        system_ns: exact_ns - user_ns,
    }
}

/// CPU time of all threads of the process, the kernel's workers for it included.
pub fn process_cpu() -> CpuTime {
    usage(libc::RUSAGE_SELF)
}

fn usage(who: libc::c_int) -> CpuTime {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is writable for the call's duration.
    if unsafe { libc::getrusage(who, usage.as_mut_ptr()) } != 0 {
        return CpuTime::default();
    }
    // SAFETY: the kernel filled it; zeroed bytes would be valid too.
    let usage = unsafe { usage.assume_init() };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    CpuTime {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
    }
}

/// The most memory that the process has had at once, from a moment on.
#[derive(Debug, Clone, Copy)]
pub struct PeakMemory {
    before_bytes: u64,
}

impl PeakMemory {
    /// The peak counts anew from here (proc(5), clear_refs), or where that is refused goes on.
    pub fn from_here() -> Self {
        let is_new = std::fs::write("/proc/self/clear_refs", "5").is_ok();
        let key = if is_new { "VmRSS:" } else { "VmHWM:" };
        Self {
            before_bytes: status_bytes(key).unwrap_or(0),
        }
    }

    /// Bytes that the process has had at most, less those that it had at the beginning.
    pub fn grown_bytes(self) -> Option<u64> {
        status_bytes("VmHWM:").map(|bytes| bytes.saturating_sub(self.before_bytes))
    }
}

fn status_bytes(key: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// The number by which the kernel knows the calling thread (as in /proc/PID/task).
pub fn thread_id() -> i32 {
    // By number: the C library has the function from glibc 2.30 on only.
    // SAFETY: the call takes nothing and touches no memory.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Gives the calling thread a table of open files of its own: with a shared one, every call counts its file in
/// and out by atomics. A refusal (some containers) costs only that. Not for threads that use a library, which may hand
/// what one of them opened to another.
pub fn own_file_table() {
    // SAFETY: affects only the calling thread's table; files that it opened before stay open in both.
    let _ = check(unsafe { libc::unshare(libc::CLONE_FILES) });
}

/// The version of the GNU C library that this process runs with; `None` with another.
pub fn libc_version() -> Option<String> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: the call takes nothing; its text is the library's own and lasts as long.
        let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
        Some(version.to_string_lossy().into_owned())
    }
    #[cfg(not(target_env = "gnu"))]
    None
}

/// Has the kernel kill this process when its parent dies, so that no load outlives the program.
///
/// An error when `parent` is already gone.
pub fn die_with_parent(parent: i32) -> io::Result<()> {
    // SAFETY: this option of prctl takes an integer and touches no memory of ours.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) })?;
    // SAFETY: the call takes nothing and touches no memory.
    if unsafe { libc::getppid() } == parent {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::ESRCH))
    }
}

/// Writes one line to standard output, or drops it when the reader is slow or gone: progress is
/// never worth a stalled trial.
pub fn offer_line(line: &str) {
    let mut ready = libc::pollfd {
        fd: libc::STDOUT_FILENO,
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: one pollfd, valid for the call's duration.
    let count = unsafe { libc::poll(&mut ready, 1, 0) };
    if count == 1 && ready.revents & libc::POLLOUT != 0 {
        let bytes = format!("{line}\n");
        // SAFETY: pointer and length are those of `bytes`. A pipe that polls writable takes PIPE_BUF
        // bytes whole, and a progress line is shorter.
        let _ = unsafe { libc::write(libc::STDOUT_FILENO, bytes.as_ptr().cast(), bytes.len()) };
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_grows_with_work() {
        let before = thread_cpu();
        let mut value = 1_u64;
        for step in 0..20_000_000_u64 {
            value = std::hint::black_box(value.wrapping_mul(step | 1));
        }
        let used = thread_cpu().since(before);
        assert!(
            used.user_ns + used.system_ns > 1_000_000,
            "{used:?} {value}"
        );
    }

    #[test]
    fn a_parent_that_is_not_ours_is_refused() {
        let result = std::thread::spawn(|| die_with_parent(-1)).join().unwrap();
        assert_eq!(result.unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }
}
