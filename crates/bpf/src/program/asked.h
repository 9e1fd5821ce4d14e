// libaio: requests that one call submits and another collects. Each counts once its result is collected.
#pragma once
#include "paths.h"

// Of one call. What is beyond is lost, and counted as that.
enum { ASKED_AT_ONCE = 1024 };

// struct iocb and struct io_event of linux/aio_abi.h, as far as they are read: the kernel's interface.
struct asked_block {
    u64 data;
    u64 key_and_flags;
    u16 opcode;
    u16 priority;
    u32 descriptor;
    u64 memory;
    u64 bytes;
    s64 offset;
};

struct asked_event {
    u64 data;
    u64 address;
    s64 result;
    s64 second_result;
};

// One request that is about to be submitted: another thread may collect it before the call returns.
__attribute__((noinline)) int note_request(u64 address) {
    struct thread *thread = thread_of(current_ids());
    struct asked_block block;
    if (!thread || read_user(&block, sizeof(block), (void *)address))
        return 0;
    u32 opcode = block.opcode;
    if (opcode >= ASKED_OPCODES || !asked_calls[opcode].slot)
        return 0;
    struct cached *file = file_of(thread, block.descriptor);
    struct asked_key key = {.address = address, .tgid = thread->tgid};
    struct asked begun = {
        .start_ns = now_ns(),
        .offset = block.offset,
        .length = -1,
        .opcode = opcode,
        .image = thread->image,
        .row = file->row,
        .is_file = file->is_file,
    };
    if ((asked_calls[opcode].shape & SHAPE_TRANSFER) && !(asked_calls[opcode].shape & SHAPE_VECTOR))
        begun.length = block.bytes;
    if (map_lookup(&asked, &key))
        thread->uncollected++;
    if (map_update(&asked, &key, &begun, UPDATE_ANY))
        lose(LOST_REQUESTS);
    return 0;
}

INLINE void count_asked(struct thread *thread, const struct asked *begun, s64 result) {
    const volatile struct call *call = &asked_calls[begun->opcode % ASKED_OPCODES];
    u32 slot = call->slot;
    if (slot >= SLOTS)
        return;
    u64 end_ns = now_ns();
    thread->calls[slot].count++;
    if (result < 0)
        thread->calls[slot].errors++;
    if (begun->is_file) {
        struct counted request = {begun->row, begun->offset, begun->start_ns, end_ns, result};
        count_request(thread, call, &request);
    }
    if (keeps_segments) {
        struct segment segment = {thread->image, thread->tid, begun->row, slot, begun->offset, begun->length, result,
                                  begun->start_ns, end_ns - begun->start_ns};
        keep_segment(&segment);
    }
}

// One result that was collected.
__attribute__((noinline)) int count_result(u64 address) {
    struct thread *thread = thread_of(current_ids());
    struct asked_event event;
    if (!thread || read_user(&event, sizeof(event), (void *)address))
        return 0;
    struct asked_key key = {.address = event.address, .tgid = thread->tgid};
    struct asked *begun = map_lookup(&asked, &key);
    if (!begun)
        return 0;
    struct asked copy = *begun;
    map_delete(&asked, &key);
    count_asked(thread, &copy, event.result);
    return 0;
}

// One request that the kernel did not take.
__attribute__((noinline)) int forget_request(u64 address) {
    struct thread *thread = thread_of(current_ids());
    if (!thread)
        return 0;
    struct asked_key key = {.address = address, .tgid = thread->tgid};
    map_delete(&asked, &key);
    return 0;
}

INLINE u64 pointer_at(u64 array, u64 place) {
    u64 found = 0;
    read_user(&found, sizeof(found), (void *)(array + 8 * place));
    return found;
}

// Loops are functions of their own, which the kernel verifies once and not for each way that leads to them.

__attribute__((noinline)) int note_requests(u64 requests, u64 count) {
    for (u32 place = 0; place < ASKED_AT_ONCE && place < count; place++)
        note_request(pointer_at(requests, place));
    if (count > ASKED_AT_ONCE)
        lose(LOST_REQUESTS);
    return 0;
}

__attribute__((noinline)) int forget_requests(u64 requests, u64 count) {
    for (u32 place = 0; place < ASKED_AT_ONCE && place < count; place++)
        forget_request(pointer_at(requests, place));
    return 0;
}

__attribute__((noinline)) int count_results(u64 events, u64 count) {
    for (u32 place = 0; place < ASKED_AT_ONCE && place < count; place++)
        count_result(events + place * sizeof(struct asked_event));
    if (count > ASKED_AT_ONCE)
        lose(LOST_REQUESTS);
    return 0;
}

// io_submit(context, count, requests)
INLINE void end_submit(struct pt_regs *registers, s64 taken) {
    u64 count = ARGUMENT_1(registers), known = taken < 0 ? 0 : taken;
    if (known < count)
        forget_requests(ARGUMENT_2(registers) + 8 * known, count - known);
}

// io_getevents(context, least, most, events, ...)
INLINE void end_collect(struct pt_regs *registers, s64 count) {
    if (count > 0)
        count_results(ARGUMENT_3(registers), count);
}
