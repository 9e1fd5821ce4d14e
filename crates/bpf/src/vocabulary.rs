// The words that the program in the kernel and the loader share. build.rs makes C constants of them, so this
// file is plain data: no imports, no types of its own. Counters and times are in the order of the tables.

/// Counters of a file: Darshan's names, then leadline's own.
pub const COUNTERS: [&str; 58] = [
    "OPENS",
    "FILENOS",
    "DUPS",
    "READS",
    "WRITES",
    "SEEKS",
    "STATS",
    "MMAPS",
    "FSYNCS",
    "FDSYNCS",
    "RENAME_SOURCES",
    "RENAME_TARGETS",
    "BYTES_READ",
    "BYTES_WRITTEN",
    "MAX_BYTE_READ",
    "MAX_BYTE_WRITTEN",
    "CONSEC_READS",
    "CONSEC_WRITES",
    "SEQ_READS",
    "SEQ_WRITES",
    "RW_SWITCHES",
    "MEM_NOT_ALIGNED",
    "FILE_NOT_ALIGNED",
    "FILE_ALIGNMENT",
    "SIZE_READ_0_100",
    "SIZE_READ_100_1K",
    "SIZE_READ_1K_10K",
    "SIZE_READ_10K_100K",
    "SIZE_READ_100K_1M",
    "SIZE_READ_1M_4M",
    "SIZE_READ_4M_10M",
    "SIZE_READ_10M_100M",
    "SIZE_READ_100M_1G",
    "SIZE_READ_1G_PLUS",
    "SIZE_WRITE_0_100",
    "SIZE_WRITE_100_1K",
    "SIZE_WRITE_1K_10K",
    "SIZE_WRITE_10K_100K",
    "SIZE_WRITE_100K_1M",
    "SIZE_WRITE_1M_4M",
    "SIZE_WRITE_4M_10M",
    "SIZE_WRITE_10M_100M",
    "SIZE_WRITE_100M_1G",
    "SIZE_WRITE_1G_PLUS",
    "unlinks",
    "mkdirs",
    "rmdirs",
    "readdirs",
    "links",
    "truncates",
    "allocates",
    "advises",
    "closes",
    "mapped_bytes",
    "copied_in_bytes",
    "copied_out_bytes",
    "rewritten_bytes",
    "failed",
];

/// Times of a file, in Darshan's names; stamps are those that say so.
pub const TIMES: [&str; 13] = [
    "F_OPEN_START_TIMESTAMP",
    "F_READ_START_TIMESTAMP",
    "F_WRITE_START_TIMESTAMP",
    "F_CLOSE_START_TIMESTAMP",
    "F_OPEN_END_TIMESTAMP",
    "F_READ_END_TIMESTAMP",
    "F_WRITE_END_TIMESTAMP",
    "F_CLOSE_END_TIMESTAMP",
    "F_READ_TIME",
    "F_WRITE_TIME",
    "F_META_TIME",
    "F_MAX_READ_TIME",
    "F_MAX_WRITE_TIME",
];

/// What the time of a call counts as. NONE: it waits for something else than a file.
#[cfg_attr(not(test), allow(dead_code))] // build.rs uses it
pub const KINDS: [&str; 5] = ["READ", "WRITE", "META", "SYNC", "NONE"];

/// How a call's arguments name files, and the bits that say what a transfer is.
pub const SHAPES: [(&str, u8); 14] = [
    ("PLAIN", 0),
    ("OPEN", 1),
    ("CLOSE", 2),
    ("DESCRIPTOR", 3),
    ("CONTROL", 4),
    ("PATH", 5),
    ("MAPPING", 6),
    ("COPY", 7),
    ("SEND", 8),
    ("CLOSE_RANGE", 9),
    ("TRANSFER", 16),
    ("WRITES", 32),
    ("AT", 64),
    ("VECTOR", 128),
];

/// What can be dropped, in the order of the program's totals.
pub const LOST: [&str; 8] = [
    "files", "names", "events", "threads", "tasks", "segments", "requests", "hooks",
];
