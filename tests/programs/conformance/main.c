// Runs the cases whose names begin with the first argument, or all; those that are named exactly by later ones not.

#include "conformance.h"

#include <signal.h>

int data, dir;
const char *self;
char *bad[BAD_POINTERS];
const char *const bad_names[BAD_POINTERS] = {"null", "low", "without access", "unmapped", "endless"};

extern const struct named_case __start_cases[], __stop_cases[];

void said(const char *words, long result) {
  int error = errno;
  if (result == -1)
    printf("%s: %s\n", words, strerrorname_np(error) ? strerrorname_np(error) : "no error");
  else
    printf("%s = %ld\n", words, result);
  errno = error;
}

void ended(const char *words, pid_t child) {
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    said(words, -1);
    return;
  }
  if (WIFSIGNALED(status)) printf("%s: signal %d\n", words, WTERMSIG(status));
  else printf("%s: exit %d\n", words, WEXITSTATUS(status));
}

void *fenced(size_t size) {
  size_t page = 4096, whole = (size + page - 1) / page * page;
  char *memory = mmap(NULL, whole + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory + page, whole, PROT_READ | PROT_WRITE)) exit(100);
  return memory + page;
}

static void (*small_stack_run)(void);

static void on_signal(int number) {
  (void)number;
  small_stack_run();
}

void on_small_stack(size_t size, void (*run)(void)) {
  stack_t stack = {.ss_sp = fenced(size), .ss_size = size};
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
  small_stack_run = run;
  if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL)) exit(101);
  raise(SIGUSR1);
}

long address_space_kib(void) {
  char line[200];
  long found = 0;
  FILE *status = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, status))
    if (sscanf(line, "VmSize: %ld", &found) == 1) break;
  fclose(status);
  return found;
}

static void prepare(const char *name) {
  char text[10000];
  memset(text, 'd', sizeof text);
  if (mkdir(name, 0755) || chdir(name)) exit(102);
  data = open("data", O_RDWR | O_CREAT, 0644);
  if (write(data, text, sizeof text) != sizeof text || lseek(data, 0, SEEK_SET)) exit(103);
  close(open("empty", O_WRONLY | O_CREAT, 0644));
  if (mkdir("dir", 0755) || (dir = open("dir", O_RDONLY | O_DIRECTORY)) < 0) exit(104);
  close(open("dir/inner", O_WRONLY | O_CREAT, 0644));
  if (symlink("data", "link") || symlink("absent", "dangling") || symlink("loop", "loop")) exit(105);
  if (mkfifo("fifo", 0644)) exit(106);
  bad[1] = (char *)1;
  bad[2] = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bad[3] = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(bad[3], 4096);
  bad[4] = fenced(4096) + 4000;
  memset(bad[4], 'x', 96);
}

static void run(const struct named_case *one) {
  printf("== %s\n", one->name);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    alarm(10);
    prepare(one->name);
    one->run();
    fflush(stdout);
    _exit(0);
  }
  setpgid(child, child);
  ended("==", child);
  kill(-child, SIGKILL);
  fflush(stdout);
}

static int is_left_out(const char *name, char **others) {
  for (; *others; others++)
    if (!strcmp(name, *others)) return 1;
  return 0;
}

int as_program(char **arguments);

int main(int count, char **arguments) {
  self = arguments[0];
  if (count > 1 && !strcmp(arguments[1], "as")) return as_program(arguments + 2);
  const char *prefix = count > 1 ? arguments[1] : "";
  for (const struct named_case *one = __start_cases; one < __stop_cases; one++)
    if (!strncmp(one->name, prefix, strlen(prefix)) && !is_left_out(one->name, arguments + (count > 1 ? 2 : 1)))
      run(one);
  return 0;
}
