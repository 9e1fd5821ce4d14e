//! Loads the program and attaches it. What is attached ends with this process, however it ends: every link
//! is a descriptor that the kernel closes.

use std::path::Path;

use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf, EbpfLoader, Endianness};

use crate::calls::{ASKED, CALLS, Table};
use crate::layout::{ASKED_OPCODES, CALL_NUMBERS, CallEntry, OPCODES, Row, Thread};
use crate::support::BpfError;

static PROGRAM: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/trace.bpf.o"));

/// Programs at tracepoints that every supported kernel has. The end of processes comes first and the start of
/// calls last, so that nothing is half seen.
const TRACEPOINTS: [(&str, &str); 5] = [
    ("exited", "sched_process_exit"),
    ("executed", "sched_process_exec"),
    ("forked", "sched_process_fork"),
    ("call_ends", "sys_exit"),
    ("call_begins", "sys_enter"),
];

/// How much may be remembered.
pub struct Limits {
    pub rows: u32,
    pub threads: u32,
    pub segments_ring_bytes: u32,
    pub keeps_segments: bool,
}

impl Limits {
    /// Half of the memory for files, half for threads that live at once.
    pub fn of(memory_bytes: u64, segments_bytes: Option<u64>) -> Self {
        let share = memory_bytes / 2;
        let fit = |bytes: usize, least: u64| (share / bytes as u64).clamp(least, 1 << 24) as u32;
        Self {
            rows: fit(size_of::<Row>(), 64),
            threads: fit(size_of::<Thread>(), 64),
            segments_ring_bytes: if segments_bytes.is_some() {
                16 << 20
            } else {
                4096
            },
            keeps_segments: segments_bytes.is_some(),
        }
    }
}

/// The loaded program, and whether it sees io_uring on this kernel.
pub struct Loaded {
    pub program: Ebpf,
    pub rings: bool,
}

/// Loads and attaches everything that this kernel has.
pub fn load(kernel_types: &Path, limits: &Limits) -> Result<Loaded, BpfError> {
    let btf = Btf::parse_file(kernel_types, Endianness::default()).map_err(|error| {
        BpfError::failed("the kernel's description of its types is of no use", &error)
    })?;
    let tables = tables();
    let keeps_segments = u32::from(limits.keeps_segments);
    let mut program = EbpfLoader::new()
        .btf(Some(&btf))
        .override_global("calls", &tables.system[..], true)
        .override_global("ring_calls", &tables.rings[..], true)
        .override_global("asked_calls", &tables.asked[..], true)
        .override_global("rows_max", &limits.rows, true)
        .override_global("keeps_segments", &keeps_segments, true)
        .map_max_entries("rows", limits.rows)
        .map_max_entries("row_numbers", limits.rows)
        .map_max_entries("path_numbers", limits.rows)
        .map_max_entries("threads", limits.threads)
        .map_max_entries("graves", limits.threads)
        .map_max_entries("segments", limits.segments_ring_bytes)
        .load(PROGRAM)
        .map_err(|error| BpfError::failed("the kernel did not take the tracer's maps", &error))?;
    for (name, tracepoint) in TRACEPOINTS {
        trace(&mut program, name, tracepoint, &btf)?;
    }
    let rings = trace(&mut program, "request_begins", "io_uring_submit_req", &btf).is_ok()
        && (trace(
            &mut program,
            "request_ends_with_values",
            "io_uring_complete",
            &btf,
        )
        .is_ok()
            || trace(
                &mut program,
                "request_ends_with_entry",
                "io_uring_complete",
                &btf,
            )
            .is_ok());
    Ok(Loaded { program, rings })
}

/// What the program knows calls by: their numbers in each of the kernel's tables.
struct Tables {
    system: [CallEntry; CALL_NUMBERS],
    rings: [CallEntry; OPCODES],
    asked: [CallEntry; ASKED_OPCODES],
}

fn tables() -> Tables {
    let mut tables = Tables {
        system: [CallEntry::default(); CALL_NUMBERS],
        rings: [CallEntry::default(); OPCODES],
        asked: [CallEntry::default(); ASKED_OPCODES],
    };
    for (index, call) in CALLS.iter().enumerate() {
        let entry = CallEntry {
            slot: index as u8 + 1,
            kind: call.kind as u8,
            shape: call.shape,
            counter: call.counter,
            path: call.path,
            has_directory: u8::from(call.has_directory),
            second: call.second,
            zero: 0,
        };
        match call.table {
            Table::System => tables.system[call.number as usize] = entry,
            Table::Ring => tables.rings[call.number as usize] = entry,
            Table::Asked => {
                for (opcode, _, shape, counter) in ASKED.iter().filter(|one| one.1 == call.name) {
                    tables.asked[*opcode] = CallEntry {
                        shape: *shape,
                        counter: *counter,
                        ..entry
                    };
                }
            }
        }
    }
    tables
}

fn trace(program: &mut Ebpf, name: &str, tracepoint: &str, btf: &Btf) -> Result<(), BpfError> {
    let failed = |error: &(dyn std::error::Error + 'static)| {
        BpfError::failed(&format!("the tracer cannot follow {tracepoint}"), error)
    };
    let found: &mut BtfTracePoint = program
        .program_mut(name)
        .ok_or_else(|| BpfError::new(format!("no program {name}"), "report this"))?
        .try_into()
        .map_err(|error: aya::programs::ProgramError| failed(&error))?;
    found
        .load(tracepoint, btf)
        .map_err(|error| failed(&error))?;
    found.attach().map_err(|error| failed(&error))?;
    Ok(())
}
