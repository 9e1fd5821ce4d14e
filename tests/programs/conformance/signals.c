// Signal handlers that do what others do outside of them: I/O, processes, programs, on stacks of their own.

#include "conformance.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

extern char **environ;

static char byte;
static struct stat status;

static void calls(void) {
  int fd = open("data", O_RDONLY);
  long sum = read(fd, &byte, 1) + pread(fd, &byte, 1, 1) + write(data, "x", 1) + lseek(fd, 0, SEEK_SET);
  sum += stat("data", &status) + fstat(fd, &status) + access("absent", F_OK) + rename("empty", "moved");
  sum += mkdir("made", 0755) + rmdir("made") + unlink("moved") + fsync(data) + close(fd) + chdir(".");
  printf("%ld\n", sum);
}
CASE(small_stack_calls) { on_small_stack(8192, calls); }

static void deep_relative(void) {
  SAY(openat(dir, "inner", O_RDONLY));
  SAY(stat("../small_stack_relative/data", &status));
  SAY(open(".//dir/./inner", O_RDONLY));
}
CASE(small_stack_relative) { on_small_stack(8192, deep_relative); }

static void own_environment(void) { execve("/bin/true", (char *[]){"true", NULL}, (char *[]){"A=1", NULL}); }
static void same_environment(void) { execv("/bin/true", (char *[]){"true", NULL}); }
static void by_path(void) { execvp("true", (char *[]){"true", NULL}); }
static void by_list(void) { execlp("true", "true", NULL); }
static void refused(void) {
  SAY(execve("absent", (char *[]){"x", NULL}, (char *[]){"A=1", NULL}));
  SAY(execve("data", (char *[]){"x", NULL}, environ));
}

static void child_on_small_stack(const char *words, size_t size, void (*run)(void)) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    on_small_stack(size, run);
    _exit(88);
  }
  ended(words, child);
}
CASE(small_stack_programs) {
  child_on_small_stack("own", 8192, own_environment);
  child_on_small_stack("same", 8192, same_environment);
  child_on_small_stack("list", 8192, by_list);
  child_on_small_stack("path", 8192, by_path);
  on_small_stack(8192, refused);
}

static void vfork_program(void) {
  pid_t child = vfork();
  if (child == 0) {
    execve("/bin/true", (char *[]){"true", NULL}, (char *[]){NULL});
    _exit(127);
  }
  int state = 0;
  waitpid(child, &state, 0);
  SAY(state);
}
CASE(small_stack_vfork) { on_small_stack(8192, vfork_program); }

// A child's log begins where its first call is.
static void child_calls(void) {
  pid_t child = fork();
  if (child == 0) {
    long sum = open("new", O_WRONLY | O_CREAT, 0644) > 0 && stat("data", &status) == 0;
    _exit(sum != 1);
  }
  ended("child", child);
}
CASE(small_stack_fork) { on_small_stack(12288, child_calls); }

static void end_there(void) { _exit(7); }
CASE(small_stack_end) { child_on_small_stack("end", 8192, end_there); }

static volatile sig_atomic_t seen;

static void writes(int number) {
  (void)number;
  int kept = errno;
  if (pwrite(data, "s", 1, 0) == 1 && open("absent", O_RDONLY) < 0 && errno == ENOENT) seen++;
  errno = kept;
}

static void every(int us, void (*handler)(int), int flags) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  sigaction(SIGALRM, &action, NULL);
  struct itimerval often = {{0, us}, {0, us}};
  setitimer(ITIMER_REAL, &often, NULL);
}

CASE(signals_during_calls) {
  every(100, writes, SA_RESTART);
  long failed = 0;
  for (int i = 0; i < 20000 || !seen; i++) {
    errno = 77;
    failed += stat("data", &status) || pwrite(data, "x", 1, 1) != 1 || errno != 77;
    failed += access("absent", F_OK) != -1 || errno != ENOENT;
  }
  every(0, writes, 0);
  SAY(failed);
  SAY(seen > 0);
}

static void forks(int number) {
  (void)number;
  if (seen++ > 5) return;
  pid_t child = fork();
  if (child == 0) _exit(pread(data, &byte, 1, 0) != 1);
  waitpid(child, NULL, 0);
}

CASE(fork_in_handler) {
  every(1000, forks, SA_RESTART);
  while (seen < 5) {
    int fd = open("data", O_RDONLY);
    if (fd < 0 || read(fd, &byte, 1) != 1 || close(fd)) printf("failed\n");
  }
  every(0, forks, 0);
}

static void nothing(int number) { (void)number; }

CASE(interrupted_read) {
  int ends[2];
  SAY(pipe(ends));
  every(20000, nothing, 0);
  SAY(read(ends[0], &byte, 1));
  every(0, nothing, 0);
}

static sigjmp_buf back;
static void jumps(int number) {
  (void)number;
  siglongjmp(back, 1);
}

// A handler that never returns leaves the interrupted call where it was.
CASE(jump_out_of_calls) {
  for (int i = 0; i < 50; i++) {
    if (sigsetjmp(back, 1) == 0) {
      every(300, jumps, 0);
      for (;;) (void)!pread(data, &byte, 1, 0);
    }
    every(0, jumps, 0);
  }
  SAY(read(data, &byte, 1));
  SAY(open("data", O_RDONLY));
}

static void on_fault(int number, siginfo_t *information, void *context) {
  (void)number, (void)information, (void)context;
  (void)!write(data, "fault", 5);
  siglongjmp(back, 1);
}

CASE(fault_handler) {
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
  if (sigsetjmp(back, 1) == 0) *(volatile char *)bad[2] = 1;
  SAY(lseek(data, 0, SEEK_CUR));
  SAY(access(bad[2], F_OK));
  SAY(lseek(data, 0, SEEK_CUR));
}

static ucontext_t one, other;
static void coroutine(void) { calls(); }

CASE(coroutines) {
  for (int i = 0; i < 2; i++) {
    getcontext(&one);
    one.uc_stack.ss_sp = fenced(8192), one.uc_stack.ss_size = 8192;
    one.uc_link = &other;
    makecontext(&one, coroutine, 0);
    SAY(swapcontext(&other, &one));
    close(open("empty", O_WRONLY | O_CREAT, 0644));
  }
}

CASE(alternate_stack_kept) {
  stack_t stack;
  SAY(sigaltstack(NULL, &stack));
  SAY(stack.ss_flags);
  sigset_t mask;
  SAY(sigprocmask(SIG_SETMASK, NULL, &mask));
  SAY(sigisemptyset(&mask));
  for (int number = 1; number < 32; number++) {
    struct sigaction action;
    if (!sigaction(number, NULL, &action) && action.sa_handler != SIG_DFL) printf("%d has a handler\n", number);
  }
}
