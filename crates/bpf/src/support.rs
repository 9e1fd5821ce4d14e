//! Whether this kernel and these privileges suffice, before anything is loaded.

use std::path::Path;
use std::{fmt, fs};

/// Where the kernel describes its own types.
pub const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";
/// The kernel's fixed number for the first process namespace.
const FIRST_PROCESS_NAMESPACE: &str = "pid:[4026531836]";
const CAPABILITY_SYS_ADMIN: u32 = 21;
const CAPABILITY_PERFMON: u32 = 38;
const CAPABILITY_BPF: u32 = 39;
/// The first kernel with all that the program uses: atomic operations that return a value.
const OLDEST_KERNEL: (u32, u32) = (5, 12);

/// Why tracing in the kernel is impossible here, or None.
pub fn unavailable(kernel_types: &Path) -> Option<BpfError> {
    built()
        .or_else(new_enough)
        .or_else(privileged)
        .or_else(|| described(kernel_types))
        .or_else(own_numbers)
}

fn built() -> Option<BpfError> {
    let missing = env!("LEADLINE_BPF_MISSING");
    (!missing.is_empty()).then(|| {
        BpfError::new(
            format!("this leadline was built without BPF: {missing}"),
            "build it again with clang installed, or trace with --via preload",
        )
    })
}

fn new_enough() -> Option<BpfError> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|part| part.trim().parse::<u32>().ok());
    let version = (numbers.next()?, numbers.next()?);
    (version < OLDEST_KERNEL).then(|| {
        BpfError::new(
            format!(
                "Linux {} is too old for tracing in the kernel, which needs 5.12",
                release.trim()
            ),
            "trace with --via preload",
        )
    })
}

fn privileged() -> Option<BpfError> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    let held = u64::from_str_radix(line.trim(), 16).ok()?;
    let has = |capability: u32| held & (1 << capability) != 0;
    if has(CAPABILITY_SYS_ADMIN) || (has(CAPABILITY_BPF) && has(CAPABILITY_PERFMON)) {
        return None;
    }
    Some(BpfError::new(
        "tracing in the kernel needs root, or the capabilities CAP_BPF and CAP_PERFMON",
        "run leadline as root, or trace with --via preload, which needs no privileges",
    ))
}

fn described(kernel_types: &Path) -> Option<BpfError> {
    let error = fs::File::open(kernel_types).err()?;
    Some(BpfError::new(
        format!(
            "the kernel does not describe its types: {}: {error}",
            kernel_types.display()
        ),
        "use a kernel built with CONFIG_DEBUG_INFO_BTF, or trace with --via preload",
    ))
}

/// The program sees the numbers that processes have on the host, not those inside a container.
fn own_numbers() -> Option<BpfError> {
    let space = fs::read_link("/proc/self/ns/pid").ok()?;
    (space != Path::new(FIRST_PROCESS_NAMESPACE)).then(|| {
        BpfError::new(
            "leadline runs in a process namespace of its own (a container), whose numbers the kernel's events do not use",
            "run leadline on the host, or trace with --via preload",
        )
    })
}

/// What happened, and what to do about it.
#[derive(Debug)]
pub struct BpfError {
    pub message: String,
    pub remedy: &'static str,
}

impl BpfError {
    pub fn new(message: impl Into<String>, remedy: &'static str) -> Self {
        Self {
            message: message.into(),
            remedy,
        }
    }

    /// A call of the loader or of the system that failed, with the cause behind it.
    pub fn failed(what: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut words = format!("{what}: {error}");
        // The kernel's verifier gives its reasons in thousands of lines, of use to developers only.
        if let Some(place) = words.find(" Verifier output") {
            words.truncate(place);
        }
        Self::new(
            words,
            "trace with --via preload, which needs neither privileges nor BPF",
        )
    }
}

impl fmt::Display for BpfError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.message, self.remedy)
    }
}

impl std::error::Error for BpfError {}
