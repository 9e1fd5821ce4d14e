// System calls of followed threads: noted when they begin, counted when they end.
#pragma once
#include "asked.h"

#define DUPLICATE_DESCRIPTOR 0
#define DUPLICATE_DESCRIPTOR_CLOSED_ON_EXEC 1030
#define ANONYMOUS_MAPPING 0x20
#define MAPPING_TYPE 0x0f
#define PRIVATE_MAPPING 0x02
#define DENY_WRITES 0x800  // the loader's mappings of programs and libraries
#define WRITABLE 0x2
#define EXECUTABLE 0x4
#define MEMORY_ALIGNMENT 8

// One call that ended.
struct done {
    const volatile struct call *call;
    struct tally *tally;
    u64 start_ns;
    u64 end_ns;
    s64 result;
    u32 row;  // of the file, for the list of calls
    s64 offset;
    s64 length;
};

SEC("tp_btf/sys_enter")
int call_begins(u64 *context) {
    u64 number = context[1];
    if (number >= CALL_NUMBERS)
        return 0;
    const volatile struct call *call = &calls[number];
    if (!call->slot)
        return 0;
    struct thread *thread = thread_of(current_ids());
    if (!thread || thread->foreign)
        return 0;
    if (call->shape == SHAPE_CLOSE) {
        struct pt_regs *registers = (struct pt_regs *)context[0];
        struct cached *cached = file_of(thread, ARGUMENT_0(registers));
        thread->closing_row = cached->row;
        thread->closing_file = cached->is_file;
    }
    thread->start_ns = now_ns();
    if (call->shape == SHAPE_SUBMIT) {
        struct pt_regs *registers = (struct pt_regs *)context[0];
        note_requests(ARGUMENT_2(registers), ARGUMENT_1(registers));
    }
    return 0;
}

INLINE void count_call(struct thread *thread, struct done *done, u32 kind) {
    u64 duration = done->end_ns - done->start_ns;
    if (kind < KINDS) {
        done->tally->time_ns += duration;
        time_it(thread, kind, duration, thread->concurrent);
    }
}

// read, write and their kin. What a pipe, socket or terminal took is counted as a call, not as I/O of files.
INLINE void end_transfer(struct thread *thread, struct pt_regs *registers, struct done *done, u32 shape) {
    u32 is_write = shape & SHAPE_WRITES;
    if (!ERROR_OF(done->result))
        thread->seen_bytes[is_write ? 1 : 0] += done->result;
    struct cached *cached = file_of(thread, ARGUMENT_0(registers));
    if (!cached->is_file)
        return;
    count_call(thread, done, done->call->kind);
    struct row *row = cached->row ? row_at(cached->row) : 0;
    done->row = cached->row;
    if (!(shape & SHAPE_VECTOR))
        done->length = ARGUMENT_2(registers);
    if (ERROR_OF(done->result)) {
        if (row)
            add(&row->counters[COUNTER_failed], 1, thread->concurrent);
        return;
    }
    done->tally->bytes += done->result;
    s64 offset = -1;
    if (shape & SHAPE_AT)
        offset = ARGUMENT_3(registers);
    if (offset < 0)
        offset = FIELD(file, cached->file, f_pos) - done->result;
    done->offset = offset;
    if (!row)
        return;
    struct moved moved = {done->result, offset, done->start_ns, done->end_ns, thread->concurrent, 0};
    if (!(shape & SHAPE_VECTOR))
        moved.misaligned = ARGUMENT_1(registers) % MEMORY_ALIGNMENT != 0;
    count_moved(row, is_write, &moved);
}

INLINE void count_on(struct thread *thread, struct done *done, u32 number, u32 counter) {
    struct row *row = number ? row_at(number) : 0;
    if (!row)
        return;
    if (ERROR_OF(done->result))
        add(&row->counters[COUNTER_failed], 1, thread->concurrent);
    else
        count_meta(row, counter, done->start_ns, done->end_ns, thread->concurrent);
}

INLINE void end_open(struct thread *thread, struct done *done) {
    count_call(thread, done, KIND_META);
    if (ERROR_OF(done->result))
        return;
    descriptors_changed(thread);
    struct cached *cached = file_of(thread, done->result);
    done->row = cached->row;
    struct row *row = cached->row ? row_at(cached->row) : 0;
    if (!row)
        return;
    count_meta(row, COUNTER_OPENS, done->start_ns, done->end_ns, thread->concurrent);
    stamp(row, TIME_F_OPEN_START_TIMESTAMP, TIME_F_OPEN_END_TIMESTAMP, done->start_ns, done->end_ns);
}

INLINE void end_close(struct thread *thread, struct done *done) {
    descriptors_changed(thread);
    if (!thread->closing_file)
        return;
    count_call(thread, done, KIND_META);
    done->row = thread->closing_row;
    struct row *row = done->row ? row_at(done->row) : 0;
    if (!row || ERROR_OF(done->result))
        return;
    count_meta(row, COUNTER_closes, done->start_ns, done->end_ns, thread->concurrent);
    stamp(row, TIME_F_CLOSE_START_TIMESTAMP, TIME_F_CLOSE_END_TIMESTAMP, done->start_ns, done->end_ns);
}

// Calls that name one descriptor. Of fcntl only what makes a new descriptor has a counter.
INLINE void end_descriptor(struct thread *thread, struct pt_regs *registers, struct done *done) {
    u32 counter = done->call->counter;
    if (done->call->shape == SHAPE_CONTROL) {
        u32 command = ARGUMENT_1(registers);
        if (command == DUPLICATE_DESCRIPTOR || command == DUPLICATE_DESCRIPTOR_CLOSED_ON_EXEC)
            counter = COUNTER_DUPS;
    }
    struct cached *cached = file_of(thread, ARGUMENT_0(registers));
    if (counter == COUNTER_DUPS && !ERROR_OF(done->result))
        descriptors_changed(thread);
    if (!cached->is_file)
        return;
    count_call(thread, done, done->call->kind);
    done->row = cached->row;
    count_on(thread, done, cached->row, counter);
}

INLINE void end_mapping(struct thread *thread, struct pt_regs *registers, struct done *done) {
    count_call(thread, done, KIND_META);
    struct cached *cached = file_of(thread, ARGUMENT_4(registers));
    done->row = cached->row;
    done->length = ARGUMENT_1(registers);
    count_on(thread, done, cached->row, COUNTER_MMAPS);
    if (ERROR_OF(done->result))
        return;
    done->tally->bytes += done->length;
    struct row *row = cached->row ? row_at(cached->row) : 0;
    if (!row)
        return;
    u32 protection = ARGUMENT_2(registers), flags = ARGUMENT_3(registers);
    if (!(protection & EXECUTABLE) && !(flags & DENY_WRITES))
        add(&row->counters[COUNTER_mapped_bytes], done->length, thread->concurrent);
    if ((protection & WRITABLE) && (flags & MAPPING_TYPE) != PRIVATE_MAPPING)
        add(&row->counters[COUNTER_write_mmaps], 1, thread->concurrent);
}

INLINE void copied(struct thread *thread, struct done *done, const struct cached *file, u32 into) {
    if (!file->is_file)
        return;
    u32 concurrent = thread->concurrent;
    struct row *row = file->row ? row_at(file->row) : 0;
    add(into ? &thread->copied_in_bytes : &thread->copied_out_bytes, done->result, concurrent);
    if (!row)
        return;
    add(&row->counters[into ? COUNTER_copied_in_bytes : COUNTER_copied_out_bytes], done->result, concurrent);
    add(&row->counters[into ? COUNTER_BYTES_WRITTEN : COUNTER_BYTES_READ], done->result, concurrent);
    u32 total = into ? TIME_F_WRITE_TIME : TIME_F_READ_TIME;
    u32 first = into ? TIME_F_WRITE_START_TIMESTAMP : TIME_F_READ_START_TIMESTAMP;
    u32 last = into ? TIME_F_WRITE_END_TIMESTAMP : TIME_F_READ_END_TIMESTAMP;
    if (into == (done->call->kind == KIND_WRITE))
        span(row, total, row->times[last], done->start_ns, done->end_ns, concurrent);
    stamp(row, first, last, done->start_ns, done->end_ns);
}

// copy_file_range, splice: from the first descriptor to the third; sendfile: from the second to the first.
INLINE void end_copy(struct thread *thread, struct pt_regs *registers, struct done *done) {
    u32 is_send = done->call->shape == SHAPE_SEND;
    // The kernel counts splice's bytes for neither side.
    if (!ERROR_OF(done->result) && CALL_NUMBER(registers) != SPLICE) {
        thread->seen_bytes[0] += done->result;
        thread->seen_bytes[1] += done->result;
    }
    struct cached from, into;
    __builtin_memset(&from, 0, sizeof(from));
    __builtin_memset(&into, 0, sizeof(into));
    refresh(thread, &from, is_send ? ARGUMENT_1(registers) : ARGUMENT_0(registers));
    refresh(thread, &into, is_send ? ARGUMENT_0(registers) : ARGUMENT_2(registers));
    if (!from.is_file && !into.is_file)
        return;
    count_call(thread, done, done->call->kind);
    done->row = from.is_file ? from.row : into.row;
    done->length = is_send ? ARGUMENT_3(registers) : ARGUMENT_4(registers);
    if (ERROR_OF(done->result))
        return;
    copied(thread, done, &from, 0);
    copied(thread, done, &into, 1);
}

// Calls that name files by path. An empty path means the descriptor before it.
INLINE void end_path(struct thread *thread, struct pt_regs *registers, struct done *done) {
    const volatile struct call *call = done->call;
    u32 counter = call->counter, is_rename = counter == COUNTER_RENAME_SOURCES;
    count_call(thread, done, call->kind);
    done->row = path_row(thread, registers, call->path, call->has_directory, done->result);
    if (!done->row && counter == COUNTER_STATS && call->has_directory && !ERROR_OF(done->result))
        done->row = file_of(thread, ARGUMENT_0(registers))->row;
    if (counter == COUNTER_unlinks && call->has_directory && (ARGUMENT_2(registers) & REMOVE_DIRECTORY))
        counter = COUNTER_rmdirs;
    count_on(thread, done, done->row, counter);
    if (is_rename)
        count_on(thread, done, path_row(thread, registers, call->second, call->has_directory, done->result),
                 COUNTER_RENAME_TARGETS);
}

INLINE void dispatch(struct thread *thread, struct pt_regs *registers, struct done *done) {
    u32 shape = done->call->shape;
    if (shape & SHAPE_TRANSFER)
        end_transfer(thread, registers, done, shape);
    else if (shape == SHAPE_DESCRIPTOR || shape == SHAPE_CONTROL)
        end_descriptor(thread, registers, done);
    else if (shape == SHAPE_PATH)
        end_path(thread, registers, done);
    else if (shape == SHAPE_OPEN)
        end_open(thread, done);
    else if (shape == SHAPE_CLOSE)
        end_close(thread, done);
    else if (shape == SHAPE_MAPPING)
        end_mapping(thread, registers, done);
    else if (shape == SHAPE_COPY || shape == SHAPE_SEND)
        end_copy(thread, registers, done);
    else if (shape == SHAPE_CLOSE_RANGE)
        descriptors_changed(thread);
    else if (shape == SHAPE_SUBMIT)
        end_submit(registers, done->result);
    else if (shape == SHAPE_COLLECT)
        end_collect(registers, done->result);
    else
        count_call(thread, done, done->call->kind);
}

INLINE void keep(const struct thread *thread, const struct done *done) {
    struct segment segment = {
        .image = thread->image,
        .tid = thread->tid,
        .row = done->row,
        .slot = done->call->slot,
        .offset = done->offset,
        .length = done->length,
        .result = done->result,
        .start_ns = done->start_ns,
        .duration_ns = done->end_ns - done->start_ns,
    };
    keep_segment(&segment);
}

SEC("tp_btf/sys_exit")
int call_ends(u64 *context) {
    struct pt_regs *registers = (struct pt_regs *)context[0];
    u64 number = CALL_NUMBER(registers);
    if (number >= CALL_NUMBERS)
        return 0;
    const volatile struct call *call = &calls[number];
    u32 slot = call->slot;
    if (!slot || slot >= SLOTS)
        return 0;
    struct thread *thread = thread_of(current_ids());
    if (!thread || !thread->start_ns)
        return 0;
    struct done done = {.call = call, .start_ns = thread->start_ns, .offset = -1, .length = -1};
    done.end_ns = now_ns();
    done.result = context[1];
    thread->start_ns = 0;
    if (call->shape == SHAPE_MAPPING && (ARGUMENT_3(registers) & ANONYMOUS_MAPPING))
        return 0;
    done.tally = &thread->calls[slot];
    done.tally->count++;
    if (ERROR_OF(done.result))
        done.tally->errors++;
    dispatch(thread, registers, &done);
    if (keeps_segments)
        keep(thread, &done);
    return 0;
}
