/* Part of calls.c: the kernel's own interfaces without a library, libaio's and io_uring's. */
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <stdint.h>

void libaio(void) {
    int file = DO(open, open("data", O_RDWR | O_CREAT | O_TRUNC, 0644));
    aio_context_t context = 0;
    truth_sure("io_setup", syscall(SYS_io_setup, 8, &context));
    for (int turn = 0; turn < 2; turn++) {
        struct iocb parts[4], *list[4];
        struct io_event ends[4];
        for (int i = 0; i < 4; i++) {
            parts[i] = (struct iocb){.aio_data = i, .aio_fildes = file, .aio_buf = (uintptr_t)buffer + 4096 * i,
                                     .aio_nbytes = 4096, .aio_offset = 4096 * i,
                                     .aio_lio_opcode = turn ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE};
            list[i] = &parts[i];
        }
        if (DO(io_submit, syscall(SYS_io_submit, context, 4, list)) != 4) exit(2);
        for (int got = 0; got < 4;) got += DO(io_getevents, syscall(SYS_io_getevents, context, 1, 4, ends, NULL));
        *(turn ? &truth->read : &truth->written) += 4 * 4096;
    }
    syscall(SYS_io_destroy, context);
    DO(close, close(file));
}

/* One operation after the other through a ring whose queues are mapped by hand. */
void ring(void) {
    int file = DO(open, open("data", O_RDWR | O_CREAT | O_TRUNC, 0644));
    struct io_uring_params given = {0};
    int uring = DO(io_uring_setup, syscall(SYS_io_uring_setup, 4, &given));
    size_t bytes = given.sq_off.array + given.sq_entries * sizeof(unsigned);
    size_t completions = given.cq_off.cqes + given.cq_entries * sizeof(struct io_uring_cqe);
    int both = PROT_READ | PROT_WRITE;
    char *sq = mmap(NULL, bytes, both, MAP_SHARED, uring, IORING_OFF_SQ_RING);
    char *cq = mmap(NULL, completions, both, MAP_SHARED, uring, IORING_OFF_CQ_RING);
    struct io_uring_sqe *entries = mmap(NULL, 4 * sizeof *entries, both, MAP_SHARED, uring, IORING_OFF_SQES);
    if (sq == MAP_FAILED || cq == MAP_FAILED || (void *)entries == MAP_FAILED) exit(2);
    for (int turn = 0; turn < 6; turn++) {
        int writes = turn < 3;
        entries[0] = (struct io_uring_sqe){.opcode = writes ? IORING_OP_WRITE : IORING_OP_READ, .fd = file,
                                           .addr = (uintptr_t)buffer, .len = 2000, .off = 2000 * (turn % 3)};
        unsigned tail = *(unsigned *)(sq + given.sq_off.tail);
        ((unsigned *)(sq + given.sq_off.array))[tail & *(unsigned *)(sq + given.sq_off.ring_mask)] = 0;
        __atomic_store_n((unsigned *)(sq + given.sq_off.tail), tail + 1, __ATOMIC_RELEASE);
        DO(io_uring_enter, syscall(SYS_io_uring_enter, uring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0));
        unsigned *head = (unsigned *)(cq + given.cq_off.head);
        struct io_uring_cqe *ends = (struct io_uring_cqe *)(cq + given.cq_off.cqes);
        int moved = ends[*head & *(unsigned *)(cq + given.cq_off.ring_mask)].res;
        __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
        *(writes ? &truth->ring_written : &truth->ring_read) += truth_sure("ring", moved);
    }
    close(uring); /* a ring is no file */
    DO(close, close(file));
}
