// What stable Rust cannot define: variables of a thread in the static TLS block, which are safe to use in signal
// handlers, functions with variable arguments, which only collect these for Rust, and an end without an unwinder.

#define _GNU_SOURCE
#include <alloca.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/types.h>

#define STATIC_TLS __attribute__((tls_model("initial-exec")))

// What a thread has before its first call: a state that is never idle, so that one comparison finds both.
char leadline_no_thread[64] __attribute__((aligned(64)));
__thread void *leadline_thread STATIC_TLS = leadline_no_thread;
// Memory and how much of it: what the child of a vfork needed to become another program.
__thread struct { void *memory; size_t bytes; } leadline_scratch STATIC_TLS;

void **leadline_slot_thread(void) { return &leadline_thread; }
void *leadline_slot_scratch(void) { return &leadline_scratch; }

// Nothing here unwinds, but Rust's library names the functions of an unwinder. Without these, every traced process
// would load libgcc_s for them. They are hidden: the program's own exceptions are not theirs.
#define NO_UNWINDER(name)                    \
  void leadline_no##name(void) __asm__(#name); \
  void leadline_no##name(void) { abort(); }
NO_UNWINDER(_Unwind_Backtrace)
NO_UNWINDER(_Unwind_DeleteException)
NO_UNWINDER(_Unwind_FindEnclosingFunction)
NO_UNWINDER(_Unwind_GetCFA)
NO_UNWINDER(_Unwind_GetDataRelBase)
NO_UNWINDER(_Unwind_GetIP)
NO_UNWINDER(_Unwind_GetIPInfo)
NO_UNWINDER(_Unwind_GetLanguageSpecificData)
NO_UNWINDER(_Unwind_GetRegionStart)
NO_UNWINDER(_Unwind_GetTextRelBase)
NO_UNWINDER(_Unwind_RaiseException)
NO_UNWINDER(_Unwind_Resume)
NO_UNWINDER(_Unwind_SetGR)
NO_UNWINDER(_Unwind_SetIP)

int leadline_open(const char *path, int flags, mode_t mode);
int leadline_open64(const char *path, int flags, mode_t mode);
int leadline_openat(int directory, const char *path, int flags, mode_t mode);
int leadline_openat64(int directory, const char *path, int flags, mode_t mode);
int leadline_fcntl(int fd, int command, long argument);
int leadline_fcntl64(int fd, int command, long argument);
long leadline_syscall(long number, long a, long b, long c, long d, long e, long f);
// A list of arguments is passed as an address on x86-64 and on aarch64: Rust hands that on.
int leadline_dprintf(int fd, const char *format, va_list arguments);
int leadline_dprintf_chk(int fd, int flag, const char *format, va_list arguments);
int leadline_execv_from_list(const char *path, char *const arguments[], char *const environment[], int search);

static mode_t mode_of(int flags, va_list arguments) {
  return (flags & O_CREAT) || (flags & __O_TMPFILE) == __O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

#define OPEN(name)                                     \
  int leadline_c_##name(const char *path, int flags, ...) { \
    va_list arguments;                                 \
    va_start(arguments, flags);                        \
    mode_t mode = mode_of(flags, arguments);           \
    va_end(arguments);                                 \
    return leadline_##name(path, flags, mode);         \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                      \
  int leadline_c_##name(int directory, const char *path, int flags, ...) { \
    va_list arguments;                                                    \
    va_start(arguments, flags);                                           \
    mode_t mode = mode_of(flags, arguments);                              \
    va_end(arguments);                                                    \
    return leadline_##name(directory, path, flags, mode);                 \
  }
OPENAT(openat)
OPENAT(openat64)

// Every command takes nothing, an int or a pointer: one register.
#define FCNTL(name)                             \
  int leadline_c_##name(int fd, int command, ...) { \
    va_list arguments;                          \
    va_start(arguments, command);               \
    long argument = va_arg(arguments, long);    \
    va_end(arguments);                          \
    return leadline_##name(fd, command, argument); \
  }
FCNTL(fcntl)
FCNTL(fcntl64)

long leadline_c_syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
  va_end(list);
  return leadline_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int leadline_c_dprintf(int to, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int result = leadline_dprintf(to, format, arguments);
  va_end(arguments);
  return result;
}

int leadline_c_dprintf_chk(int to, int flag, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int result = leadline_dprintf_chk(to, flag, format, arguments);
  va_end(arguments);
  return result;
}

extern char **environ;

static size_t count_arguments(va_list list) {
  size_t count = 0;
  while (va_arg(list, char *)) count++;
  return count;
}

// The list of arguments as an array on the stack; `last` is what follows it in execle.
#define EXEC_LIST(name, search, last)                                            \
  int leadline_c_##name(const char *path, const char *first, ...) {              \
    va_list list, again;                                                         \
    va_start(list, first);                                                       \
    va_copy(again, list);                                                        \
    size_t count = first ? count_arguments(list) : 0;                            \
    char **arguments = alloca((count + 2) * sizeof *arguments);                  \
    arguments[0] = (char *)first;                                                \
    for (size_t i = 1; first && i <= count + 1; i++) arguments[i] = va_arg(again, char *); \
    char **environment = last;                                                   \
    int result = leadline_execv_from_list(path, arguments, environment, search); \
    va_end(again);                                                               \
    va_end(list);                                                                \
    return result;                                                               \
  }
EXEC_LIST(execl, 0, environ)
EXEC_LIST(execlp, 1, environ)
EXEC_LIST(execle, 0, va_arg(again, char **))
