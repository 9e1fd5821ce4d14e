// The least that a tracer can do: two readings of the clock and one count of the thread's, around the real call.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <x86intrin.h>

__thread volatile unsigned long shim_ticks __attribute__((tls_model("initial-exec")));

static ssize_t (*real_pread)(int, void *, size_t, off_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static off_t (*real_lseek)(int, off_t, int);
static int (*real_stat)(const char *, struct stat *);

#ifdef KERNEL_CLOCK
static unsigned long ticks(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000ul + time.tv_nsec;
}
#else
static unsigned long ticks(void) { return __rdtsc(); }
#endif

__attribute__((constructor)) static void find(void) {
  real_pread = dlsym(RTLD_NEXT, "pread");
  real_pwrite = dlsym(RTLD_NEXT, "pwrite");
  real_lseek = dlsym(RTLD_NEXT, "lseek");
  real_stat = dlsym(RTLD_NEXT, "stat");
}

#define AROUND(type, call)        \
  unsigned long start = ticks();  \
  type result = call;             \
  shim_ticks += ticks() - start;  \
  return result;

ssize_t pread(int fd, void *into, size_t bytes, off_t offset) { AROUND(ssize_t, real_pread(fd, into, bytes, offset)) }
ssize_t pwrite(int fd, const void *from, size_t bytes, off_t offset) {
  AROUND(ssize_t, real_pwrite(fd, from, bytes, offset))
}
off_t lseek(int fd, off_t offset, int whence) { AROUND(off_t, real_lseek(fd, offset, whence)) }
int stat(const char *path, struct stat *into) { AROUND(int, real_stat(path, into)) }
