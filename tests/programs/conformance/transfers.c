// Bytes: read and write in all forms, short ones, refused ones, between descriptors.

#include "conformance.h"

#include <limits.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#define ONE(name, expression) CASE(name) { SAY(expression); }

static char memory[20000];
static struct iovec two[] = {{memory, 10}, {memory + 100, 20}};

ONE(read_whole, read(data, memory, sizeof memory))
ONE(read_nothing, read(data, memory, 0))
ONE(read_directory, read(dir, memory, 10))
ONE(read_closed, read(77, memory, 10))
ONE(read_negative, read(-1, memory, 10))
ONE(read_write_only, read(open("data", O_WRONLY), memory, 10))
ONE(read_enormous, read(data, memory, SIZE_MAX))
ONE(read_path_only, read(open("data", O_PATH), memory, 10))
ONE(write_closed, write(77, memory, 10))
ONE(write_read_only, write(open("data", O_RDONLY), memory, 10))
ONE(write_nothing, write(data, memory, 0))
ONE(pread_negative, pread(data, memory, 10, -1))
ONE(pread_beyond, pread(data, memory, 10, 1L << 40))
ONE(pread_fifo, pread(open("fifo", O_RDWR), memory, 10, 0))
ONE(pwrite_negative, pwrite(data, memory, 10, -1))
ONE(pwrite_far, pwrite(data, memory, 10, LONG_MAX - 5))
ONE(readv_two, readv(data, two, 2))
ONE(readv_none, readv(data, two, 0))
ONE(readv_negative, readv(data, two, -1))
ONE(readv_many, readv(data, two, IOV_MAX + 1))
ONE(writev_two, writev(data, two, 2))
ONE(writev_negative, writev(data, two, -1))
ONE(preadv_two, preadv(data, two, 2, 9990))
ONE(preadv_negative, preadv(data, two, 2, -1))
ONE(preadv2_position, preadv2(data, two, 2, -1, 0))
ONE(preadv2_flags, preadv2(data, two, 2, 0, 0x7000))
ONE(pwritev_two, pwritev(data, two, 2, 100))
ONE(pwritev2_append, pwritev2(data, two, 2, 0, 0x10))
ONE(pwritev2_sync, pwritev2(data, two, 2, -1, 0x4))
ONE(copy_whole, copy_file_range(data, &(off_t){0}, open("new", O_RDWR | O_CREAT, 0644), NULL, 20000, 0))
ONE(copy_flags, copy_file_range(data, NULL, data, NULL, 10, 77))
ONE(copy_directory, copy_file_range(dir, NULL, data, NULL, 10, 0))
ONE(copy_overlap, copy_file_range(data, &(off_t){0}, data, &(off_t){5}, 10, 0))
ONE(copy_closed, copy_file_range(77, NULL, data, NULL, 10, 0))
ONE(sendfile_file, sendfile(open("new", O_RDWR | O_CREAT, 0644), data, &(off_t){9000}, 20000))
ONE(sendfile_negative, sendfile(open("new", O_RDWR | O_CREAT, 0644), data, &(off_t){-1}, 10))
ONE(sendfile_closed, sendfile(77, data, NULL, 10))
ONE(splice_files, splice(data, NULL, data, NULL, 10, 0))
ONE(splice_flags, splice(data, NULL, data, NULL, 10, 0x7000))
ONE(number_read, syscall(SYS_read, data, memory, 10L))
ONE(number_write, syscall(SYS_write, 77L, memory, 10L))
ONE(number_pread, syscall(SYS_pread64, data, memory, 10L, 9995L))
ONE(number_unknown, syscall(100000L))
ONE(number_negative, syscall(-1L))
ONE(number_lseek, syscall(SYS_lseek, data, 1L << 40, (long)SEEK_SET))
ONE(number_close, syscall(SYS_close, 77L))
ONE(number_dup, syscall(SYS_dup2, data, data))
ONE(number_fcntl, syscall(SYS_fcntl, data, (long)F_GETFL) & O_ACCMODE)
ONE(number_openat2, syscall(SYS_openat2, dir, "../data", &(struct open_how){.flags = O_RDONLY, .resolve = RESOLVE_BENEATH}, sizeof(struct open_how)))
ONE(number_openat2_plain, syscall(SYS_openat2, dir, "inner", &(struct open_how){.flags = O_RDONLY}, sizeof(struct open_how)))
ONE(number_mmap, syscall(SYS_mmap, 0L, 4096L, (long)PROT_READ, (long)MAP_SHARED, data, 0L) != -1)
ONE(number_getpid, syscall(SYS_getpid) == getpid())

CASE(splice_pipe) {
  int ends[2];
  SAY(pipe(ends));
  off_t at = 100;
  SAY(splice(data, &at, ends[1], NULL, 500, 0));
  SAY(at);
  SAY(splice(ends[0], NULL, data, &at, 500, 0));
  SAY(at);
  SAY(splice(data, &at, ends[1], &at, 10, 0));
}

CASE(sendfile_position) {
  int to = open("new", O_RDWR | O_CREAT, 0644);
  off_t at = 50;
  SAY(sendfile(to, data, &at, 100));
  SAY(at);
  SAY(lseek(data, 0, SEEK_CUR));
  SAY(sendfile(to, data, NULL, 100));
  SAY(lseek(data, 0, SEEK_CUR));
  SAY(lseek(to, 0, SEEK_CUR));
}

// Reading into the vector itself, and into memory that ends early.
CASE(read_over_vector) {
  struct iovec parts[2] = {{parts, sizeof parts}, {memory, 10}};
  SAY(readv(data, parts, 2));
  char *end = (char *)fenced(4096) + 4096 - 10;
  SAY(read(data, end, 100));
  SAY(pread(data, end, 100, 0));
  SAY(lseek(data, 0, SEEK_CUR));
}

CASE(pipes) {
  int ends[2];
  signal(SIGPIPE, SIG_IGN);
  SAY(pipe2(ends, O_NONBLOCK));
  SAY(read(ends[0], memory, 10));
  SAY(write(ends[1], memory, 10));
  SAY(read(ends[0], memory, 100));
  SAY(read(ends[1], memory, 10));
  SAY(lseek(ends[0], 0, SEEK_CUR));
  SAY(fsync(ends[0]));
  SAY(close(ends[1]));
  SAY(read(ends[0], memory, 10));
  SAY(pipe2(ends, 0));
  SAY(close(ends[0]));
  SAY(write(ends[1], memory, 10));
  signal(SIGPIPE, SIG_DFL);
  SAY(write(ends[1], memory, 10));
}

CASE(sockets) {
  int ends[2];
  SAY(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends));
  SAY(write(ends[0], memory, 10));
  SAY(readv(ends[1], two, 2));
  SAY(read(ends[1], memory, 10));
  SAY(pread(ends[1], memory, 10, 0));
  SAY(sendfile(ends[0], data, NULL, 100));
  SAY(recv(ends[1], memory, 1000, 0));
}

CASE(events) {
  int fd = eventfd(3, EFD_NONBLOCK);
  long value = 0;
  SAY(read(fd, &value, 8));
  SAY(value);
  SAY(read(fd, &value, 8));
  SAY(write(fd, &value, 4));
}

CASE(too_large) {
  signal(SIGXFSZ, SIG_IGN);
  SAY(setrlimit(RLIMIT_FSIZE, &(struct rlimit){12000, 12000}));
  SAY(pwrite(data, memory, 4000, 10000));
  SAY(pwrite(data, memory, 4000, 12000));
  SAY(ftruncate(data, 20000));
  signal(SIGXFSZ, SIG_DFL);
  SAY(pwrite(data, memory, 4000, 12000));
}

CASE(full) {
  int fd = open("/dev/full", O_RDWR);
  SAY(write(fd, memory, 10));
  SAY(read(fd, memory, 10));
  FILE *stream = fopen("/dev/full", "w");
  SAY(fprintf(stream, "text"));
  SAY(fflush(stream));
  SAY(fclose(stream));
}
