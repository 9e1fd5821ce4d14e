/* See later.h. A few threads that take what comes, and one more for each that is late. */
#include "later.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3, SOON_US = 150 };

struct task {
  void (*work)(void *);
  void *argument;
  struct task *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t posted = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct task *first, **last = &first;
static atomic_uint asked;

static unsigned number(const char *name) {
  const char *text = getenv(name);
  return text ? (unsigned)atoi(text) : 0;
}

static void *serve(void *seed_at) {
  unsigned seed = (unsigned)(size_t)seed_at;
  for (;;) {
    pthread_mutex_lock(&lock);
    while (!first) pthread_cond_wait(&posted, &lock);
    struct task *task = first;
    first = task->next;
    if (!first) last = &first;
    pthread_mutex_unlock(&lock);
    usleep((unsigned)rand_r(&seed) % SOON_US);
    task->work(task->argument);
    free(task);
  }
  return NULL;
}

static void *serve_late(void *argument) {
  struct task *task = argument;
  usleep(number("FAKE_LATE_MS") * 1000);
  task->work(task->argument);
  free(task);
  return NULL;
}

static void spawn(void *(*serve_it)(void *), void *argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, serve_it, argument)) abort();
  pthread_detach(thread);
}

static void begin(void) {
  for (size_t seed = 1; seed <= THREADS; ++seed) spawn(serve, (void *)seed);
}

void later(void (*work)(void *), void *argument, int may_fail) {
  unsigned count = may_fail ? atomic_fetch_add(&asked, 1) + 1 : 0;
  unsigned never = number("FAKE_NEVER"), late = number("FAKE_LATE");
  if (count && never && count % never == 0) return;
  struct task *task = malloc(sizeof *task);
  if (!task) abort();
  *task = (struct task){work, argument, NULL};
  if (count && late && count % late == 0) {
    spawn(serve_late, task);
    return;
  }
  pthread_once(&once, begin);
  pthread_mutex_lock(&lock);
  *last = task;
  last = &task->next;
  pthread_cond_signal(&posted);
  pthread_mutex_unlock(&lock);
}

void stored(char path[512], const char *name) {
  const char *store = getenv("FAKE_STORE");
  int length = snprintf(path, 512, "%s/", store ? store : "/nowhere");
  for (; *name && length < 511; ++name) path[length++] = *name == '/' ? '%' : *name;
  path[length] = 0;
}
