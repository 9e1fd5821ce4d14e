// Counting: what one finished call adds to its thread, its file and, where asked, to the list of calls.
#pragma once
#include "files.h"

INLINE u32 bucket_of(u64 latency_ns) {
    if (latency_ns < (1 << HISTOGRAM_FIRST_BITS))
        return 0;
    u32 power = 0;
    u64 rest = latency_ns;
    if (rest >> 32) { power += 32; rest >>= 32; }
    if (rest >> 16) { power += 16; rest >>= 16; }
    if (rest >> 8) { power += 8; rest >>= 8; }
    if (rest >> 4) { power += 4; rest >>= 4; }
    if (rest >> 2) { power += 2; rest >>= 2; }
    if (rest >> 1) power += 1;
    u32 bucket = 1 + (power - HISTOGRAM_FIRST_BITS) * 8 + ((latency_ns >> (power - 3)) & 7);
    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

// One latency in the histogram of its kind.
INLINE void time_it(struct thread *thread, u32 kind, u64 duration_ns, u32 concurrent) {
    if (kind >= KINDS)
        return;
    u32 bucket = bucket_of(duration_ns);
    if (bucket < HISTOGRAM_BUCKETS)
        add(&thread->histograms[kind][bucket], 1, concurrent);
}

INLINE u32 size_bin(u64 bytes) {
    if (bytes <= 10 << 10)
        return bytes <= 100 ? 0 : bytes <= 1 << 10 ? 1 : 2;
    if (bytes <= 4 << 20)
        return bytes <= 100 << 10 ? 3 : bytes <= 1 << 20 ? 4 : 5;
    return bytes <= 10 << 20 ? 6 : bytes <= 100 << 20 ? 7 : bytes <= 1ull << 30 ? 8 : 9;
}

// Time on a file, of which what overlaps the call before counts once.
INLINE void span(struct row *row, u32 total, u64 before_ns, u64 start_ns, u64 end_ns, u32 concurrent) {
    u64 from = before_ns > start_ns ? before_ns : start_ns;
    if (end_ns > from)
        add(&row->times[total], end_ns - from, concurrent);
}

INLINE void stamp(struct row *row, u32 start, u32 end, u64 start_ns, u64 end_ns) {
    if (!row->times[start])
        row->times[start] = start_ns;
    row->times[end] = end_ns;
}

INLINE void count_meta(struct row *row, u32 counter, u64 start_ns, u64 end_ns, u32 concurrent) {
    if (counter < COUNTER_COUNT)
        add(&row->counters[counter], 1, concurrent);
    span(row, TIME_F_META_TIME, row->meta_end_ns, start_ns, end_ns, concurrent);
    row->meta_end_ns = end_ns;
}

struct moved {
    u64 bytes;
    u64 offset;
    u64 start_ns;
    u64 end_ns;
    u32 concurrent;
    u32 misaligned;  // the memory
};

INLINE void count_read(struct row *row, const struct moved *moved) {
    u64 end = moved->offset + moved->bytes, bytes = moved->bytes;
    u32 concurrent = moved->concurrent, bin = size_bin(bytes);
    if (row->counters[COUNTER_READS]) {
        if (moved->offset == row->next_read)
            add(&row->counters[COUNTER_CONSEC_READS], 1, concurrent);
        if (moved->offset >= row->next_read)
            add(&row->counters[COUNTER_SEQ_READS], 1, concurrent);
    }
    row->next_read = end;
    add(&row->counters[COUNTER_READS], 1, concurrent);
    add(&row->counters[COUNTER_BYTES_READ], bytes, concurrent);
    if (!bytes)
        add(&row->counters[COUNTER_empty_reads], 1, concurrent);
    if (bin < 10)
        add(&row->counters[COUNTER_SIZE_READ_0_100 + bin], 1, concurrent);
    if (bytes && end - 1 > row->counters[COUNTER_MAX_BYTE_READ])
        row->counters[COUNTER_MAX_BYTE_READ] = end - 1;
    if (row->last_was_write == 2)
        add(&row->counters[COUNTER_RW_SWITCHES], 1, concurrent);
    row->last_was_write = 1;
    span(row, TIME_F_READ_TIME, row->times[TIME_F_READ_END_TIMESTAMP], moved->start_ns, moved->end_ns, concurrent);
    stamp(row, TIME_F_READ_START_TIMESTAMP, TIME_F_READ_END_TIMESTAMP, moved->start_ns, moved->end_ns);
    if (moved->end_ns - moved->start_ns > row->times[TIME_F_MAX_READ_TIME])
        row->times[TIME_F_MAX_READ_TIME] = moved->end_ns - moved->start_ns;
}

INLINE void count_rewritten(struct row *row, const struct moved *moved) {
    u64 written = row->counters[COUNTER_BYTES_WRITTEN] ? row->counters[COUNTER_MAX_BYTE_WRITTEN] + 1 : 0;
    if (moved->offset >= written)
        return;
    u64 below = written - moved->offset;
    add(&row->counters[COUNTER_rewritten_bytes], below < moved->bytes ? below : moved->bytes, moved->concurrent);
}

INLINE void count_write(struct row *row, const struct moved *moved) {
    u64 end = moved->offset + moved->bytes, bytes = moved->bytes;
    u32 concurrent = moved->concurrent, bin = size_bin(bytes);
    if (row->counters[COUNTER_WRITES]) {
        if (moved->offset == row->next_write)
            add(&row->counters[COUNTER_CONSEC_WRITES], 1, concurrent);
        if (moved->offset >= row->next_write)
            add(&row->counters[COUNTER_SEQ_WRITES], 1, concurrent);
    }
    row->next_write = end;
    count_rewritten(row, moved);
    add(&row->counters[COUNTER_WRITES], 1, concurrent);
    add(&row->counters[COUNTER_BYTES_WRITTEN], bytes, concurrent);
    if (bin < 10)
        add(&row->counters[COUNTER_SIZE_WRITE_0_100 + bin], 1, concurrent);
    if (bytes && end - 1 > row->counters[COUNTER_MAX_BYTE_WRITTEN])
        row->counters[COUNTER_MAX_BYTE_WRITTEN] = end - 1;
    if (row->last_was_write == 1)
        add(&row->counters[COUNTER_RW_SWITCHES], 1, concurrent);
    row->last_was_write = 2;
    span(row, TIME_F_WRITE_TIME, row->times[TIME_F_WRITE_END_TIMESTAMP], moved->start_ns, moved->end_ns, concurrent);
    stamp(row, TIME_F_WRITE_START_TIMESTAMP, TIME_F_WRITE_END_TIMESTAMP, moved->start_ns, moved->end_ns);
    if (moved->end_ns - moved->start_ns > row->times[TIME_F_MAX_WRITE_TIME])
        row->times[TIME_F_MAX_WRITE_TIME] = moved->end_ns - moved->start_ns;
}

INLINE void count_moved(struct row *row, u32 is_write, const struct moved *moved) {
    if (moved->misaligned)
        add(&row->counters[COUNTER_MEM_NOT_ALIGNED], 1, moved->concurrent);
    u64 alignment = row->counters[COUNTER_FILE_ALIGNMENT];
    if (alignment && (moved->offset & (alignment - 1)))
        add(&row->counters[COUNTER_FILE_NOT_ALIGNED], 1, moved->concurrent);
    if (is_write)
        count_write(row, moved);
    else
        count_read(row, moved);
}

// An asynchronous request on a file that has ended. Others may count for the same thread.
struct counted {
    u32 row;
    s64 offset;
    u64 start_ns;
    u64 end_ns;
    s64 result;
};

INLINE void count_request(struct thread *thread, const volatile struct call *call, const struct counted *request) {
    u32 slot = call->slot;
    if (slot >= SLOTS)
        return;
    struct tally *tally = &thread->calls[slot];
    u64 duration_ns = request->end_ns - request->start_ns;
    __sync_fetch_and_add(&tally->time_ns, duration_ns);
    time_it(thread, call->kind, duration_ns, 1);
    struct row *row = request->row ? row_at(request->row) : 0;
    if (request->result < 0) {
        if (row)
            __sync_fetch_and_add(&row->counters[COUNTER_failed], 1);
        return;
    }
    if (!(call->shape & SHAPE_TRANSFER)) {
        if (row)
            count_meta(row, call->counter, request->start_ns, request->end_ns, 1);
        return;
    }
    __sync_fetch_and_add(&tally->bytes, request->result);
    struct moved moved = {request->result, request->offset, request->start_ns, request->end_ns, 1, 0};
    if (row)
        count_moved(row, call->shape & SHAPE_WRITES, &moved);
}

INLINE void keep_segment(const struct segment *call) {
    struct segment *kept = ring_reserve(&segments, sizeof(*kept), 0);
    if (!kept) {
        lose(LOST_SEGMENTS);
        return;
    }
    *kept = *call;
    ring_submit(kept, RING_NO_WAKEUP);
}
