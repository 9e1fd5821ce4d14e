// What is done with an open file beside moving bytes: position, size, space, maps, syncs, locks, time.

#include "conformance.h"

#include <sys/file.h>
#include <sys/ioctl.h>

#define ONE(name, expression) CASE(name) { SAY(expression); }
#define PLAIN(name, expression) CASE(name) { SAY_PLAIN(expression); }

ONE(seek_set, lseek(data, 77, SEEK_SET))
ONE(seek_end, lseek(data, -1, SEEK_END))
ONE(seek_beyond, lseek(data, 1L << 40, SEEK_SET))
ONE(seek_before, lseek(data, -1, SEEK_SET))
ONE(seek_hole, lseek(data, 0, SEEK_HOLE))
ONE(seek_data_beyond, lseek(data, 20000, SEEK_DATA))
ONE(seek_whence, lseek(data, 0, 99))
ONE(seek_closed, lseek(77, 0, SEEK_SET))
ONE(seek_fifo, lseek(open("fifo", O_RDWR), 0, SEEK_CUR))
ONE(seek_negative, lseek(-1, 0, SEEK_SET))
ONE(ftruncate_negative, ftruncate(data, -1))
ONE(ftruncate_read_only, ftruncate(open("data", O_RDONLY), 0))
ONE(ftruncate_directory, ftruncate(dir, 0))
ONE(ftruncate_closed, ftruncate(77, 0))
ONE(fsync_file, fsync(data))
ONE(fsync_directory, fsync(dir))
ONE(fsync_closed, fsync(77))
ONE(fsync_fifo, fsync(open("fifo", O_RDWR)))
ONE(fdatasync_file, fdatasync(data))
ONE(fdatasync_closed, fdatasync(-5))
ONE(syncfs_closed, syncfs(77))
ONE(sync_range, sync_file_range(data, 0, 4096, 7))
ONE(sync_range_flags, sync_file_range(data, 0, 4096, 0x70))
ONE(sync_range_negative, sync_file_range(data, -1, 4096, 2))
ONE(fallocate_file, fallocate(data, 0, 0, 20000))
ONE(fallocate_mode, fallocate(data, 0x7000, 0, 10))
ONE(fallocate_length, fallocate(data, 0, 0, 0))
ONE(fallocate_directory, fallocate(dir, 0, 0, 10))
ONE(fallocate_closed, fallocate(77, 0, 0, 10))
PLAIN(posix_fallocate_file, posix_fallocate(data, 0, 20000))
PLAIN(posix_fallocate_closed, posix_fallocate(77, 0, 10))
PLAIN(posix_fallocate_length, posix_fallocate(data, 0, 0))
PLAIN(fadvise_file, posix_fadvise(data, 0, 0, POSIX_FADV_SEQUENTIAL))
PLAIN(fadvise_fifo, posix_fadvise(open("fifo", O_RDWR), 0, 0, POSIX_FADV_SEQUENTIAL))
PLAIN(fadvise_advice, posix_fadvise(data, 0, 0, 99))
PLAIN(fadvise_closed, posix_fadvise(77, 0, 0, 0))
ONE(readahead_file, readahead(data, 0, 4096))
ONE(readahead_directory, readahead(dir, 0, 4096))
ONE(readahead_closed, readahead(77, 0, 4096))
ONE(lock_file, flock(data, LOCK_EX))
ONE(lock_closed, flock(77, LOCK_EX))
ONE(number_of_bytes, ioctl(data, FIONREAD, &(int){0}))

CASE(errno_is_left_alone_by_success) {
  struct stat status;
  char buffer[10];
  errno = 1234;
  int fd = open("data", O_RDONLY);
  long sum = read(fd, buffer, 10) + pread(fd, buffer, 10, 5) + fstat(fd, &status) + stat("data", &status);
  sum += lseek(fd, 0, SEEK_SET) + access("data", F_OK) + close(fd) + close(dup(data)) + (long)write(data, "x", 1);
  FILE *stream = fopen("data", "r+");
  sum += fgetc(stream) == 'x';
  sum += fseek(stream, 10, SEEK_SET) + (long)fread(buffer, 1, 10, stream) + fflush(stream) + fclose(stream);
  sum += mkdir("made", 0755) + rename("made", "moved") + rmdir("moved") + fsync(data);
  printf("%ld, errno %d\n", sum, errno);
}

CASE(positions) {
  char buffer[100];
  int other = dup(data), again = open("data", O_RDONLY);
  SAY(read(data, buffer, 100));
  SAY(lseek(other, 0, SEEK_CUR));
  SAY(lseek(again, 0, SEEK_CUR));
  SAY(pread(data, buffer, 100, 5000));
  SAY(lseek(data, 0, SEEK_CUR));
  SAY(write(other, buffer, 50));
  SAY(lseek(data, 0, SEEK_CUR));
  pid_t child = fork();
  if (child == 0) _exit(read(data, buffer, 30) != 30);
  ended("child", child);
  SAY(lseek(data, 0, SEEK_CUR));
}

CASE(appending) {
  int fd = open("data", O_WRONLY | O_APPEND);
  SAY(lseek(fd, 0, SEEK_SET));
  SAY(write(fd, "12345", 5));
  SAY(lseek(fd, 0, SEEK_CUR));
  SAY(pwrite(fd, "12345", 5, 0));
  SAY(lseek(fd, 0, SEEK_END));
}

CASE(holes) {
  char buffer[10] = "";
  SAY(pwrite(data, "end", 3, 1 << 20));
  SAY(pread(data, buffer, 10, 1 << 19));
  SAY(buffer[0]);
  SAY(lseek(data, 0, SEEK_END));
  SAY(ftruncate(data, 5));
  SAY(pread(data, buffer, 10, 0));
  SAY(pread(data, buffer, 10, 100));
}

CASE(maps) {
  char *memory = mmap(NULL, 10000, PROT_READ | PROT_WRITE, MAP_SHARED, data, 0);
  SAY(memory != MAP_FAILED);
  SAY(memory[9999]);
  memory[0] = 'M';
  SAY(msync(memory, 10000, MS_SYNC));
  SAY(msync(memory + 1, 1, MS_SYNC));
  char first;
  SAY(pread(data, &first, 1, 0));
  SAY(first);
  SAY(mmap(NULL, 0, PROT_READ, MAP_SHARED, data, 0) == MAP_FAILED ? -1 : 0);
  SAY(mmap(NULL, 10, PROT_READ, MAP_SHARED, 77, 0) == MAP_FAILED ? -1 : 0);
  SAY(mmap(NULL, 10, PROT_READ, MAP_SHARED, dir, 0) == MAP_FAILED ? -1 : 0);
  SAY(mmap(NULL, 10, PROT_READ, MAP_SHARED, data, 1) == MAP_FAILED ? -1 : 0);
  SAY(munmap(memory, 10000));
  SAY(msync(memory, 10000, MS_SYNC));
}

CASE(map_beyond_end) {
  volatile char *memory = mmap(NULL, 1 << 20, PROT_READ, MAP_SHARED, data, 0);
  SAY(memory[1 << 19]);
}

CASE(file_descriptors_of_proc) {
  char name[64], target[300];
  snprintf(name, sizeof name, "/proc/self/fd/%d", data);
  ssize_t length = readlink(name, target, sizeof target);
  SAY(length > 5 && !memcmp(target + length - 5, "/data", 5));
  SAY(open(name, O_RDONLY));
  SAY(readlink("/proc/self/fd/77", target, sizeof target));
}
