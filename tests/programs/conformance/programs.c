// Programs that take this one's place or are started: environments, sizes, scripts, what cannot be run.

#include "conformance.h"

#include <spawn.h>
#include <sys/resource.h>

extern char **environ;

static char *const none[] = {NULL};

static void end_of(const char *words, void (*run)(void)) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    run();
    _exit(errno > 255 ? 255 : errno);
  }
  ended(words, child);
}

#define TRY(expression)                     \
  do {                                      \
    fflush(stdout);                         \
    pid_t child = fork();                   \
    if (child == 0) {                       \
      (void)!(expression);                  \
      printf("%s\n", strerrorname_np(errno)); \
      fflush(stdout);                       \
      _exit(99);                            \
    }                                       \
    ended(#expression, child);              \
  } while (0)

CASE(exec_forms) {
  char *const words[] = {"sh", "-c", "exit 7", NULL};
  int shell = open("/bin/sh", O_RDONLY), bin = open("/bin", O_RDONLY | O_DIRECTORY);
  TRY(execl("/bin/sh", "sh", "-c", "exit 1", NULL));
  TRY(execlp("sh", "sh", "-c", "exit 2", NULL));
  TRY(execle("/bin/sh", "sh", "-c", "exit $A", NULL, ((char *[]){"A=3", NULL})));
  TRY(execv("/bin/sh", words));
  TRY(execvp("sh", words));
  TRY(execvpe("sh", words, none));
  TRY(execve("/bin/sh", words, environ));
  TRY(execve("/bin/sh", words, none));
  TRY(execve("/bin/sh", words, NULL));
  TRY(fexecve(shell, words, none));
  TRY(execveat(bin, "sh", words, none, 0));
  TRY(execveat(shell, "", words, none, AT_EMPTY_PATH));
  TRY(syscall(SYS_execve, "/bin/sh", words, none));
  TRY(syscall(SYS_execveat, bin, "sh", words, none, 0L));
}

CASE(exec_refused) {
  chmod("empty", 0755);
  close(open("text", O_WRONLY | O_CREAT, 0755));
  int fd = open("text", O_WRONLY);
  (void)!write(fd, "exit 5\n", 7);
  TRY(execl("text", "text", NULL));
  close(fd);
  TRY(execl("absent", "absent", NULL));
  TRY(execl("dir", "dir", NULL));
  TRY(execl("data", "data", NULL));
  TRY(execl("fifo", "fifo", NULL));
  TRY(execl("data/x", "x", NULL));
  TRY(execl("loop", "loop", NULL));
  TRY(execl("", "", NULL));
  TRY(execl("empty", "empty", NULL));
  TRY(execl("text", "text", NULL));
  TRY(execlp("./text", "text", NULL));
  TRY(execlp("absent-everywhere", "x", NULL));
  TRY(execlp("", "x", NULL));
  TRY(fexecve(77, none, none));
  TRY(fexecve(dir, none, none));
  TRY(execveat(77, "x", none, none, 0));
  chmod("fifo", 0755);
  TRY(execl("./fifo", "fifo", NULL));
  TRY(execl("/dev/null", "null", NULL));
}

CASE(exec_scripts) {
  int fd = open("script", O_WRONLY | O_CREAT, 0755);
  dprintf(fd, "#!/bin/sh\nexit 6\n");
  close(fd);
  fd = open("broken", O_WRONLY | O_CREAT, 0755);
  dprintf(fd, "#!/absent/interpreter\n");
  close(fd);
  fd = open("cut", O_WRONLY | O_CREAT, 0755);
  dprintf(fd, "\x7f" "ELF");
  close(fd);
  TRY(execl("./script", "script", NULL));
  TRY(execl("./broken", "broken", NULL));
  TRY(execl("./cut", "cut", NULL));
  TRY(execlp("./cut", "cut", NULL));
  setenv("PATH", "/absent::dir:.", 1);
  TRY(execlp("script", "script", NULL));
  unsetenv("PATH");
  TRY(execlp("sh", "sh", "-c", "exit 2", NULL));
  setenv("PATH", "", 1);
  TRY(execlp("script", "script", NULL));
}

// What a program gets is what it was given; the tracer's own variables are not said by it.
CASE(exec_environment) {
  char *const few[] = {"B=2", "A=1", "no sign", "", "A=again", NULL};
  TRY(execle(self, self, "as", "environment", NULL, few));
  TRY(execle(self, self, "as", "environment", NULL, none));
  clearenv();
  TRY(execl(self, self, "as", "environment", NULL));
  TRY(execle(self, self, "as", "environment", NULL, ((char *[]){"LD_PRELOAD=libm.so.6", NULL})));
}

static char **words_of(size_t bytes, size_t each) {
  size_t count = bytes / each;
  char **words = calloc(count + 3, sizeof *words), *text = malloc(each);
  memset(text, 'w', each - 1);
  text[each - 1] = '\0';
  words[0] = "true";
  for (size_t i = 0; i < count; i++) words[i + 1] = text;
  return words;
}

// The most that the kernel takes (a quarter of the stack's limit), and a little above it.
CASE(exec_many_arguments) {
  struct rlimit limit = {8 << 20, 8 << 20};
  SAY(setrlimit(RLIMIT_STACK, &limit));
  TRY(execve("/bin/true", words_of(1500000, 1000), none));
  TRY(execve("/bin/true", words_of(2050000, 1000), none));
  TRY(execve("/bin/true", words_of(2200000, 1000), none));
  for (size_t bytes = 2078000; bytes < 2082000; bytes += 100) TRY(execve("/bin/true", words_of(bytes, 100000), none));
}

CASE(exec_to_the_last_byte) {
  struct rlimit limit = {8 << 20, 8 << 20};
  SAY(setrlimit(RLIMIT_STACK, &limit));
  size_t low = 0, high = 131000, tried = 0;
  char **words = words_of(16 * 130000, 130000), *last = calloc(1, 131072);
  words[17] = last;
  words[15] = words[16] = "";
  while (low < high) {
    size_t middle = (low + high + 1) / 2;
    memset(last, 'l', middle), last[middle] = '\0';
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      execve("/bin/true", words, none);
      _exit(errno == E2BIG ? 1 : 2);
    }
    int status;
    waitpid(child, &status, 0);
    if (status == 0) low = middle;
    else high = middle - 1;
    tried++;
  }
  SAY(tried > 5);
  SAY(low);
}

CASE(exec_long_argument) {
  char **words = words_of(131072, 131072);
  TRY(execve("/bin/true", words, none));
  words[1] = "short";
  char **variables = words_of(140000, 140000);
  TRY(execve("/bin/true", words, variables));
}

CASE(exec_large_environment) {
  static char texts[5000][20];
  static char *variables[5001];
  for (int i = 0; i < 5000; i++) sprintf(variables[i] = texts[i], "VARIABLE_%d=%d", i, i);
  TRY(execle("/bin/sh", "sh", "-c", "exit $((VARIABLE_4999 - 4990))", NULL, variables));
  pid_t child = vfork();
  if (child == 0) {
    execle("/bin/sh", "sh", "-c", "exit $((VARIABLE_77 - 70))", NULL, variables);
    _exit(127);
  }
  ended("vfork", child);
}

CASE(spawn) {
  pid_t child = -1;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 50, "data", O_RDONLY, 0);
  posix_spawn_file_actions_addclose(&actions, data);
  SAY_PLAIN(posix_spawn(&child, self, &actions, NULL, (char *[]){(char *)self, "as", "descriptors", NULL}, none));
  ended("with actions", child);
  SAY_PLAIN(posix_spawnp(&child, "sh", NULL, NULL, (char *[]){"sh", "-c", "exit 3", NULL}, environ));
  ended("in the path", child);
  SAY_PLAIN(posix_spawn(&child, "absent", NULL, NULL, none, none));
  SAY_PLAIN(posix_spawnp(&child, "absent", NULL, NULL, none, environ));
  SAY_PLAIN(posix_spawn(&child, "data", NULL, NULL, none, none));
  SAY_PLAIN(posix_spawn(&child, bad[2], NULL, NULL, none, none));
  SAY_PLAIN(posix_spawn(&child, "/bin/true", NULL, NULL, none, (char **)bad[2]));
}

static void static_program(void) { execl("/sbin/ldconfig", "ldconfig", "--help", NULL); }

CASE(static_programs) {
  freopen("/dev/null", "w", stderr);
  end_of("static", static_program);
}

// Each began with an environment of its own: what was needed for that is given back.
CASE(spawns_without_growth) {
  char **variables = words_of(300 * 10, 10);
  long before = 0;
  for (int i = 0; i < 60; i++) {
    if (i == 10) before = address_space_kib();
    pid_t child = vfork();
    if (child == 0) {
      execve("/bin/true", (char *[]){"true", NULL}, i % 2 ? none : variables);
      _exit(127);
    }
    int status;
    waitpid(child, &status, 0);
    if (status) ended("a child", child);
  }
  SAY(address_space_kib() - before);
  for (int i = 0; i < 30; i++) execve("absent", none, i % 2 ? none : variables);
  SAY(address_space_kib() - before);
}

// In place of this program: lists what the one that started it has left to it.
int as_program(char **arguments) {
  if (!strcmp(arguments[0], "descriptors")) {
    for (int fd = 3; fd < 256; fd++)
      if (fcntl(fd, F_GETFD) >= 0) printf("%d ", fd);
    puts("");
    SAY(open("/dev/null", O_RDONLY));
  }
  if (!strcmp(arguments[0], "environment"))
    for (char **entry = environ; *entry; entry++)
      if (strncmp(*entry, "LEADLINE_", 9) && strncmp(*entry, "LD_PRELOAD=", 11)) printf("[%s]\n", *entry);
  if (!strcmp(arguments[0], "allocating")) return malloc((size_t)atol(arguments[1]) << 20) ? 6 : 5;
  if (!strcmp(arguments[0], "spawns")) {
    int count = atoi(arguments[1]);
    long before = 0;
    for (int i = 0; i < count; i++) {
      if (i == count / 100) before = address_space_kib();
      pid_t child = vfork();
      if (child == 0) {
        execve(arguments[2], (char *[]){arguments[2], NULL}, none);
        _exit(127);
      }
      int status;
      if (waitpid(child, &status, 0) != child || status) return 1;
    }
    printf("%ld\n", address_space_kib() - before);
  }
  return 0;
}
