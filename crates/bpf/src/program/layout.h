// What the program and the loader both know: the shape of maps and events. layout.rs says the same in Rust.
#pragma once
#include "kernel.h"
#include "names.h"  // generated from vocabulary.rs: COUNTER_*, TIME_*, SHAPE_*, KIND_*, LOST_*

enum { CALL_NUMBERS = 512, OPCODES = 64, ASKED_OPCODES = 16, SLOTS = 160, KINDS = 4, CACHED = 16, EPOCHS = 256 };
// Latencies: below 64 ns in the first, then 8 a power of two.
enum { HISTOGRAM_BUCKETS = 256, HISTOGRAM_FIRST_BITS = 6 };
enum { NAME_BYTES = 1024, LONG_NAME_BYTES = 4096, PATH_BYTES = 240, PART_BYTES = 256, PARTS_MAX = 40, ARGUMENTS_BYTES = 1024 };
enum { EVENT_NAME = 1, EVENT_FORK, EVENT_EXEC, EVENT_EXIT, EVENT_THREAD, EVENT_ARGUMENTS, EVENT_PATH };

// What leadline knows of a system call or an opcode of io_uring. Slot 0: none of our business.
struct call {
    u8 slot;
    u8 kind;     // KIND_*: what its time counts as
    u8 shape;    // SHAPE_*: how its arguments name files
    u8 counter;  // COUNTER_* of the file that goes up by one
    u8 path;     // which argument names a file, for SHAPE_PATH
    u8 has_directory;  // the one before it is a directory's descriptor
    u8 second;         // which argument is the second path; 0: none
    u8 zero;
};

// Calls of one kind by one thread. Bytes and time only of what went to files.
struct tally {
    u64 count;
    u64 errors;
    u64 bytes;
    u64 time_ns;
};

// A descriptor whose file is known, for as long as nobody in the process opens or closes one.
struct cached {
    u64 file;
    u32 row;
    u32 epoch;
    u32 descriptor;
    u32 is_file;
};

// A path as the program gave it, in a hash of its text, and the directory that it starts from.
struct path_key {
    u32 image;
    u32 device;
    u64 inode;
    u64 hash;
};

// What a path led to; `check` and `bytes` tell another path of the same hash apart.
struct path_row {
    u64 check;
    u32 bytes;
    u32 row;
};

// One thread between its start or exec and its end. Sent whole as an event when it ends.
struct thread {
    u32 event;
    u32 image;  // number of the process image
    u32 tgid;
    u32 tid;
    u64 start_ns;  // of the call it is in; 0: in none
    u32 concurrent;  // another thread may count for the same process
    u32 uncached;    // shares descriptors with another process
    u32 foreign;     // a program of another word size: its calls are not understood
    u32 closing_row;  // of the descriptor that it is about to close
    u32 closing_file;  // whether that is a file's
    u32 is_held;  // the kernel's count below is of what was followed
    u64 runtime_ns, user_ns, system_ns;  // at the image's start, then of the image
    u64 copied_in_bytes, copied_out_bytes;
    u64 faults;  // that had to read
    u64 uncollected;  // requests of libaio whose place another took
    u64 kernel_bytes[2], seen_bytes[2];  // read and written, of any descriptor: as the kernel counts, and of calls seen
    struct path_key last_path;
    struct path_row last_row;
    struct cached cache[CACHED];
    struct tally calls[SLOTS];
    u64 histograms[KINDS][HISTOGRAM_BUCKETS];
};

// One file in one process image.
struct row {
    u32 image;
    u32 device;
    u64 inode;
    u64 name_hash;
    u32 generation;
    u32 named;
    u64 next_read, next_write, last_was_write, meta_end_ns;
    u64 counters[COUNTER_COUNT];
    u64 times[TIME_COUNT];  // ns, of the monotonic clock where they are stamps
};

struct row_key {
    u32 image;
    u32 device;
    u64 inode;
    u64 name_hash;
    u32 generation;
    u32 zero;
};

struct path_event {
    u32 event;
    u32 row;
    u32 bytes;  // of the directory's names in text
    u32 zero;
    char path[PATH_BYTES];
    char text[NAME_BYTES + PART_BYTES];
};

struct name_event {
    u32 event;
    u32 row;    // or the image whose executable it is
    u32 bytes;  // of text: names from the file up to the root, each ended by a zero
    u32 executable;
    char text[LONG_NAME_BYTES + PART_BYTES];
};

struct short_name_event {
    u32 event;
    u32 row;
    u32 bytes;
    u32 executable;
    char text[NAME_BYTES + PART_BYTES];
};

struct process_event {
    u32 event;
    u32 image;
    u32 before;  // the image that forked, or that ended by exec
    u32 pid;
    u64 time_ns;
    s32 status;  // as wait() gives it
    u32 foreign;
};

struct arguments_event {
    u32 event;
    u32 image;
    u32 bytes;  // 0: could not be read
    u32 cut;
    char text[ARGUMENTS_BYTES];
};

struct segment {
    u32 image;
    u32 tid;
    u32 row;
    u32 slot;
    s64 offset;  // -1: none
    s64 length;  // -1: none
    s64 result;
    u64 start_ns;
    u64 duration_ns;
};

// A request of libaio, by its address in the program.
struct asked_key {
    u64 address;
    u32 tgid;
    u32 zero;
};

// The same between its submission and the collection of its result.
struct asked {
    u64 start_ns;
    s64 offset;
    s64 length;
    u32 opcode;
    u32 image;
    u32 row;
    u32 is_file;
};

// A request of io_uring between its submission and its completion.
struct request {
    u64 start_ns;
    s64 offset;
    s64 length;
    u32 opcode;
    u32 tid;
    u32 from_row;  // of what a splice reads
    u32 from_file;
};
