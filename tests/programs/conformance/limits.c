// Limits and filters: little address space, few descriptors, small files, calls that may not be made.

#include "conformance.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

static char byte;
static struct stat status;

#define ALLOWED(number) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

// Only reads, writes, seeks of what is open, and the end; all else has the action.
static int filtered(unsigned int action, int by_number) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      ALLOWED(SYS_read), ALLOWED(SYS_write), ALLOWED(SYS_pread64), ALLOWED(SYS_pwrite64), ALLOWED(SYS_openat),
      ALLOWED(SYS_close), ALLOWED(SYS_exit), ALLOWED(SYS_exit_group),
      BPF_STMT(BPF_RET | BPF_K, action),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
  if (by_number) return (int)syscall(SYS_seccomp, (long)SECCOMP_SET_MODE_FILTER, 0L, &program);
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void filtered_calls(unsigned int action, int by_number) {
  int other = open("dir/inner", O_RDWR);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    int unused = open("empty", O_RDWR);
    (void)unused;
    if (filtered(action, by_number)) _exit(50);
    int good = read(data, &byte, 1) == 1 && pwrite(other, "x", 1, 0) == 1 && read(unused, &byte, 1) == 0;
    for (int i = 0; i < 200; i++) good &= pread(data, &byte, 1, i) == 1;
    char name[20];
    for (int i = 0; i < 60; i++) {
      snprintf(name, sizeof name, "file %d", i);
      int fd = open(name, O_WRONLY | O_CREAT, 0644);
      good &= fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0;
    }
    good &= open("absent", O_RDONLY) == -1 && errno == ENOENT;
    good &= open(bad[2], O_RDONLY) == -1 && errno == EFAULT;
    _exit(good ? 7 : 8);
  }
  ended("child", child);
}

CASE(filter_kills) { filtered_calls(SECCOMP_RET_KILL_PROCESS, 0); }
CASE(filter_kills_by_number) { filtered_calls(SECCOMP_RET_KILL_PROCESS, 1); }
CASE(filter_refuses) { filtered_calls(SECCOMP_RET_ERRNO | EPERM, 0); }
CASE(filter_traps) { filtered_calls(SECCOMP_RET_TRAP, 0); }

CASE(filter_strict) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) _exit(50);
    int good = read(data, &byte, 1) == 1 && write(data, "x", 1) == 1;
    for (int i = 0; i < 100; i++) good &= read(data, &byte, 1) == 1;
    syscall(SYS_exit, good ? 7L : 8L);
  }
  ended("child", child);
}

CASE(filter_then_refused) {
  SAY(filtered(SECCOMP_RET_ERRNO | ENOSYS, 0));
  SAY(stat("data", &status));
  SAY(lseek(data, 0, SEEK_CUR));
  SAY(access("data", F_OK));
  SAY(mkdir("x", 0755));
  SAY(read(data, &byte, 1));
  SAY(open("data", O_RDONLY));
  SAY(close(data));
}

CASE(prctl_other) {
  char name[16] = "";
  SAY(prctl(PR_SET_NAME, "conforming", 0, 0, 0));
  SAY(prctl(PR_GET_NAME, name, 0, 0, 0));
  puts(name);
  SAY(prctl(PR_GET_SECCOMP, 0, 0, 0, 0));
  SAY(prctl(7777, 0, 0, 0, 0));
  SAY(prctl(PR_SET_SECCOMP, 7, 0, 0, 0));
  SAY(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, bad[2], 0, 0));
  SAY(syscall(SYS_seccomp, 77L, 0L, 0L));
}

static void memory_after(rlim_t limit) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    setrlimit(RLIMIT_AS, &(struct rlimit){limit, limit});
    execl("/bin/sh", "sh", "-c", "exit 6", NULL);
    _exit(127);
  }
  ended("program", child);
}

CASE(little_address_space) {
  memory_after(1 << 30);
  memory_after(300 << 20);
  memory_after(100 << 20);
  memory_after(30 << 20);
}

// Half of what may be had is had.
CASE(address_space_is_left) {
  fflush(stdout);
  for (rlim_t mebibytes = 64; mebibytes <= 2048; mebibytes *= 2) {
    pid_t child = fork();
    if (child == 0) {
      setrlimit(RLIMIT_AS, &(struct rlimit){mebibytes << 20, mebibytes << 20});
      char half[20];
      snprintf(half, sizeof half, "%ld", (long)mebibytes / 2);
      execl(self, self, "as", "allocating", half, NULL);
      _exit(127);
    }
    ended("program", child);
  }
}

CASE(small_files) {
  fflush(stdout);
  for (rlim_t kibibytes = 1; kibibytes < 2000; kibibytes *= 8) {
    pid_t child = fork();
    if (child == 0) {
      setrlimit(RLIMIT_FSIZE, &(struct rlimit){kibibytes << 10, kibibytes << 10});
      execl("/bin/sh", "sh", "-c", "echo a line >text && exit 6", NULL);
      _exit(127);
    }
    ended("program", child);
  }
}

CASE(small_stack_limit) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    setrlimit(RLIMIT_STACK, &(struct rlimit){256 << 10, 256 << 10});
    execl("/bin/sh", "sh", "-c", "exit 6", NULL);
    _exit(127);
  }
  ended("program", child);
}

CASE(no_core_no_locks) {
  SAY(setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}));
  SAY(setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){0, 0}));
  SAY(mlockall(MCL_FUTURE) == 0 || geteuid());
  SAY(read(data, &byte, 1));
  pid_t child = fork();
  if (child == 0) _exit(read(data, &byte, 1) != 1);
  ended("child", child);
}

CASE(memory_locked) {
  if (geteuid()) return;
  SAY(mlockall(MCL_CURRENT | MCL_FUTURE));
  SAY(open("data", O_RDONLY));
  SAY(read(data, &byte, 1));
  SAY(munlockall());
}

CASE(few_processes) {
  SAY(getrlimit(RLIMIT_NOFILE, &(struct rlimit){0}));
  struct rlimit limit;
  SAY(getrlimit(RLIMIT_AS, &limit));
  SAY(limit.rlim_cur == RLIM_INFINITY);
}

CASE(no_counter) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0)) _exit(50);
    int good = read(data, &byte, 1) == 1 && open("data", O_RDONLY) >= 0;
    pid_t inner = fork();
    if (inner == 0) _exit(read(data, &byte, 1) != 1);
    int state = 1;
    waitpid(inner, &state, 0);
    _exit(good && state == 0 ? 7 : 8);
  }
  ended("child", child);
}
