// Cases that behave natively as they do traced: each is a process in a directory of its own, and says what its calls
// returned. What differs from run to run (addresses, ids) is not said.

#pragma once

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

struct named_case {
  const char *name;
  void (*run)(void);
};

// Defines a case; the linker makes one table of all.
#define CASE(case_name)                                                                               \
  static void case_name(void);                                                                        \
  static const struct named_case case_name##_case __attribute__((used, section("cases"), aligned(8))) = { \
      #case_name, case_name};                                                                         \
  static void case_name(void)

// Every case finds: `data` (10,000 bytes, open for reading and writing), `empty`, the directory `dir` (open) with
// `dir/inner` in it, the links `link` (to data), `dangling` and `loop`, and the pipe `fifo`.
extern int data, dir;
extern const char *self;

// Addresses that a system call refuses: null, the first page, no access, unmapped, and text without an end.
enum { BAD_POINTERS = 5 };
extern char *bad[BAD_POINTERS];
extern const char *const bad_names[BAD_POINTERS];

// The result of a call, and errno where it is an error.
void said(const char *words, long result);
// Waits for a child and says how it ended.
void ended(const char *words, pid_t child);
// `size` bytes, with pages without access before and behind.
void *fenced(size_t size);
// Runs on a signal's alternate stack of `size` bytes.
void on_small_stack(size_t size, void (*run)(void));
// As /proc/self/status has it, in KiB.
long address_space_kib(void);

#define SAY(expression) (errno = 0, said(#expression, (long)(expression)))
// Of functions that return the error itself.
#define SAY_PLAIN(expression) printf("%s = %ld\n", #expression, (long)(expression))
// One call with each of the bad pointers as `p`.
#define SAY_BAD(expression)                                      \
  do                                                             \
    for (int which = 0; which < BAD_POINTERS; which++) {         \
      char *p = bad[which];                                      \
      char words[300];                                           \
      snprintf(words, sizeof words, "%s, p is %s", #expression, bad_names[which]); \
      errno = 0;                                                 \
      said(words, (long)(expression));                           \
    }                                                            \
  while (0)
