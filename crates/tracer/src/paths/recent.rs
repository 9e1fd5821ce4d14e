//! Paths that a thread used lately, at the same address in memory: programs ask for the same few files again and
//! again. What is found here needs not be made absolute, nor looked up.

use core::arch::x86_64::{_mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8};
use core::ffi::c_char;
use core::sync::atomic::Ordering::Relaxed;

use leadline_record::trace::layout::{FileRecord, PAGE_BYTES};

use super::DIRECTORY_GENERATION;
use crate::thread::Thread;

const PATHS: usize = 16;
const TEXT_BYTES: usize = 128;
/// What is compared at once.
const STEP: usize = 32;

/// The paths of one thread. Zeros are empty ones: no working directory has the generation 0.
#[repr(C)]
pub struct Recent([Path; PATHS]);

/// A path as the program wrote it.
#[repr(C, align(64))]
struct Path {
    address: usize,
    directory: i32,
    generation: u32,
    record: *mut FileRecord,
    /// Of each step, the bytes that belong to the text, its zero byte included, as bits.
    wanted: [u32; TEXT_BYTES / STEP],
    text: Text,
}

/// In cache lines of its own, whatever comes before it.
#[repr(C, align(64))]
struct Text([u8; TEXT_BYTES]);

fn place(address: usize) -> usize {
    ((address as u32).wrapping_mul(0x9e37_79b1) >> 28) as usize % PATHS
}

/// The thread's record of the path at an address, if it is one of these; never for null.
///
/// # Safety
/// `path` is null or a string that the kernel has just read.
#[inline(always)]
pub unsafe fn known(
    thread: &Thread,
    directory: i32,
    path: *const c_char,
) -> Option<*mut FileRecord> {
    let kept = &thread.paths.0[place(path.addr())];
    if kept.address != path.addr()
        || kept.directory != directory
        || kept.generation != DIRECTORY_GENERATION.load(Relaxed)
    {
        return None;
    }
    for (step, wanted) in kept.wanted.iter().enumerate() {
        if *wanted == 0 {
            break;
        }
        // SAFETY: what is in the page of the string's start may be read; `keep` takes no string that leaves it.
        if unsafe { equal(path.cast::<u8>(), &kept.text, step * STEP) } & wanted != *wanted {
            return None;
        }
    }
    Some(kept.record)
}

/// Which of the bytes from `at` on are equal, as bits.
#[inline(always)]
unsafe fn equal(path: *const u8, text: &Text, at: usize) -> u32 {
    const HALF: usize = STEP / 2;
    let bits = |offset: usize| {
        // SAFETY: promised by the caller; the offset is within the text. All x86-64 CPUs have the instructions.
        unsafe {
            let theirs = _mm_loadu_si128(path.wrapping_add(offset).cast());
            let ours = _mm_loadu_si128(text.0.as_ptr().wrapping_add(offset).cast());
            _mm_movemask_epi8(_mm_cmpeq_epi8(theirs, ours)) as u32
        }
    };
    bits(at) | bits(at + HALF) << HALF
}

/// Keeps a path that was just looked up, unless it may be another file's the next time.
pub fn keep(
    thread: &mut Thread,
    directory: i32,
    address: usize,
    text: &[u8],
    record: *mut FileRecord,
) {
    // A directory's descriptor may be another directory's the next time.
    let lasts = directory == libc::AT_FDCWD || text.first() == Some(&b'/');
    let steps = text.len() / STEP + 1;
    let in_page = address % PAGE_BYTES + steps * STEP <= PAGE_BYTES;
    if !lasts || !in_page || text.is_empty() || text.len() >= TEXT_BYTES {
        return;
    }
    let generation = DIRECTORY_GENERATION.load(Relaxed);
    let kept = &mut thread.paths.0[place(address)];
    kept.text.0[..text.len()].copy_from_slice(text);
    kept.text.0[text.len()] = 0;
    for (step, wanted) in kept.wanted.iter_mut().enumerate() {
        let bytes = (text.len() + 1).saturating_sub(step * STEP).min(STEP);
        *wanted = ((1_u64 << bytes) - 1) as u32;
    }
    (kept.address, kept.directory) = (address, directory);
    (kept.generation, kept.record) = (generation, record);
}

/// Forgets them all.
pub fn forget(thread: &mut Thread) {
    for kept in &mut thread.paths.0 {
        kept.generation = 0;
    }
}
