// The maps: threads that are followed, files they used, and the way to the loader.
#pragma once
#include "layout.h"

// Set by the loader before the program is loaded.
const volatile struct call calls[CALL_NUMBERS] = {};
const volatile struct call ring_calls[OPCODES] = {};
const volatile struct call asked_calls[ASKED_OPCODES] = {};
const volatile u32 rows_max = 1;
const volatile u32 keeps_segments = 0;

// What a new thread begins as.
const struct thread new_thread = {};

// One goes up whenever a process of its share opens or closes a descriptor: what threads cached is then stale.
u32 epochs[EPOCHS] = {};

HASH_MAP(threads, 1024, u32, struct thread);

// Threads that ended while the ring of events was full.
HASH_MAP(graves, 1024, u64, struct thread);

HASH_MAP(row_numbers, 1024, struct row_key, u32);

struct {
    MAP_UINT(type, MAP_ARRAY);
    MAP_UINT(max_entries, 1);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, struct row);
} rows SEC(".maps");

HASH_MAP(requests, 65536, u64, struct request);

HASH_MAP(asked, 65536, struct asked_key, struct asked);

struct {
    MAP_UINT(type, MAP_RINGBUF);
    MAP_UINT(max_entries, 16 * 1024 * 1024);
} events SEC(".maps");

struct {
    MAP_UINT(type, MAP_RINGBUF);
    MAP_UINT(max_entries, 4096);
} segments SEC(".maps");

// What was dropped (LOST_*), and after them the last numbers given to images, rows and graves.
enum { TOTAL_IMAGES = LOST_COUNT, TOTAL_ROWS, TOTAL_GRAVES, TOTAL_COUNT };
struct {
    MAP_UINT(type, MAP_ARRAY);
    MAP_UINT(max_entries, TOTAL_COUNT);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, u64);
} totals SEC(".maps");

INLINE u64 next_number(u32 which) {
    u64 *total = map_lookup(&totals, &which);
    return total ? __sync_fetch_and_add(total, 1) : 0;
}

INLINE void lose(u32 which) {
    next_number(which);
}

INLINE struct thread *thread_of(u32 tid) {
    return map_lookup(&threads, &tid);
}

INLINE struct row *row_at(u32 number) {
    return map_lookup(&rows, &number);
}

// Adds where another thread may add too, at the price of it only there.
INLINE void add(u64 *where, u64 amount, u32 concurrent) {
    if (concurrent)
        __sync_fetch_and_add(where, amount);
    else
        *where += amount;
}
