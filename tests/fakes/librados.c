/* librados as far as the engine uses it, on files of FAKE_STORE. Operations end in threads of its own; reads may end
   far too late or never (later.h). A cluster that is left while operations are in flight ends the program. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "later.h"

struct cluster {
  atomic_int in_flight;
};
struct context {
  struct cluster *cluster;
  char pool[128];
};
typedef void (*callback)(void *completion, void *argument);
struct completion {
  callback ended;
  void *argument;
  int result;
  atomic_int holders;
};
enum action { READ, WRITE, REMOVE };
struct operation {
  enum action action;
  struct cluster *cluster;
  struct completion *completion;
  char path[512];
  char *memory;
  size_t length;
  uint64_t offset;
};

static void name(struct context *context, const char *object, char path[512]) {
  char whole[400];
  snprintf(whole, sizeof whole, "%s.%s", context->pool, object);
  stored(path, whole);
}

static int moved(const char *path, enum action action, char *memory, size_t length, uint64_t offset, int flags) {
  if (action == REMOVE) return unlink(path) ? -errno : 0;
  int file = open(path, action == READ ? O_RDONLY : O_WRONLY | O_CREAT | flags, 0600);
  if (file < 0) return -errno;
  ssize_t count = action == READ ? pread(file, memory, length, (off_t)offset)
                  : flags & O_APPEND ? write(file, memory, length)
                                     : pwrite(file, memory, length, (off_t)offset);
  int result = count < 0 ? -errno : action == READ ? (int)count : 0;
  close(file);
  return result;
}

void rados_version(int *major, int *minor, int *extra) { *major = *minor = *extra = 0; }
int rados_create2(void **made, const char *cluster, const char *user, uint64_t flags) {
  (void)cluster, (void)user, (void)flags;
  return (*made = calloc(1, sizeof(struct cluster))) ? 0 : -ENOMEM;
}
int rados_conf_read_file(void *cluster, const char *path) { return (void)cluster, (void)path, 0; }
int rados_conf_parse_env(void *cluster, const char *path) { return (void)cluster, (void)path, 0; }
int rados_conf_set(void *cluster, const char *key, const char *value) {
  return (void)cluster, (void)key, (void)value, 0;
}
int rados_connect(void *cluster) { return (void)cluster, 0; }
void rados_shutdown(void *handle) {
  struct cluster *cluster = handle;
  if (atomic_load(&cluster->in_flight)) {
    fprintf(stderr, "librados: left with operations in flight\n");
    abort();
  }
  free(cluster);
}
int rados_cluster_stat(void *cluster, uint64_t found[4]) {
  (void)cluster;
  found[0] = found[2] = 1 << 30;
  found[1] = found[3] = 0;
  return 0;
}
int rados_ioctx_create(void *cluster, const char *pool, void **made) {
  struct context *context = calloc(1, sizeof *context);
  if (!context) return -ENOMEM;
  context->cluster = cluster;
  snprintf(context->pool, sizeof context->pool, "%s", pool);
  *made = context;
  return 0;
}
void rados_ioctx_destroy(void *context) { free(context); }
void rados_ioctx_set_namespace(void *context, const char *space) { (void)context, (void)space; }

int rados_read(void *context, const char *object, char *memory, size_t length, uint64_t offset) {
  char path[512];
  name(context, object, path);
  return moved(path, READ, memory, length, offset, 0);
}
int rados_write(void *context, const char *object, const char *memory, size_t length, uint64_t offset) {
  char path[512];
  name(context, object, path);
  return moved(path, WRITE, (char *)memory, length, offset, 0);
}
int rados_write_full(void *context, const char *object, const char *memory, size_t length) {
  char path[512];
  name(context, object, path);
  return moved(path, WRITE, (char *)memory, length, 0, O_TRUNC);
}
int rados_append(void *context, const char *object, const char *memory, size_t length) {
  char path[512];
  name(context, object, path);
  return moved(path, WRITE, (char *)memory, length, 0, O_APPEND);
}
int rados_remove(void *context, const char *object) {
  char path[512];
  name(context, object, path);
  return moved(path, REMOVE, NULL, 0, 0, 0);
}
int rados_stat(void *context, const char *object, uint64_t *bytes, time_t *changed) {
  char path[512];
  struct stat found;
  name(context, object, path);
  if (stat(path, &found)) return -errno;
  *bytes = (uint64_t)found.st_size;
  *changed = found.st_mtime;
  return 0;
}
ssize_t rados_list_lockers(void) { return 0; }
int rados_break_lock(void) { return 0; }

int rados_aio_create_completion2(void *argument, callback ended, void **made) {
  struct completion *completion = malloc(sizeof *completion);
  if (!completion) return -ENOMEM;
  *completion = (struct completion){ended, argument, 0, 1};
  *made = completion;
  return 0;
}
void rados_aio_release(void *handle) {
  struct completion *completion = handle;
  if (atomic_fetch_sub(&completion->holders, 1) == 1) free(completion);
}
int rados_aio_get_return_value(void *completion) { return ((struct completion *)completion)->result; }

static void work(void *argument) {
  struct operation *operation = argument;
  struct completion *completion = operation->completion;
  completion->result = moved(operation->path, operation->action, operation->memory, operation->length,
                             operation->offset, 0);
  atomic_fetch_sub(&operation->cluster->in_flight, 1);
  free(operation);
  completion->ended(completion, completion->argument);
  rados_aio_release(completion);
}

static int start(struct context *context, enum action action, const char *object, struct completion *completion,
                 char *memory, size_t length, uint64_t offset) {
  struct operation *operation = malloc(sizeof *operation);
  if (!operation) return -ENOMEM;
  *operation = (struct operation){action, context->cluster, completion, "", memory, length, offset};
  name(context, object, operation->path);
  atomic_fetch_add(&completion->holders, 1);
  atomic_fetch_add(&context->cluster->in_flight, 1);
  later(work, operation, action == READ);
  return 0;
}
int rados_aio_read(void *context, const char *object, void *completion, char *memory, size_t length, uint64_t offset) {
  return start(context, READ, object, completion, memory, length, offset);
}
int rados_aio_write(void *context, const char *object, void *completion, const char *memory, size_t length,
                    uint64_t offset) {
  return start(context, WRITE, object, completion, (char *)memory, length, offset);
}
int rados_aio_remove(void *context, const char *object, void *completion) {
  return start(context, REMOVE, object, completion, NULL, 0, 0);
}
