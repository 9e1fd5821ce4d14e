// The least that tracing a whole program can cost: as trace_shim.c, around each function that the programs of
// bench/traced_programs.py call often. Nothing is looked up, kept by file or written down.

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/types.h>
#include <x86intrin.h>

__thread volatile unsigned long shim_ticks __attribute__((tls_model("initial-exec")));

#define AROUND(type, call)               \
  unsigned long start = __rdtsc();       \
  type result = call;                    \
  shim_ticks += __rdtsc() - start;       \
  return result;

// Other libraries call these before any constructor of ours could run.
#define FIND(symbol) \
  if (__builtin_expect(!real_##symbol, 0)) real_##symbol = dlsym(RTLD_NEXT, #symbol);

// The C library's headers declare these with other types or as inline functions: ours go by their symbols only.
#define FORWARD(type, symbol, parameters, arguments)                 \
  static type(*real_##symbol) parameters;                            \
  type shim_##symbol parameters __asm__(#symbol);                    \
  type shim_##symbol parameters {                                    \
    FIND(symbol)                                                     \
    AROUND(type, real_##symbol arguments)                            \
  }

#define OPEN(symbol, first, parameters, ...)                                  \
  static int (*real_##symbol)(parameters, ...);                               \
  int shim_##symbol(parameters, ...) __asm__(#symbol);                        \
  int shim_##symbol(parameters, ...) {                                        \
    va_list list;                                                             \
    va_start(list, first);                                                    \
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0; \
    va_end(list);                                                             \
    FIND(symbol)                                                              \
    AROUND(int, real_##symbol(__VA_ARGS__, mode))                             \
  }
#define COMMA ,

OPEN(open, flags, const char *path COMMA int flags, path, flags)
OPEN(open64, flags, const char *path COMMA int flags, path, flags)
OPEN(openat, flags, int at COMMA const char *path COMMA int flags, at, path, flags)
OPEN(openat64, flags, int at COMMA const char *path COMMA int flags, at, path, flags)
FORWARD(int, __open_2, (const char *path, int flags), (path, flags))
FORWARD(int, __open64_2, (const char *path, int flags), (path, flags))
FORWARD(int, __openat_2, (int at, const char *path, int flags), (at, path, flags))
FORWARD(int, __openat64_2, (int at, const char *path, int flags), (at, path, flags))
FORWARD(int, creat, (const char *path, mode_t mode), (path, mode))
FORWARD(int, close, (int fd), (fd))
FORWARD(ssize_t, read, (int fd, void *into, size_t bytes), (fd, into, bytes))
FORWARD(ssize_t, __read_chk, (int fd, void *into, size_t bytes, size_t room), (fd, into, bytes, room))
FORWARD(ssize_t, write, (int fd, const void *from, size_t bytes), (fd, from, bytes))
FORWARD(ssize_t, pread64, (int fd, void *into, size_t bytes, off_t offset), (fd, into, bytes, offset))
FORWARD(ssize_t, pwrite64, (int fd, const void *from, size_t bytes, off_t offset), (fd, from, bytes, offset))
FORWARD(off_t, lseek, (int fd, off_t offset, int whence), (fd, offset, whence))
FORWARD(off_t, lseek64, (int fd, off_t offset, int whence), (fd, offset, whence))
FORWARD(int, stat, (const char *path, void *into), (path, into))
FORWARD(int, stat64, (const char *path, void *into), (path, into))
FORWARD(int, lstat, (const char *path, void *into), (path, into))
FORWARD(int, lstat64, (const char *path, void *into), (path, into))
FORWARD(int, fstat, (int fd, void *into), (fd, into))
FORWARD(int, fstat64, (int fd, void *into), (fd, into))
FORWARD(int, fstatat, (int at, const char *path, void *into, int flags), (at, path, into, flags))
FORWARD(int, fstatat64, (int at, const char *path, void *into, int flags), (at, path, into, flags))
FORWARD(int, access, (const char *path, int mode), (path, mode))
FORWARD(int, unlink, (const char *path), (path))
FORWARD(int, mkdir, (const char *path, mode_t mode), (path, mode))
FORWARD(void *, mmap, (void *at, size_t bytes, int how, int flags, int fd, off_t from),
        (at, bytes, how, flags, fd, from))
FORWARD(void *, mmap64, (void *at, size_t bytes, int how, int flags, int fd, off_t from),
        (at, bytes, how, flags, fd, from))
FORWARD(int, dup, (int fd), (fd))
FORWARD(void *, fdopen, (int fd, const char *mode), (fd, mode))
FORWARD(void *, opendir, (const char *path), (path))
FORWARD(void *, fdopendir, (int fd), (fd))
FORWARD(int, closedir, (void *directory), (directory))
FORWARD(void *, readdir, (void *directory), (directory))
FORWARD(void *, readdir64, (void *directory), (directory))
