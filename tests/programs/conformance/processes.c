// Processes: fork and vfork in all their nestings, ends, credentials.

#include "conformance.h"

#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>

extern char **environ;

static char byte;

CASE(fork_deep) {
  for (int depth = 0; depth < 20; depth++) {
    pid_t child = fork();
    if (child > 0) {
      int status;
      waitpid(child, &status, 0);
      if (depth) _exit(WEXITSTATUS(status) + 1);
      SAY(WEXITSTATUS(status));
      return;
    }
  }
  _exit(read(data, &byte, 1) != 1);
}

CASE(fork_many) {
  int good = 0;
  for (int i = 0; i < 20; i++)
    if (fork() == 0) _exit(pread(data, &byte, 1, i) != 1);
  for (int status; wait(&status) > 0;) good += status == 0;
  SAY(good);
  SAY(wait(NULL));
}

CASE(vfork_exit) {
  pid_t child = vfork();
  if (child == 0) _exit(5);
  ended("child", child);
  SAY(read(data, &byte, 1));
}

CASE(vfork_program) {
  pid_t child = vfork();
  if (child == 0) {
    execl("/bin/true", "true", NULL);
    _exit(127);
  }
  ended("child", child);
}

CASE(vfork_absent_program) {
  pid_t child = vfork();
  if (child == 0) {
    execl("absent", "absent", NULL);
    _exit(errno);
  }
  ended("child", child);
  SAY(read(data, &byte, 1));
}

// A child's child, whose call returns to another place than the first's.
static __attribute__((noinline)) pid_t inner_vfork(int code) {
  pid_t child = vfork();
  if (child == 0) _exit(code);
  return child;
}

CASE(vfork_nested) {
  volatile pid_t inner = 0;
  pid_t child = vfork();
  if (child == 0) {
    inner = inner_vfork(6);
    int status = 0;
    waitpid(inner, &status, 0);
    _exit(WEXITSTATUS(status) + 1);
  }
  ended("child", child);
  SAY(read(data, &byte, 1));
}

static int vfork_to(int depth) {
  volatile int status = 0;
  pid_t child = vfork();
  if (child == 0) _exit(depth > 0 ? vfork_to(depth - 1) + 1 : 0);
  waitpid(child, (int *)&status, 0);
  return WEXITSTATUS(status);
}

CASE(vfork_deep) {
  SAY(vfork_to(12));
  SAY(vfork_to(3));
  SAY(read(data, &byte, 1));
}

CASE(vfork_nested_programs) {
  pid_t child = vfork();
  if (child == 0) {
    pid_t inner = vfork();
    if (inner == 0) {
      execle("/bin/sh", "sh", "-c", "exit 8", NULL, (char *[]){NULL});
      _exit(127);
    }
    int status = 0;
    waitpid(inner, &status, 0);
    execle("/bin/sh", "sh", "-c", WEXITSTATUS(status) == 8 ? "exit 9" : "exit 1", NULL, (char *[]){NULL});
    _exit(127);
  }
  ended("child", child);
}

CASE(vfork_then_fork) {
  pid_t child = vfork();
  if (child == 0) {
    pid_t inner = fork();
    if (inner == 0) _exit(read(data, &byte, 1) != 1);
    int status = 0;
    waitpid(inner, &status, 0);
    _exit(WEXITSTATUS(status) + 3);
  }
  ended("child", child);
  SAY(read(data, &byte, 1));
}


CASE(clone_by_number) {
  pid_t child = (pid_t)syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0L, 0L, 0L, 0L);
  if (child == 0) syscall(SYS_exit_group, 4);
  ended("child", child);
  child = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
  if (child == 0) _exit(read(data, &byte, 1) != 1);
  ended("child", child);
  SAY(syscall(SYS_fork) == 0 ? (_exit(0), 0) : 1);
  SAY(read(data, &byte, 1));
}

static int cloned(void *unused) {
  (void)unused;
  close(dir);
  execl("/bin/true", "true", NULL);
  return 9;
}

CASE(clone_with_memory) {
  char *stack = fenced(64 << 10);
  pid_t child = clone(cloned, stack + (64 << 10), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
  ended("child", child);
  SAY(fcntl(dir, F_GETFD));
  SAY(openat(dir, "inner", O_RDONLY));
}

CASE(vfork_descriptors) {
  pid_t child = vfork();
  if (child == 0) {
    close(data);
    dup2(dir, 60);
    _exit(0);
  }
  ended("child", child);
  SAY(read(data, &byte, 1));
  SAY(fcntl(60, F_GETFD));
}

static void *vfork_in_thread(void *result) {
  for (int i = 0; i < 20; i++) {
    pid_t child = vfork();
    if (child == 0) _exit(i);
    int status = 0;
    waitpid(child, &status, 0);
    *(int *)result += WEXITSTATUS(status) == i;
  }
  return NULL;
}

CASE(vfork_in_threads) {
  pthread_t all[8];
  int good[8] = {0}, sum = 0;
  for (int i = 0; i < 8; i++) pthread_create(&all[i], NULL, vfork_in_thread, &good[i]);
  for (int i = 0; i < 8; i++) {
    pthread_join(all[i], NULL);
    sum += good[i];
  }
  SAY(sum);
}

static void before_exit(void) {
  printf("at exit\n");
  SAY(open("data", O_RDONLY));
}

static void in_child(void (*run)(void)) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    run();
    exit(50);
  }
  ended("child", child);
}

static void by_exit(void) {
  atexit(before_exit);
  printf("buffered, ");
  exit(3);
}
static void by_quick_exit(void) { printf("lost"), quick_exit(4); }
static void by_underscore(void) { printf("lost"), _exit(5); }
static void by_capital(void) { printf("lost"), _Exit(6); }
static void by_number(void) { syscall(SYS_exit_group, 7L); }
static void by_abort(void) { abort(); }
static void by_kill(void) { raise(SIGKILL); }
static void by_segment(void) { *(volatile int *)8 = 1; }
static void by_thread_exit(void) { pthread_exit(NULL); }

CASE(ends) {
  void (*const ways[])(void) = {by_exit,  by_quick_exit, by_underscore, by_capital,    by_number,
                                by_abort, by_kill,       by_segment,    by_thread_exit};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) in_child(ways[i]);
}

CASE(user_dropped) {
  if (geteuid()) return;
  int before = open("before", O_RDWR | O_CREAT, 0600);
  SAY(setgroups(0, NULL));
  SAY(setresgid(65534, 65534, 65534));
  SAY(setresuid(65534, 65534, 65534));
  SAY(open("data", O_RDWR));
  SAY(open("before", O_RDWR));
  SAY(write(before, "kept", 4));
  SAY(open("new", O_WRONLY | O_CREAT, 0644));
  SAY(setuid(0));
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) _exit(read(before, &byte, 1));
  ended("child", child);
  child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", "echo from a shell; exit 2", NULL);
    _exit(127);
  }
  ended("program", child);
}

CASE(no_new_privileges) {
  SAY(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  pid_t child = fork();
  if (child == 0) execl("/bin/true", "true", NULL);
  ended("child", child);
}

CASE(not_dumpable) {
  SAY(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
  SAY(open("data", O_RDONLY));
  pid_t child = fork();
  if (child == 0) _exit(read(data, &byte, 1) != 1);
  ended("child", child);
}
