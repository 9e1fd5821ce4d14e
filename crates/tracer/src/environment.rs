//! What the launcher said in the environment, and text without allocation.

use core::ffi::{CStr, c_char};

use crate::extent;

/// Names of our variables, with the sign between name and value.
pub const VARIABLES: [&[u8]; 6] = [
    b"LEADLINE_TRACE_DIR=",
    b"LEADLINE_TRACE_MEMORY=",
    b"LEADLINE_TRACE_SEGMENTS=",
    b"LEADLINE_TRACE_TICKS=",
    b"LEADLINE_TRACE_BELOW=",
    b"LEADLINE_TRACE_DELAY=",
];
pub const PRELOAD: &[u8] = b"LD_PRELOAD=";
/// Places in `VARIABLES`: directories whose files are followed by class, between colons; and which class waits, with a
/// colon and ns.
pub const BELOW: usize = 4;
pub const DELAY: usize = 5;
const VALUES: usize = VARIABLES.len() + 1;
const MEMORY_BYTES_MIN: usize = 1 << 20;
const MEMORY_BYTES_MAX: usize = 1 << 40;
const VALUE_ROOM: usize = 4096;

static mut KEPT: Kept = Kept {
    read: false,
    lengths: [0; VALUES],
    values: [[0; VALUE_ROOM]; VALUES],
};

/// Values as they were when the program began: it may change its environment.
struct Kept {
    read: bool,
    lengths: [usize; VALUES],
    values: [[u8; VALUE_ROOM]; VALUES],
}

/// Where and how much to record.
pub struct Settings {
    directory: &'static [u8],
    pub memory_bytes: usize,
    pub segments_bytes: usize,
    pub ticks_per_second: u64,
}

impl Settings {
    pub fn directory(&self) -> &[u8] {
        self.directory
    }
}

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// The settings, None when the program is not to be traced.
pub fn read() -> Option<Settings> {
    keep();
    let directory = variable(0)?;
    let of = |place| variable(place).and_then(number);
    let memory = usize::try_from(of(1)?).ok()?;
    let most = extent::log_bytes_max().clamp(MEMORY_BYTES_MIN, MEMORY_BYTES_MAX);
    Some(Settings {
        directory,
        memory_bytes: memory.clamp(MEMORY_BYTES_MIN, most),
        segments_bytes: usize::try_from(of(2).unwrap_or(0)).ok()?.min(most),
        ticks_per_second: of(3).unwrap_or(0),
    })
}

/// The value that one of our variables (or, behind them, LD_PRELOAD) had when the program began.
pub fn variable(place: usize) -> Option<&'static [u8]> {
    // SAFETY: written once by `keep`, before any other thread can be here.
    let kept = unsafe { (&raw const KEPT).as_ref() }?;
    let length = *kept.lengths.get(place)?;
    kept.values
        .get(place)?
        .get(..length)
        .filter(|value| !value.is_empty())
}

fn keep() {
    // SAFETY: called first from the constructor, when there is one thread only.
    let Some(kept) = (unsafe { (&raw mut KEPT).as_mut() }) else {
        return;
    };
    if kept.read {
        return;
    }
    kept.read = true;
    // SAFETY: the loader sets it before any constructor runs, and nothing has changed it yet.
    for_each(unsafe { environ }, |entry| {
        for (place, name) in VARIABLES.iter().chain([&PRELOAD]).enumerate() {
            let Some(value) = entry.strip_prefix(*name) else {
                continue;
            };
            if let Some(room) = kept.values[place].get_mut(..value.len()) {
                room.copy_from_slice(value);
                kept.lengths[place] = value.len();
            }
        }
    });
}

/// Calls `each` for the entries of an environment.
pub fn for_each(entries: *const *const c_char, mut each: impl FnMut(&[u8])) {
    if entries.is_null() {
        return;
    }
    for place in 0.. {
        // SAFETY: an environment is an array of strings that ends with null.
        let entry = unsafe { *entries.wrapping_add(place) };
        if entry.is_null() {
            return;
        }
        // SAFETY: as above.
        each(unsafe { CStr::from_ptr(entry) }.to_bytes());
    }
}

/// A decimal number.
pub fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Text in a buffer; what does not fit is left out, and `is_whole` says so.
pub struct Text<'a> {
    room: &'a mut [u8],
    used: usize,
    whole: bool,
}

impl<'a> Text<'a> {
    pub fn new(room: &'a mut [u8]) -> Self {
        Self {
            room,
            used: 0,
            whole: true,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        match self.room.get_mut(self.used..self.used + bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.used += bytes.len();
            }
            None => self.whole = false,
        }
    }

    pub fn push_number(&mut self, mut value: u64) {
        let mut digits = [0_u8; 20];
        let mut first = digits.len();
        for place in (0..digits.len()).rev() {
            digits[place] = b'0' + (value % 10) as u8;
            value /= 10;
            first = place;
            if value == 0 {
                break;
            }
        }
        self.push(digits.get(first..).unwrap_or(&[]));
    }

    pub fn is_whole(&self) -> bool {
        self.whole
    }

    pub fn bytes(&self) -> &[u8] {
        self.room.get(..self.used).unwrap_or(&[])
    }
}
