// io_uring: requests that no system call shows, from their submission to their completion.
#pragma once
#include "calls.h"

struct kiocb {
    s64 ki_pos;
} COPIED;

struct io_rw {
    struct kiocb kiocb;
    u32 len;
} COPIED;

struct io_splice {
    u64 len;
    int splice_fd_in;
} COPIED;

struct io_uring_cqe {
    u64 user_data;
    s32 res;
    u32 flags;
} COPIED;

struct io_kiocb {
    struct file *file;
    u8 opcode;
} COPIED;


#define MORE_TO_COME 2  // IORING_CQE_F_MORE

// What a splice reads, by its descriptor: once it has ended nobody can tell.
INLINE void note_source(struct thread *thread, u64 request, struct request *begun) {
    if (!HAS_FIELD(((struct io_splice *)0)->splice_fd_in))
        return;
    struct cached from;
    __builtin_memset(&from, 0, sizeof(from));
    refresh(thread, &from, FIELD(io_splice, request, splice_fd_in));
    begun->from_row = from.row;
    begun->from_file = from.is_file;
    begun->length = FIELD(io_splice, request, len);
}

SEC("tp_btf/io_uring_submit_req")
int request_begins(u64 *context) {
    u64 request = context[0];
    u32 opcode = FIELD(io_kiocb, request, opcode);
    if (opcode >= OPCODES || !ring_calls[opcode].slot)
        return 0;
    u64 ids = current_ids();
    u32 tid = ids;
    struct thread *thread = thread_of(tid);
    if (!thread) {
        tid = ids >> 32;
        thread = thread_of(tid);
    }
    if (!thread)
        return 0;
    thread->concurrent = 1;  // requests end in other threads
    struct request begun = {.opcode = opcode, .tid = tid, .offset = -1, .length = -1, .start_ns = now_ns()};
    if (ring_calls[opcode].shape & SHAPE_TRANSFER) {
        begun.offset = FIELD(io_rw, request, kiocb.ki_pos);
        if (!(ring_calls[opcode].shape & SHAPE_VECTOR))
            begun.length = FIELD(io_rw, request, len);
    }
    if (ring_calls[opcode].shape == SHAPE_COPY)
        note_source(thread, request, &begun);
    if (map_update(&requests, &request, &begun, UPDATE_ANY))
        lose(LOST_REQUESTS);
    return 0;
}

INLINE void count_request_on_file(struct thread *thread, const struct request *begun, u64 file,
                                  const volatile struct call *call, s64 result, u64 end_ns, u32 *number) {
    struct cached found;
    __builtin_memset(&found, 0, sizeof(found));
    look_at(&found, thread->image, file);
    *number = found.row;
    if (!found.is_file)
        return;
    struct counted request = {found.row, begun->offset, begun->start_ns, end_ns, result};
    if (request.offset < 0)
        request.offset = FIELD(file, file, f_pos) - result;
    count_request(thread, call, &request);
}

// splice: from the file that was noted into the one of the request.
INLINE void count_splice(struct thread *thread, const struct request *begun, u64 file, struct done *done) {
    struct cached from, into;
    __builtin_memset(&from, 0, sizeof(from));
    __builtin_memset(&into, 0, sizeof(into));
    from.row = begun->from_row;
    from.is_file = begun->from_file;
    look_at(&into, thread->image, file);
    if (!from.is_file && !into.is_file)
        return;
    done->row = from.is_file ? from.row : into.row;
    u64 duration_ns = done->end_ns - done->start_ns;
    __sync_fetch_and_add(&done->tally->time_ns, duration_ns);
    time_it(thread, done->call->kind, duration_ns, 1);
    if (done->result < 0)
        return;
    copied(thread, done, &from, 0);
    copied(thread, done, &into, 1);
}

static __attribute__((noinline)) int request_ends(u64 request, s64 result, u32 flags) {
    struct request *begun = map_lookup(&requests, &request);
    if (!begun)
        return 0;
    struct request copy = *begun;
    if (!(flags & MORE_TO_COME))
        map_delete(&requests, &request);
    struct thread *thread = thread_of(copy.tid);
    const volatile struct call *call = &ring_calls[copy.opcode % OPCODES];
    u32 slot = call->slot, number = 0;
    if (!thread || slot >= SLOTS)
        return 0;
    u64 end_ns = now_ns();
    __sync_fetch_and_add(&thread->calls[slot].count, 1);
    if (result < 0)
        __sync_fetch_and_add(&thread->calls[slot].errors, 1);
    u64 file = call->shape == SHAPE_PATH || call->shape == SHAPE_OPEN ? 0 : (u64)FIELD(io_kiocb, request, file);
    if (file && call->shape == SHAPE_COPY) {
        struct done done = {.call = call, .tally = &thread->calls[slot], .start_ns = copy.start_ns, .end_ns = end_ns,
                            .result = result};
        count_splice(thread, &copy, file, &done);
        number = done.row;
    } else if (file) {
        count_request_on_file(thread, &copy, file, call, result, end_ns, &number);
    } else {
        __sync_fetch_and_add(&thread->calls[slot].time_ns, end_ns - copy.start_ns);
        time_it(thread, call->kind, end_ns - copy.start_ns, 1);
    }
    if (call->shape == SHAPE_OPEN || call->shape == SHAPE_CLOSE)
        descriptors_changed(thread);
    if (keeps_segments) {
        struct segment segment = {thread->image, copy.tid, number, slot, copy.offset, copy.length, result,
                                  copy.start_ns, end_ns - copy.start_ns};
        keep_segment(&segment);
    }
    return 0;
}

// Which of the two the kernel has is found by the loader.
SEC("tp_btf/io_uring_complete")
int request_ends_with_entry(u64 *context) {
    u64 entry = context[2];
    if (context[1])
        request_ends(context[1], FIELD(io_uring_cqe, entry, res), FIELD(io_uring_cqe, entry, flags));
    return 0;
}

SEC("tp_btf/io_uring_complete")
int request_ends_with_values(u64 *context) {
    if (context[1])
        request_ends(context[1], (s32)context[3], context[4]);
    return 0;
}
