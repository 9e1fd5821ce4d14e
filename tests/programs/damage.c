// What a test of damage puts in front of the C library: below one directory each call that changes files is counted,
// written down, and made to fail where the test says so; and the clock of the day can be set without setting it.
//
// DAMAGE_BELOW is the directory, DAMAGE_STATE a file of `struct state` that all processes share, DAMAGE_LOG a file that
// takes a line a call: what, path, offset, hexadecimal data or second path.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct state {
  int64_t calls;     // so far
  int64_t fail_at;   // the first call that fails; 0: none
  int64_t error;     // errno of it
  int64_t forever;   // all later calls fail, too
  int64_t clock_ns;  // added to CLOCK_REALTIME
};

static struct state *state;
static const char *below;
static int log_fd = -1;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("DAMAGE_STATE"), *log = getenv("DAMAGE_LOG");
  below = getenv("DAMAGE_BELOW");
  int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (fd >= 0) {
    void *found = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    state = found == MAP_FAILED ? NULL : found;
    close(fd);
  }
  if (log) log_fd = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static ssize_t real_write(int fd, const void *data, size_t size) {
  REAL(write);
  return real(fd, data, size);
}

static void note(const char *what, const char *path, long offset, const unsigned char *data, size_t size) {
  if (log_fd < 0) return;
  size_t room = strlen(path) + 2 * size + 64;
  char *line = malloc(room);
  if (!line) abort();
  int length = snprintf(line, room, "%s\t%s\t%ld\t", what, path, offset);
  for (size_t at = 0; at < size; at++) length += sprintf(line + length, "%02x", data[at]);
  line[length++] = '\n';
  if (real_write(log_fd, line, (size_t)length) != length) abort();
  free(line);
}

static int path_of(int fd, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  path[length < 0 ? 0 : length] = 0;
  return length > 0;
}

static int watched(const char *path) {
  return state && below && path && strncmp(path, below, strlen(below)) == 0;
}

// The whole path of what is named in an open directory.
static const char *whole_path(int at, const char *path, char *room) {
  if (!path || path[0] == '/' || at == AT_FDCWD || !path_of(at, room)) return path;
  size_t length = strlen(room);
  snprintf(room + length, PATH_MAX - length, "/%s", path);
  return room;
}

// 1 where this call is to fail.
static int fails(void) {
  int64_t number = __atomic_add_fetch(&state->calls, 1, __ATOMIC_SEQ_CST);
  int64_t at = __atomic_load_n(&state->fail_at, __ATOMIC_SEQ_CST);
  if (!at || number < at || (number > at && !state->forever)) return 0;
  errno = (int)state->error;
  return 1;
}

static int opened(const char *path, int flags) {
  return watched(path) && (flags & (O_CREAT | O_TRUNC)) ? fails() : 0;
}

#define OPENING(name, whole, ...) \
  mode_t mode = 0; \
  if (flags & (O_CREAT | __O_TMPFILE)) { \
    va_list rest; \
    va_start(rest, flags); \
    mode = va_arg(rest, mode_t); \
    va_end(rest); \
  } \
  REAL(name); \
  const char *named = whole; \
  if (opened(named, flags)) return -1; \
  int fd = real(__VA_ARGS__, flags, mode); \
  if (fd >= 0 && watched(named) && (flags & O_CREAT)) \
    note(flags & O_TRUNC ? "truncate" : "create", named, 0, NULL, 0); \
  return fd

int open(const char *path, int flags, ...) { OPENING(open, path, path); }
int open64(const char *path, int flags, ...) { OPENING(open64, path, path); }
int openat(int at, const char *path, int flags, ...) {
  char room[PATH_MAX];
  OPENING(openat, whole_path(at, path, room), at, path);
}
int openat64(int at, const char *path, int flags, ...) {
  char room[PATH_MAX];
  OPENING(openat64, whole_path(at, path, room), at, path);
}

ssize_t write(int fd, const void *data, size_t size) {
  char path[PATH_MAX];
  struct stat found;
  if (!state || !path_of(fd, path) || !watched(path) || fstat(fd, &found) || !S_ISREG(found.st_mode))
    return real_write(fd, data, size);
  if (fails()) {
    if (errno == ENOSPC && size > 1) {  // a full disk takes what fits
      off_t half = fcntl(fd, F_GETFL) & O_APPEND ? found.st_size : lseek(fd, 0, SEEK_CUR);
      ssize_t done = real_write(fd, data, size / 2);
      note("write", path, half, data, done > 0 ? (size_t)done : 0);
      if (!state->forever) return done;  // the next call goes on, and fits
    }
    errno = (int)state->error;
    return -1;
  }
  off_t offset = fcntl(fd, F_GETFL) & O_APPEND ? found.st_size : lseek(fd, 0, SEEK_CUR);
  ssize_t done = real_write(fd, data, size);
  if (done > 0) note("write", path, offset, data, (size_t)done);
  return done;
}

int fsync(int fd) {
  char path[PATH_MAX];
  REAL(fsync);
  if (!state || !path_of(fd, path) || !watched(path)) return real(fd);
  if (fails()) return -1;
  int done = real(fd);
  note("sync", path, 0, NULL, 0);
  return done;
}

int rename(const char *from, const char *to) {
  REAL(rename);
  if (!watched(to)) return real(from, to);
  if (fails()) return -1;
  int done = real(from, to);
  if (!done) note("rename", from, 0, (const unsigned char *)to, strlen(to));
  return done;
}

int mkdir(const char *path, mode_t mode) {
  REAL(mkdir);
  if (!watched(path)) return real(path, mode);
  if (fails()) return -1;
  int done = real(path, mode);
  if (!done) note("mkdir", path, 0, NULL, 0);
  return done;
}

int unlink(const char *path) {
  REAL(unlink);
  int done = real(path);
  if (!done && watched(path)) note("unlink", path, 0, NULL, 0);
  return done;
}

int unlinkat(int at, const char *path, int flags) {
  char room[PATH_MAX];
  REAL(unlinkat);
  const char *named = whole_path(at, path, room);
  int done = real(at, path, flags);
  if (!done && watched(named)) note("unlink", named, 0, NULL, 0);
  return done;
}

int rmdir(const char *path) {
  REAL(rmdir);
  int done = real(path);
  if (!done && watched(path)) note("unlink", path, 0, NULL, 0);
  return done;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  REAL(clock_gettime);
  int done = real(clock, now);
  if (!done && clock == CLOCK_REALTIME && state && state->clock_ns) {
    int64_t ns = now->tv_sec * 1000000000LL + now->tv_nsec + __atomic_load_n(&state->clock_ns, __ATOMIC_SEQ_CST);
    now->tv_sec = ns / 1000000000LL;
    now->tv_nsec = ns % 1000000000LL;
  }
  return done;
}
