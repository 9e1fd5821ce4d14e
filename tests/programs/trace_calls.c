// Calls the functions that the tracer follows, each a known number of times, and prints what it did as JSON:
// the truth that the tracer's counts are held against. It counts nothing with the tracer's means.

#define _GNU_SOURCE
#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __pread_chk(int, void *, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void *, size_t, off64_t, size_t);
int __open_2(const char *, int);
int __open64_2(const char *, int);
int __openat_2(int, const char *, int);
int __openat64_2(int, const char *, int);

static char truth[1 << 16];
static char buffer[1 << 16];
static long bytes_read, bytes_written;

static void say(const char *name, int count) {
  char line[128];
  snprintf(line, sizeof line, "%s[\"%s\", %d]", truth[0] ? ", " : "", name, count);
  strcat(truth, line);
}

#define CHECK(condition)                                      \
  do {                                                        \
    if (!(condition)) {                                       \
      fprintf(stderr, "line %d: %s: %m\n", __LINE__, #condition); \
      exit(1);                                                \
    }                                                         \
  } while (0)

// One call, noted under its name.
#define DO(name, call, expected)     \
  do {                               \
    long got_ = (long)(call);        \
    CHECK(got_ == (long)(expected)); \
    say(name, 1);                    \
  } while (0)
#define READ(name, call, bytes) do { DO(name, call, bytes); bytes_read += (bytes); } while (0)
#define WRITE(name, call, bytes) do { DO(name, call, bytes); bytes_written += (bytes); } while (0)
#define OPEN(name, call)             \
  ({                                 \
    int fd_ = (call);                \
    CHECK(fd_ >= 0);                 \
    say(name, 1);                    \
    fd_;                             \
  })

static int closes;
static void shut(int fd) {
  CHECK(close(fd) == 0);
  closes++;
}

static void transfers(void) {
  struct iovec parts[2] = {{buffer, 100}, {buffer + 100, 200}};
  int fd = OPEN("open", open("data", O_RDWR | O_CREAT | O_TRUNC, 0644));
  WRITE("write", write(fd, buffer, 5000), 5000);
  WRITE("pwrite", pwrite(fd, buffer, 1000, 5000), 1000);
  WRITE("pwrite64", pwrite64(fd, buffer, 1000, 6000), 1000);
  WRITE("writev", writev(fd, parts, 2), 300);
  WRITE("pwritev", pwritev(fd, parts, 2, 0), 300);
  WRITE("pwritev64", pwritev64(fd, parts, 2, 0), 300);
  WRITE("pwritev2", pwritev2(fd, parts, 2, 0, 0), 300);
  WRITE("pwritev64v2", pwritev64v2(fd, parts, 2, -1, 0), 300);
  DO("fsync", fsync(fd), 0);
  DO("fdatasync", fdatasync(fd), 0);
  DO("sync_file_range", sync_file_range(fd, 0, 4096, SYNC_FILE_RANGE_WRITE), 0);
  DO("lseek", lseek(fd, 10, SEEK_SET), 10);
  DO("lseek64", lseek64(fd, 0, SEEK_SET), 0);
  READ("read", read(fd, buffer, 100), 100);
  READ("__read_chk", __read_chk(fd, buffer, 100, sizeof buffer), 100);
  READ("pread", pread(fd, buffer, 100, 0), 100);
  READ("pread64", pread64(fd, buffer, 100, 0), 100);
  READ("__pread_chk", __pread_chk(fd, buffer, 100, 0, sizeof buffer), 100);
  READ("__pread64_chk", __pread64_chk(fd, buffer, 100, 0, sizeof buffer), 100);
  READ("readv", readv(fd, parts, 2), 300);
  READ("preadv", preadv(fd, parts, 2, 0), 300);
  READ("preadv64", preadv64(fd, parts, 2, 0), 300);
  READ("preadv2", preadv2(fd, parts, 2, 0, 0), 300);
  READ("preadv64v2", preadv64v2(fd, parts, 2, 0, 0), 300);
  DO("ftruncate", ftruncate(fd, 8000), 0);
  DO("ftruncate64", ftruncate64(fd, 9000), 0);
  DO("fallocate", fallocate(fd, 0, 0, 9000), 0);
  DO("fallocate64", fallocate64(fd, 0, 0, 9000), 0);
  DO("posix_fallocate", posix_fallocate(fd, 0, 9000), 0);
  DO("posix_fadvise", posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), 0);
  DO("posix_fadvise64", posix_fadvise64(fd, 0, 0, POSIX_FADV_NORMAL), 0);
  char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(map != MAP_FAILED);
  say("mmap", 1);
  DO("msync", msync(map, 4096, MS_SYNC), 0);
  CHECK(munmap(map, 4096) == 0);
  shut(fd);
}

static void copies(void) {
  int from = OPEN("open64", open64("data", O_RDONLY)), to = OPEN("creat", creat("copy", 0644));
  off64_t in = 1000, out = 0;
  DO("copy_file_range", copy_file_range(from, &in, to, &out, 2000, 0), 2000);
  off_t at = 0;
  DO("sendfile", sendfile(to, from, &at, 3000), 3000);
  bytes_read += 5000, bytes_written += 5000;
  int ends[2];
  CHECK(pipe(ends) == 0);
  DO("splice", splice(from, NULL, ends[1], NULL, 500, 0), 500);
  DO("splice", splice(ends[0], NULL, to, NULL, 500, 0), 500);
  bytes_read += 500, bytes_written += 500;
  CHECK(write(ends[1], "pipe", 4) == 4 && read(ends[0], buffer, 4) == 4);
  CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
  shut(from);
  shut(to);
}

static void openings(void) {
  char name[] = "made-XXXXXX", again[] = "made-XXXXXX.txt", third[] = "made-XXXXXX";
  shut(OPEN("openat", openat(AT_FDCWD, "data", O_RDONLY)));
  shut(OPEN("openat64", openat64(AT_FDCWD, "data", O_RDONLY)));
  shut(OPEN("__open_2", __open_2("data", O_RDONLY)));
  shut(OPEN("__open64_2", __open64_2("data", O_RDONLY)));
  shut(OPEN("__openat_2", __openat_2(AT_FDCWD, "data", O_RDONLY)));
  shut(OPEN("__openat64_2", __openat64_2(AT_FDCWD, "data", O_RDONLY)));
  shut(OPEN("mkstemp", mkstemp(name)));
  shut(OPEN("mkstemps", mkstemps(again, 4)));
  shut(OPEN("mkostemp", mkostemp(third, O_APPEND)));
  int fd = OPEN("open", open("data", O_RDONLY));
  int second = dup(fd), other = dup2(fd, 100), last = fcntl(fd, F_DUPFD, 0);
  CHECK(second >= 0 && other == 100 && last >= 0 && dup3(fd, 101, O_CLOEXEC) == 101);
  say("dup", 1), say("dup2", 1), say("dup3", 1), say("fcntl", 1);
  shut(fd);
  // The position is shared by all of them.
  READ("read", read(second, buffer, 10), 10);
  READ("read", read(100, buffer, 10), 10);
  shut(second);
  DO("close_range", close_range(100, 101, 0), 0);
  shut(last);
}

static void states(void) {
  struct stat status;
  struct stat64 status64;
  struct statx extended;
  int fd = OPEN("open", open("data", O_RDONLY));
  DO("stat", stat("data", &status), 0);
  DO("stat64", stat64("data", &status64), 0);
  DO("lstat", lstat("data", &status), 0);
  DO("lstat64", lstat64("data", &status64), 0);
  DO("fstat", fstat(fd, &status), 0);
  DO("fstat64", fstat64(fd, &status64), 0);
  DO("fstatat", fstatat(AT_FDCWD, "data", &status, 0), 0);
  DO("fstatat64", fstatat64(AT_FDCWD, "data", &status64, 0), 0);
  DO("statx", statx(AT_FDCWD, "data", 0, STATX_ALL, &extended), 0);
  DO("access", access("data", R_OK), 0);
  DO("faccessat", faccessat(AT_FDCWD, "data", R_OK, 0), 0);
  DO("stat", stat("absent", &status), -1);
  shut(fd);
}

static void tree(void) {
  DO("mkdir", mkdir("folder", 0755), 0);
  DO("mkdirat", mkdirat(AT_FDCWD, "folder/below", 0755), 0);
  DO("symlink", symlink("data", "symbolic"), 0);
  DO("link", link("data", "hard"), 0);
  DO("readlink", readlink("symbolic", buffer, 100), 4);
  DO("rename", rename("hard", "harder"), 0);
  DO("renameat", renameat(AT_FDCWD, "harder", AT_FDCWD, "hardest"), 0);
  DO("renameat2", renameat2(AT_FDCWD, "hardest", AT_FDCWD, "hard", 0), 0);
  DIR *directory = opendir("folder");
  CHECK(directory);
  say("opendir", 1);
  int entries = 0;
  while (readdir(directory)) entries++;
  say("readdir", entries + 1);
  DO("closedir", closedir(directory), 0);
  DO("truncate", truncate("hard", 5000), 0);
  DO("unlink", unlink("hard"), 0);
  DO("unlinkat", unlinkat(AT_FDCWD, "symbolic", 0), 0);
  DO("rmdir", rmdir("folder/below"), 0);
  DO("unlinkat", unlinkat(AT_FDCWD, "folder", AT_REMOVEDIR), 0);
}

// What a stream moves is recorded where the C library moves it: all of it by one write.
static void streams(void) {
  FILE *stream = fopen("stream", "w+");
  CHECK(stream);
  say("fopen", 1);
  CHECK(fwrite(buffer, 10, 20, stream) == 20);
  CHECK(fputs("words\n", stream) >= 0 && fputc('x', stream) == 'x' && fprintf(stream, "%d\n", 12345) == 6);
  CHECK(fflush(stream) == 0);
  say("fstat", 1), say("write", 1);
  bytes_written += 213;
  CHECK(fclose(stream) == 0);
  closes++;
}

static void asynchronous(void) {
  int fd = OPEN("open", open("data", O_RDWR));
  struct aiocb block = {.aio_fildes = fd, .aio_buf = buffer, .aio_nbytes = 700, .aio_offset = 100};
  const struct aiocb *list[] = {&block};
  DO("aio_read", aio_read(&block), 0);
  while (aio_error(&block) == EINPROGRESS) aio_suspend(list, 1, NULL);
  READ("aio_return", aio_return(&block), 700);
  DO("aio_write", aio_write(&block), 0);
  while (aio_error(&block) == EINPROGRESS) aio_suspend(list, 1, NULL);
  WRITE("aio_return", aio_return(&block), 700);
  shut(fd);
}

static void by_number(void) {
  int fd = OPEN("openat", syscall(SYS_openat, AT_FDCWD, "data", O_RDWR, 0));
  READ("read", syscall(SYS_read, fd, buffer, 40), 40);
  WRITE("pwrite64", syscall(SYS_pwrite64, fd, buffer, 60, 0), 60);
  struct iovec part = {buffer, 70};
  READ("preadv64v2", syscall(SYS_preadv2, fd, &part, 1, 0L, 0L, 0), 70);
  WRITE("pwritev64v2", syscall(SYS_pwritev2, fd, &part, 1, 5L, 0L, 0), 70);
  struct statx extended;
  DO("statx", syscall(SYS_statx, AT_FDCWD, "data", 0, STATX_SIZE, &extended), 0);
  DO("fdatasync", syscall(SYS_fdatasync, fd), 0);
  off64_t in = 0, out = 0;
  unsigned long how[3] = {O_RDWR | O_CREAT, 0644, 0};
  int to = OPEN("openat2", syscall(SYS_openat2, AT_FDCWD, "numbered", how, sizeof how));
  DO("copy_file_range", syscall(SYS_copy_file_range, fd, &in, to, &out, 30, 0), 30);
  DO("sendfile64", syscall(SYS_sendfile, to, fd, &in, 20), 20);
  bytes_read += 50, bytes_written += 50;
  DO("renameat2", syscall(SYS_renameat2, AT_FDCWD, "numbered", AT_FDCWD, "renumbered", 0), 0);
  DO("unlinkat", syscall(SYS_unlinkat, AT_FDCWD, "renumbered", 0), 0);
  for (int number = 0; number < 2; number++) {
    CHECK(syscall(SYS_close, number ? to : fd) == 0);
    closes++;
  }
}

int main(void) {
  transfers();
  copies();
  openings();
  states();
  tree();
  streams();
  asynchronous();
  by_number();
  say("close", closes);
  printf("{\"calls\": [%s], \"bytes_read\": %ld, \"bytes_written\": %ld}\n", truth, bytes_read, bytes_written);
  return 7;
}
