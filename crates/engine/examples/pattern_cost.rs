//! What data costs: making it and verifying it, against a memset of the same buffer, interleaved; and copying
//! blocks into it from a pool that a cache holds, which is the least that different data can cost.
//!
//! Usage: `pattern_cost BUFFER_BYTES ROUNDS`. Prints one JSON line a round: ns of CPU for a pass of each.

use std::hint::black_box;
use std::io::Write;
use std::process::ExitCode;

use leadline_engine::pattern::{BLOCK_BYTES, Pattern, Stamp};
use leadline_engine::sys::buffer::AlignedBuffer;
use leadline_engine::sys::process::thread_cpu;

/// Bytes of one timing: enough for a clock, little enough for a quiet moment.
const PASS_BYTES: usize = 64 << 20;
/// As large as the engine's own.
const POOL_BYTES: usize = 16 << 10;

fn main() -> ExitCode {
    match run() {
        Some(()) => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    }
}

fn run() -> Option<()> {
    let mut words = std::env::args().skip(1);
    let bytes: usize = words.next()?.parse().ok()?;
    let rounds: usize = words.next()?.parse().ok()?;
    let pattern = Pattern::new(true);
    let mut memory = AlignedBuffer::new(bytes).ok()?;
    let pool = vec![1_u8; POOL_BYTES + BLOCK_BYTES];
    let mut offset = 0;
    for _ in 0..=rounds {
        let passes = (PASS_BYTES / bytes).max(1);
        let set = timed(passes, || black_box(memory.as_mut_slice()).fill(0));
        let fill = timed(passes, || {
            offset += bytes as u64;
            pattern.fill(black_box(memory.as_mut_slice()), stamp(offset));
        });
        let copy = timed(passes, || {
            let blocks = black_box(memory.as_mut_slice()).chunks_exact_mut(BLOCK_BYTES);
            for (index, block) in blocks.enumerate() {
                let start = index * 64 % POOL_BYTES;
                block.copy_from_slice(&black_box(&pool)[start..start + BLOCK_BYTES]);
            }
        });
        pattern.fill(memory.as_mut_slice(), stamp(offset));
        let verify = timed(passes, || {
            verify(&pattern, black_box(memory.as_mut_slice()), offset)
        });
        let line = serde_json::json!({"memset_ns": set, "fill_ns": fill, "copy_ns": copy, "verify_ns": verify});
        writeln!(std::io::stdout(), "{line}").ok()?;
    }
    Some(())
}

fn stamp(offset: u64) -> Stamp {
    Stamp {
        seed: 7,
        generation: 1,
        file: 0,
        offset,
    }
}

fn verify(pattern: &Pattern, data: &[u8], first: u64) {
    for (index, block) in data.chunks(BLOCK_BYTES).enumerate() {
        assert!(pattern.holds(block, stamp(first + (index * BLOCK_BYTES) as u64)));
    }
}

fn timed(passes: usize, mut work: impl FnMut()) -> u64 {
    let before = thread_cpu();
    for _ in 0..passes {
        work();
    }
    let used = thread_cpu().since(before);
    (used.user_ns + used.system_ns) / passes as u64
}
