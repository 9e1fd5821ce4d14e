/* The interfaces of asynchronous I/O, each with the same requests under way at once: "data" in the current directory
 * is written and read again. Says each request, what the kernel counts of it in /proc/self/io, and calls and bytes.
 *
 * Usage: requests INTERFACE [direct] */
#define _GNU_SOURCE
#include "truth.h"

#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <libaio.h>
#include <liburing.h>
#include <stdint.h>
#include <sys/syscall.h>

#define PARTS 8
#define BLOCK 4096
#define STRIDE (3 * BLOCK)
#define SYS_IO_PGETEVENTS 333

struct part {
    int writes;
    size_t bytes;
    long offset;
    char *memory;
};

static void moved(const struct part *part, long bytes) {
    if (bytes != (long)part->bytes) {
        fprintf(stderr, "%ld of %zu bytes moved\n", bytes, part->bytes);
        exit(2);
    }
    *(part->writes ? &truth->written : &truth->read) += bytes;
    printf("%s %ld %zu\n", part->writes ? "write" : "read", part->offset, part->bytes);
}

static const struct part *part_at(const struct part *parts, long offset) {
    while (parts->offset != offset) parts++;
    return parts;
}

/* libaio's structures are the kernel's. */
static void prepare(struct iocb *all, struct iocb **list, int file, const struct part *parts) {
    for (int i = 0; i < PARTS; i++) {
        const struct part *part = &parts[i];
        (part->writes ? io_prep_pwrite : io_prep_pread)(&all[i], file, part->memory, part->bytes, part->offset);
        all[i].data = (void *)part;
        list[i] = &all[i];
    }
}

static void came(const struct io_event *events, long count) {
    for (long i = 0; i < count; i++) moved(events[i].data, (long)events[i].res);
}

static void libaio(int file, const struct part *parts) {
    io_context_t context = NULL;
    struct iocb all[PARTS], *list[PARTS];
    struct io_event events[PARTS];
    prepare(all, list, file, parts);
    truth_sure("io_setup", io_setup(PARTS, &context));
    for (int done = 0; done < PARTS;) done += DO(io_submit, io_submit(context, PARTS - done, list + done));
    for (long got = 0, now; got < PARTS / 2; got += now) {
        now = DO(io_getevents, io_getevents(context, 1, 1, events, NULL));
        came(events, now);
    }
    for (long got = PARTS / 2, now; got < PARTS; got += now) {
        now = DO(io_pgetevents, io_pgetevents(context, 1, PARTS, events, NULL, NULL));
        came(events, now);
    }
    io_destroy(context);
}

static void by_number(int file, const struct part *parts) {
    io_context_t context = NULL;
    struct iocb all[PARTS], *list[PARTS];
    struct io_event events[PARTS];
    prepare(all, list, file, parts);
    truth_sure("io_setup", syscall(SYS_io_setup, PARTS, &context));
    for (int done = 0; done < PARTS;)
        done += DO(io_submit, syscall(SYS_io_submit, context, PARTS - done, list + done));
    for (long got = 0, now; got < PARTS / 2; got += now) {
        now = DO(io_getevents, syscall(SYS_io_getevents, context, 1, 1, events, NULL));
        came(events, now);
    }
    for (long got = PARTS / 2, now; got < PARTS; got += now) {
        now = DO(io_pgetevents, syscall(SYS_IO_PGETEVENTS, context, 1, PARTS, events, NULL, NULL));
        came(events, now);
    }
    syscall(SYS_io_destroy, context);
}

/* Submits and ends without having asked what became of it. */
static void abandoned(int file, const struct part *parts) {
    io_context_t context = NULL;
    struct iocb all[PARTS], *list[PARTS];
    prepare(all, list, file, parts);
    truth_sure("io_setup", io_setup(PARTS, &context));
    if (DO(io_submit, io_submit(context, PARTS, list)) != PARTS) exit(2);
}

static struct aiocb posix_block(int file, const struct part *part) {
    return (struct aiocb){.aio_fildes = file, .aio_buf = part->memory, .aio_nbytes = part->bytes,
                          .aio_offset = part->offset, .aio_lio_opcode = part->writes ? LIO_WRITE : LIO_READ};
}

static void posix_ends(struct aiocb *blocks, const struct part *parts) {
    for (int i = 0; i < PARTS; i++) {
        const struct aiocb *list[] = {&blocks[i]};
        while (aio_error(&blocks[i]) == EINPROGRESS) aio_suspend(list, 1, NULL);
        moved(&parts[i], DO(aio_return, aio_return(&blocks[i])));
    }
}

static void posix(int file, const struct part *parts) {
    struct aiocb blocks[PARTS];
    for (int i = 0; i < PARTS; i++) {
        blocks[i] = posix_block(file, &parts[i]);
        if (parts[i].writes)
            DO(aio_write, aio_write(&blocks[i]));
        else
            DO(aio_read, aio_read(&blocks[i]));
    }
    posix_ends(blocks, parts);
}

static void list(int file, const struct part *parts) {
    struct aiocb blocks[PARTS], *all[PARTS + 1] = {NULL};
    for (int i = 0; i < PARTS; i++) {
        blocks[i] = posix_block(file, &parts[i]);
        all[i + 1] = &blocks[i];
    }
    DO(lio_listio, lio_listio(LIO_NOWAIT, all, PARTS + 1, NULL));
    posix_ends(blocks, parts);
}

static void liburing(int file, const struct part *parts) {
    struct io_uring ring;
    truth_sure("io_uring_queue_init", io_uring_queue_init(PARTS, &ring, 0));
    for (int i = 0; i < PARTS; i++) {
        struct io_uring_sqe *entry = io_uring_get_sqe(&ring);
        if (parts[i].writes)
            io_uring_prep_write(entry, file, parts[i].memory, parts[i].bytes, parts[i].offset);
        else
            io_uring_prep_read(entry, file, parts[i].memory, parts[i].bytes, parts[i].offset);
        io_uring_sqe_set_data(entry, (void *)&parts[i]);
    }
    if (io_uring_submit(&ring) != PARTS) exit(2);
    for (int i = 0; i < PARTS; i++) {
        struct io_uring_cqe *end;
        truth_sure("io_uring_wait_cqe", io_uring_wait_cqe(&ring, &end));
        moved(io_uring_cqe_get_data(end), end->res);
        io_uring_cqe_seen(&ring, end);
    }
    io_uring_queue_exit(&ring);
}

static void *queue(int ring, size_t bytes, off_t which) {
    void *found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, which);
    if (found == MAP_FAILED) exit(2);
    return found;
}

static void ring_by_number(int file, const struct part *parts) {
    struct io_uring_params given = {0};
    int ring = truth_sure("io_uring_setup", syscall(SYS_io_uring_setup, PARTS, &given));
    char *sq = queue(ring, given.sq_off.array + given.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
    char *cq = queue(ring, given.cq_off.cqes + given.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
    struct io_uring_sqe *entries = queue(ring, given.sq_entries * sizeof *entries, IORING_OFF_SQES);
    for (unsigned i = 0; i < PARTS; i++) {
        entries[i] = (struct io_uring_sqe){.opcode = parts[i].writes ? IORING_OP_WRITE : IORING_OP_READ, .fd = file,
                                           .addr = (uintptr_t)parts[i].memory, .len = parts[i].bytes,
                                           .off = parts[i].offset, .user_data = parts[i].offset};
        ((unsigned *)(sq + given.sq_off.array))[i] = i;
    }
    __atomic_store_n((unsigned *)(sq + given.sq_off.tail), PARTS, __ATOMIC_RELEASE);
    truth_sure("enter", syscall(SYS_io_uring_enter, ring, PARTS, PARTS, IORING_ENTER_GETEVENTS, NULL, 0));
    struct io_uring_cqe *ends = (struct io_uring_cqe *)(cq + given.cq_off.cqes);
    for (int i = 0; i < PARTS; i++) moved(part_at(parts, (long)ends[i].user_data), ends[i].res);
    close(ring);
}

/* Each part through a pipe: into the file, and out of it. */
static void spliced(int file, const struct part *parts) {
    struct io_uring ring;
    int pipes[2];
    truth_sure("io_uring_queue_init", io_uring_queue_init(PARTS, &ring, 0));
    truth_sure("pipe", pipe(pipes));
    for (int i = 0; i < PARTS; i++) {
        struct io_uring_sqe *entry = io_uring_get_sqe(&ring);
        struct io_uring_cqe *end;
        if (parts[i].writes && write(pipes[1], parts[i].memory, parts[i].bytes) != (ssize_t)parts[i].bytes) exit(2);
        if (parts[i].writes)
            io_uring_prep_splice(entry, pipes[0], -1, file, parts[i].offset, parts[i].bytes, 0);
        else
            io_uring_prep_splice(entry, file, parts[i].offset, pipes[1], -1, parts[i].bytes, 0);
        if (io_uring_submit(&ring) != 1) exit(2);
        truth_sure("io_uring_wait_cqe", io_uring_wait_cqe(&ring, &end));
        moved(&parts[i], end->res);
        io_uring_cqe_seen(&ring, end);
        if (!parts[i].writes && read(pipes[0], parts[i].memory, parts[i].bytes) != (ssize_t)parts[i].bytes) exit(2);
    }
    io_uring_queue_exit(&ring);
}

static const struct {
    const char *name;
    void (*run)(int, const struct part *);
} interfaces[] = {
    {"libaio", libaio}, {"by_number", by_number}, {"abandoned", abandoned}, {"posix", posix},
    {"list", list},     {"liburing", liburing},   {"ring_by_number", ring_by_number}, {"spliced", spliced},
};

static long kernel(const char *name) {
    char text[512] = "";
    int counts = open("/proc/self/io", O_RDONLY);
    if (read(counts, text, sizeof text - 1) <= 0) exit(2);
    close(counts);
    return atol(strchr(strstr(text, name), ' '));
}

int main(int count, char **words) {
    truth_begin();
    int flags = O_RDWR | O_CREAT | (count > 2 ? O_DIRECT : 0);
    char *memory = aligned_alloc(BLOCK, PARTS * STRIDE);
    memset(memory, 7, PARTS * STRIDE);
    for (unsigned i = 0; i < sizeof interfaces / sizeof *interfaces; i++) {
        if (count < 2 || strcmp(interfaces[i].name, words[1]) != 0) continue;
        int file = DO(open, open("data", flags, 0644));
        for (int writes = 1; writes >= 0; writes--) {
            struct part parts[PARTS];
            for (int part = 0; part < PARTS; part++)
                parts[part] = (struct part){writes, (1 + part % 3) * BLOCK, part * 5 % PARTS * STRIDE, memory + part * STRIDE};
            long before = kernel(writes ? "\nwrite_bytes" : "\nread_bytes");
            interfaces[i].run(file, parts);
            printf("%s %ld\n", writes ? "kernel_wrote" : "kernel_read", kernel(writes ? "\nwrite_bytes" : "\nread_bytes") - before);
        }
        DO(close, close(file));
        fflush(stdout);
        truth_print();
        return 0;
    }
    fprintf(stderr, "no such interface\n");
    return 2;
}
