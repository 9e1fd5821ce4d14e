// The words that the program in the kernel and the loader share. build.rs makes C constants of them, so this
// file is plain data: no imports, no types of its own. Those of counters and times are leadline-record's.

/// What the time of a call counts as. NONE: it waits for something else than a file.
pub const KINDS: [&str; 5] = ["READ", "WRITE", "META", "SYNC", "NONE"];

/// How a call's arguments name files, and the bits that say what a transfer is.
pub const SHAPES: [(&str, u8); 16] = [
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
    ("SUBMIT", 10),
    ("COLLECT", 11),
    ("TRANSFER", 16),
    ("WRITES", 32),
    ("AT", 64),
    ("VECTOR", 128),
];

/// What can be dropped, in the order of the program's totals.
pub const LOST: [&str; 7] = [
    "files", "names", "events", "threads", "tasks", "segments", "requests",
];
