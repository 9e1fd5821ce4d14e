// Lives and ends in ways that a tracer may not survive; what it does in each is said in the tests that start it.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void write_file(const char *name, int times) {
  int fd = open(name, O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (fd < 0) exit(3);
  for (int i = 0; i < times; i++)
    if (write(fd, "0123456789", 10) != 10) exit(4);
  close(fd);
}

static int shared_fd;

static void *reader(void *unused) {
  (void)unused;
  char buffer[512];
  for (int i = 0; i < 1000; i++)
    if (pread(shared_fd, buffer, 10, i * 10) != 10) exit(5);
  return NULL;
}

// Eight threads at once read one file 1000 times each; then 100 threads one after the other.
static void threads(void) {
  write_file("shared", 1000);
  shared_fd = open("shared", O_RDONLY);
  pthread_t all[8], one;
  for (int i = 0; i < 8; i++) pthread_create(&all[i], NULL, reader, NULL);
  for (int i = 0; i < 8; i++) pthread_join(all[i], NULL);
  for (int i = 0; i < 100; i++) {
    pthread_create(&one, NULL, reader, NULL);
    pthread_join(one, NULL);
  }
}

static void forks(int count) {
  for (int i = 0; i < count; i++) {
    pid_t child = fork();
    if (child < 0) exit(6);
    if (child == 0) {
      write_file("forked", 1);
      _exit(0);
    }
    waitpid(child, NULL, 0);
  }
}

static void kernel_fork(void) {
  write_file("before", 1);
  pid_t child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) {
    write_file("child", 3);
    syscall(SYS_exit_group, 5);
  }
  waitpid(child, NULL, 0);
  write_file("after", 2);
}

// The child of a vfork borrows this memory: what it does to descriptors is not done to ours.
static void borrowed(const char *self) {
  int mine = open("mine", O_WRONLY | O_CREAT, 0644);
  pid_t child = vfork();
  if (child == 0) {
    close(mine);
    execl(self, self, "write", "borrowed", NULL);
    _exit(127);
  }
  waitpid(child, NULL, 0);
  if (write(mine, "still mine", 10) != 10) exit(7);
  child = vfork();
  if (child == 0) _exit(9);
  waitpid(child, NULL, 0);
}

static void bare_environment(const char *self) {
  char *arguments[] = {(char *)self, "write", "bare", NULL}, *none[] = {"A=1", NULL};
  char *theirs[] = {"LD_PRELOAD=libm.so.6", NULL};
  pid_t child = fork();
  if (child == 0) {
    execve(self, arguments, none);
    _exit(127);
  }
  waitpid(child, NULL, 0);
  posix_spawn(&child, self, NULL, NULL, arguments, theirs);
  waitpid(child, NULL, 0);
  clearenv();
  child = fork();
  if (child == 0) {
    execv(self, arguments);
    _exit(127);
  }
  waitpid(child, NULL, 0);
}

static volatile sig_atomic_t signals;

static void on_signal(int number) {
  (void)number;
  int saved = errno;
  if (pwrite(shared_fd, "s", 1, 0) == 1) signals++;
  errno = saved;
}

// A handler that does I/O of its own interrupts I/O.
static void interrupted(void) {
  shared_fd = open("signals", O_RDWR | O_CREAT, 0644);
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGALRM, &action, NULL);
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
  struct itimerspec often = {{0, 50000}, {0, 50000}};
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  timer_settime(timer, 0, &often, NULL);
  for (int i = 0; i < 200000; i++)
    if (pwrite(shared_fd, "x", 1, 1) != 1) exit(8);
  timer_delete(timer);
  printf("%d\n", (int)signals);
}

static void many_files(int count) {
  char name[32];
  for (int i = 0; i < count; i++) {
    snprintf(name, sizeof name, "f%d", i);
    int fd = open(name, O_WRONLY | O_CREAT, 0644);
    if (fd < 0 || write(fd, "0123456789", 10) != 10 || close(fd) || unlink(name)) exit(10);
  }
}

static void close_everything(void) {
  write_file("first", 1);
  for (int fd = 0; fd < 1024; fd++) close(fd);
  write_file("second", 2);
  closefrom(0);
  write_file("third", 3);
  _exit(6);
}

int main(int count, char **arguments) {
  const char *mode = count > 1 ? arguments[1] : "";
  int number = count > 2 ? atoi(arguments[2]) : 0;
  if (!strcmp(mode, "write")) write_file(arguments[2], 5);
  else if (!strcmp(mode, "threads")) threads();
  else if (!strcmp(mode, "forks")) forks(number);
  else if (!strcmp(mode, "clone")) kernel_fork();
  else if (!strcmp(mode, "vfork")) borrowed(arguments[0]);
  else if (!strcmp(mode, "environment")) bare_environment(arguments[0]);
  else if (!strcmp(mode, "signals")) interrupted();
  else if (!strcmp(mode, "files")) many_files(number);
  else if (!strcmp(mode, "close")) close_everything();
  else if (!strcmp(mode, "abort")) write_file("aborted", 4), abort();
  else if (!strcmp(mode, "kill")) write_file("killed", 1000), kill(getpid(), SIGKILL);
  else if (!strcmp(mode, "chroot")) {
    write_file("outside", 1);
    if (chroot(".")) return 11;
    forks(2);
  } else if (!strcmp(mode, "static")) {
    execl("/sbin/ldconfig", "ldconfig", "--version", NULL);
    return 12;
  } else return 2;
  return 0;
}
