// One call in a tight loop, for what a tracer adds to it: prints ns of CPU a call. With threads, all use one file.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *operation, *path;
static long calls;
static int fd;

static double now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1e9 + time.tv_nsec;
}

static void *loop(void *unused) {
  (void)unused;
  ssize_t done = 0;
  static __thread char buffer[4096];
  struct stat status;
  if (!strcmp(operation, "pread"))
    for (long i = 0; i < calls; i++) done += pread(fd, buffer, 64, i % 1024 * 64);
  else if (!strcmp(operation, "pwrite"))
    for (long i = 0; i < calls; i++) done += pwrite(fd, buffer, 64, i % 1024 * 64);
  else if (!strcmp(operation, "lseek"))
    for (long i = 0; i < calls; i++) lseek(fd, i % 1024 * 64, SEEK_SET);
  else
    for (long i = 0; i < calls; i++) stat(path, &status);
  return done < 0 ? buffer : NULL;
}

int main(int count, char **arguments) {
  if (count != 5) return 2;
  operation = arguments[1], path = arguments[2], calls = atol(arguments[3]);
  int threads = atoi(arguments[4]);
  fd = open(path, O_RDWR | O_CREAT, 0644);
  if (fd < 0 || ftruncate(fd, 1 << 20)) return 1;
  long measured = calls;
  calls = 1000;
  loop(NULL);
  calls = measured;
  pthread_t *all = calloc(threads, sizeof *all);
  double begun = now_ns();
  for (int i = 0; i < threads; i++)
    if (pthread_create(&all[i], NULL, loop, NULL)) return 1;
  for (int i = 0; i < threads; i++) pthread_join(all[i], NULL);
  printf("%.2f\n", (now_ns() - begun) / calls / threads);
  return 0;
}
