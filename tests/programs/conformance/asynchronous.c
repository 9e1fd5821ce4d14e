// Asynchronous I/O: the kernel's, whose requests may be gone once they are submitted, and POSIX's.

#include "conformance.h"

#include <aio.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>

static char memory[8192];

static long submit(aio_context_t context, long count, struct iocb **requests) {
  return syscall(SYS_io_submit, context, count, requests);
}

static long collect(aio_context_t context, long least, long most, struct io_event *events) {
  return syscall(SYS_io_getevents, context, least, most, events, NULL);
}

static struct iocb request(int operation, int fd, size_t bytes, long offset) {
  return (struct iocb){.aio_lio_opcode = (unsigned short)operation, .aio_fildes = (unsigned)fd,
                       .aio_buf = (unsigned long)memory, .aio_nbytes = bytes, .aio_offset = offset};
}

static aio_context_t begun(void) {
  aio_context_t context = 0;
  SAY(syscall(SYS_io_setup, 64L, &context));
  return context;
}

CASE(requests_kept) {
  aio_context_t context = begun();
  struct iocb one = request(IOCB_CMD_PREAD, data, 100, 9950), two = request(IOCB_CMD_PWRITE, data, 10, 0);
  struct io_event events[4];
  SAY(submit(context, 2, (struct iocb *[]){&one, &two}));
  long got = collect(context, 2, 4, events);
  SAY(got);
  for (long i = 0; i < got; i++) SAY(events[i].res);
}

CASE(requests_unmapped) {
  aio_context_t context = begun();
  struct iocb *all = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct io_event events[4];
  all[0] = request(IOCB_CMD_PREAD, data, 100, 0), all[1] = request(IOCB_CMD_PWRITE, data, 10, 0);
  SAY(submit(context, 2, (struct iocb *[]){&all[0], &all[1]}));
  SAY(munmap(all, 4096));
  long got = collect(context, 2, 4, events);
  SAY(got);
  for (long i = 0; i < got; i++) SAY(events[i].res);
}

CASE(requests_overwritten) {
  aio_context_t context = begun();
  struct io_event events[4];
  struct iocb one;
  for (int i = 0; i < 4; i++) {
    one = request(IOCB_CMD_PREAD, data, 100, i * 100);
    SAY(submit(context, 1, (struct iocb *[]){&one}));
  }
  memset(&one, 0x7f, sizeof one);
  SAY(collect(context, 4, 4, events));
}

CASE(requests_refused) {
  aio_context_t context = begun();
  struct iocb one = request(IOCB_CMD_PREAD, data, 100, 0), wrong = request(99, data, 100, 0);
  struct io_event events[4];
  SAY_BAD(submit(context, 1, (struct iocb **)p));
  SAY_BAD(submit(context, 1, (struct iocb *[]){(struct iocb *)p}));
  SAY_BAD(submit(context, -1, (struct iocb **)p));
  SAY_BAD(submit(0, 1, (struct iocb **)p));
  SAY_BAD(submit(context, 2, (struct iocb *[]){&one, (struct iocb *)p}));
  SAY(submit(context, 2, (struct iocb *[]){&one, &wrong}));
  SAY(submit(context, 0, NULL));
  SAY(collect(context, 1, 1, events));
  SAY_BAD(collect(context, 1, 1, (struct io_event *)(p == bad[4] ? bad[2] : p)));
  SAY(collect(0, 0, 1, events));
  SAY(collect(context, 5, 1, events));
  SAY(syscall(SYS_io_destroy, context));
  SAY(syscall(SYS_io_destroy, context));
}

// More requests than any table of them has room for, whose results are never asked for.
CASE(requests_abandoned) {
  aio_context_t many = 0;
  SAY(syscall(SYS_io_setup, 10000L, &many));
  for (int i = 0; i < 150; i++) {
    struct iocb all[64], *addresses[64];
    for (int j = 0; j < 64; j++) all[j] = request(IOCB_CMD_PREAD, data, 10, j), addresses[j] = &all[j];
    if (submit(many, 64, addresses) != 64) printf("failed\n");
  }
  SAY(syscall(SYS_io_destroy, many));
  aio_context_t context = begun();
  struct io_event events[4];
  struct iocb one = request(IOCB_CMD_PREAD, data, 100, 0);
  SAY(submit(context, 1, (struct iocb *[]){&one}));
  SAY(collect(context, 1, 1, events));
  SAY(events[0].res);
}

CASE(posix_requests) {
  struct aiocb one = {.aio_fildes = data, .aio_buf = memory, .aio_nbytes = 100, .aio_offset = 9950};
  SAY(aio_read(&one));
  SAY(aio_suspend((const struct aiocb *[]){&one}, 1, NULL));
  SAY_PLAIN(aio_error(&one));
  SAY(aio_return(&one));
  one.aio_fildes = 77;
  SAY(aio_write(&one));
  aio_suspend((const struct aiocb *[]){&one}, 1, NULL);
  SAY_PLAIN(aio_error(&one));
  SAY(aio_return(&one));
  SAY(aio_fsync(7777, &one));
  one.aio_fildes = data, one.aio_lio_opcode = LIO_WRITE, one.aio_offset = 0;
  SAY(lio_listio(LIO_WAIT, (struct aiocb *[]){&one, NULL}, 2, NULL));
  SAY(aio_return(&one));
  SAY(lio_listio(7777, (struct aiocb *[]){&one}, 1, NULL));
}

static sem_t done;

static void gone(union sigval value) {
  struct aiocb *block = value.sival_ptr;
  (void)!aio_return(block);
  munmap(block, 4096);
  sem_post(&done);
}

// The one that is told of the end may have freed the request before the call that made it is back.
CASE(posix_request_freed) {
  sem_init(&done, 0, 0);
  for (int i = 0; i < 200; i++) {
    struct aiocb *block = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *block = (struct aiocb){.aio_fildes = data, .aio_buf = memory, .aio_nbytes = 1,
                            .aio_sigevent = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = gone,
                                             .sigev_value.sival_ptr = block}};
    if (aio_read(block)) printf("failed\n");
    sem_wait(&done);
  }
  puts("done");
}
