// Threads: small stacks, cancelling, forks among them, libraries that come and go.

#include "conformance.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>

static char byte;
static struct stat status;

static void *calls(void *unused) {
  (void)unused;
  long sum = 0;
  for (int i = 0; i < 20; i++) {
    int fd = open("data", O_RDONLY);
    sum += read(fd, &byte, 1) + fstat(fd, &status) + stat("dir/inner", &status) + access("absent", F_OK) + close(fd);
  }
  return (void *)sum;
}

static void run_threads(int count, size_t stack) {
  pthread_t all[64];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (stack) SAY_PLAIN(pthread_attr_setstacksize(&attributes, stack));
  for (int i = 0; i < count; i++)
    if (pthread_create(&all[i], &attributes, calls, NULL)) printf("not created\n");
  long sum = 0;
  for (int i = 0; i < count; i++) {
    void *result;
    pthread_join(all[i], &result);
    sum += (long)result;
  }
  SAY(sum);
}

CASE(threads_smallest_stack) { run_threads(4, (size_t)sysconf(_SC_THREAD_STACK_MIN)); }
CASE(threads_many) { run_threads(64, 0); }
CASE(threads_again) {
  for (int i = 0; i < 20; i++) run_threads(2, 0);
}

static sem_t waiting;
static int cleaned;
static int ends[2];

static void clean(void *unused) {
  (void)unused;
  cleaned++;
  (void)!pwrite(data, "c", 1, 0);
}

static void *waits(void *how) {
  pthread_cleanup_push(clean, NULL);
  sem_post(&waiting);
  if (!how) (void)!read(ends[0], &byte, 1);
  else
    for (;;) (void)!pread(data, &byte, 1, 0);
  pthread_cleanup_pop(0);
  return NULL;
}

CASE(cancelled) {
  SAY(pipe(ends));
  sem_init(&waiting, 0, 0);
  for (long how = 0; how < 2; how++) {
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, waits, (void *)how);
    sem_wait(&waiting);
    SAY_PLAIN(pthread_cancel(thread));
    SAY_PLAIN(pthread_join(thread, &result));
    SAY(result == PTHREAD_CANCELED);
  }
  SAY(cleaned);
  SAY(read(data, &byte, 1));
}

static volatile int stopping;

static void *busy(void *unused) {
  (void)unused;
  while (!stopping) {
    int fd = open("data", O_RDONLY);
    (void)!pread(fd, &byte, 1, 0);
    close(fd);
  }
  return NULL;
}

CASE(fork_among_threads) {
  pthread_t all[4];
  for (int i = 0; i < 4; i++) pthread_create(&all[i], NULL, busy, NULL);
  int good = 0;
  for (int i = 0; i < 15; i++) {
    pid_t child = fork();
    if (child == 0) {
      int fd = open("data", O_RDONLY);
      _exit(fd < 0 || read(fd, &byte, 1) != 1);
    }
    int state = 1;
    waitpid(child, &state, 0);
    good += state == 0;
  }
  stopping = 1;
  for (int i = 0; i < 4; i++) pthread_join(all[i], NULL);
  SAY(good);
}

CASE(program_among_threads) {
  pthread_t thread;
  pthread_create(&thread, NULL, busy, NULL);
  fflush(stdout);
  execl("/bin/true", "true", NULL);
}

static void *forks(void *unused) {
  (void)unused;
  pid_t child = fork();
  if (child == 0) {
    int fd = open("data", O_RDONLY);
    exit(fd < 0 || read(fd, &byte, 1) != 1);
  }
  int state;
  waitpid(child, &state, 0);
  return (void *)(long)state;
}

CASE(fork_in_thread) {
  pthread_t thread;
  void *result;
  pthread_create(&thread, NULL, forks, NULL);
  pthread_join(thread, &result);
  SAY((long)result);
}

CASE(main_thread_ends) {
  pthread_t thread;
  pthread_create(&thread, NULL, calls, NULL);
  fflush(stdout);
  pthread_exit(NULL);
}

CASE(keys_at_end) {
  pthread_key_t key;
  int made = 0;
  while (made < PTHREAD_KEYS_MAX && pthread_key_create(&key, NULL) == 0) made++;
  SAY(made >= PTHREAD_KEYS_MAX - 16);
  run_threads(2, 0);
}

CASE(libraries) {
  for (int i = 0; i < 10; i++) {
    void *library = dlopen("libm.so.6", RTLD_NOW | (i % 2 ? RTLD_LOCAL : RTLD_GLOBAL));
    double (*cosine)(double) = (double (*)(double))dlsym(library, "cos");
    if (cosine(0) != 1 || dlclose(library)) printf("failed\n");
  }
  SAY(dlopen("libabsent.so", RTLD_NOW) ? 1 : -2);
  void *all = dlopen(NULL, RTLD_NOW);
  ssize_t (*reads)(int, void *, size_t) = (ssize_t (*)(int, void *, size_t))dlsym(all, "read");
  SAY(reads(data, &byte, 1));
  SAY(dlsym(RTLD_DEFAULT, "open") != NULL);
  void *library = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
  SAY(library != NULL);
}
