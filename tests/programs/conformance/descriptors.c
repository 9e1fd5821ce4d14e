// Numbers of descriptors: which are given, shared, closed and given again. The tracer may hold none that is seen.

#include "conformance.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define ONE(name, expression) CASE(name) { SAY(expression); }

static struct stat status;

ONE(close_closed, close(77))
ONE(close_negative, close(-1))
ONE(close_large, close(1 << 30))
ONE(dup_closed, dup(77))
ONE(dup_lowest, dup(data))
ONE(dup2_same, dup2(data, data))
ONE(dup2_same_closed, dup2(77, 77))
ONE(dup2_negative, dup2(data, -1))
ONE(dup2_large, dup2(data, 1 << 30))
ONE(dup2_high, dup2(data, 1000))
ONE(dup3_same, dup3(data, data, 0))
ONE(dup3_flags, dup3(data, 50, 77))
ONE(fcntl_duplicate, fcntl(data, F_DUPFD, 100))
ONE(fcntl_duplicate_negative, fcntl(data, F_DUPFD, -1))
ONE(fcntl_closed, fcntl(77, F_GETFL))
ONE(fcntl_command, fcntl(data, 7777))
ONE(fcntl_lock, fcntl(data, F_SETLK, &(struct flock){.l_type = F_WRLCK}))
ONE(fcntl_lock_pointer, fcntl(data, F_SETLK, bad[2]))
ONE(close_range_order, close_range(10, 5, 0))
ONE(close_range_flags, close_range(10, 20, 77))

static void list_descriptors(void) {
  DIR *stream = opendir("/proc/self/fd");
  struct dirent *entry;
  int open[256] = {0};
  while ((entry = readdir(stream)))
    if (atoi(entry->d_name) < 256) open[atoi(entry->d_name)] = 1;
  closedir(stream);
  for (int fd = 3; fd < 256; fd++)
    if (open[fd]) printf("%d ", fd);
  puts("");
}

CASE(descriptors_of_child) {
  list_descriptors();
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    list_descriptors();
    SAY(open("data", O_RDONLY));
    fflush(stdout);
    _exit(0);
  }
  ended("child", child);
}

CASE(descriptors_of_program) {
  fcntl(data, F_SETFD, FD_CLOEXEC);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    execl(self, self, "as", "descriptors", NULL);
    _exit(127);
  }
  ended("child", child);
}

CASE(close_all) {
  fflush(stdout);
  int kept = fcntl(1, F_DUPFD, 200);
  SAY(close_range(3, 199, 0));
  SAY(open("data", O_RDONLY));
  SAY(open("data", O_RDONLY));
  fflush(stdout);
  SAY(close_range(3, ~0U, 0));
  SAY(open("data", O_RDONLY));
  SAY(fcntl(kept, F_GETFD));
}

CASE(close_from) {
  SAY(dup2(data, 100));
  closefrom(3);
  SAY(fcntl(100, F_GETFD));
  SAY(open("data", O_RDONLY));
  SAY(read(3, &status, 10));
}

CASE(close_on_exec_range) {
  SAY(dup2(data, 100));
  SAY(close_range(100, 100, 4));
  SAY(fcntl(100, F_GETFD));
  SAY(read(100, &status, 10));
}

// Closed without a hook's knowledge: by the kernel, in a table of its own.
CASE(close_range_unshare) {
  SAY(close_range(3, ~0U, 2));
  SAY(open("data", O_RDONLY));
}

CASE(numbers_again) {
  char byte;
  for (int i = 0; i < 300; i++) {
    int fd = open(i % 2 ? "data" : "empty", O_RDONLY);
    if (fd != dir + 1) printf("%d at %d\n", fd, i);
    if (read(fd, &byte, 1) != i % 2) printf("read of the wrong file at %d\n", i);
    close(fd);
  }
  SAY(open("data", O_RDONLY));
}

CASE(duplicates) {
  char buffer[10];
  int other = dup(data), third = fcntl(data, F_DUPFD_CLOEXEC, 40);
  SAY(close(data));
  SAY(read(other, buffer, 10));
  SAY(lseek(third, 0, SEEK_CUR));
  SAY(dup2(dir, other));
  SAY(read(other, buffer, 10));
  SAY(read(third, buffer, 10));
  SAY(close(third));
  SAY(read(third, buffer, 10));
}

CASE(descriptors_sent) {
  int ends[2];
  SAY(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
  char control[CMSG_SPACE(sizeof(int))] = "", byte = 'b';
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS, header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &data, sizeof data);
  SAY(sendmsg(ends[0], &message, 0));
  SAY(recvmsg(ends[1], &message, 0));
  int got;
  memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof got);
  SAY(got);
  SAY(read(got, control, 10));
  SAY(lseek(data, 0, SEEK_CUR));
}

CASE(descriptor_limit) {
  SAY(setrlimit(RLIMIT_NOFILE, &(struct rlimit){8, 8}));
  int count = 0;
  while (open("data", O_RDONLY) >= 0) count++;
  SAY(count);
  SAY(open("data", O_RDONLY));
  SAY(dup(data));
  SAY(fopen("data", "r") ? 1 : -1);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) _exit(read(data, &status, 10) != 10);
  ended("child", child);
  child = fork();
  if (child == 0) {
    execl("/bin/true", "true", NULL);
    _exit(126);
  }
  ended("program without a descriptor", child);
}

CASE(standard_closed) {
  fflush(stdout);
  int kept = fcntl(1, F_DUPFD_CLOEXEC, 200);
  for (int fd = 0; fd < 200; fd++) close(fd);
  pid_t child = fork();
  int first = open("data", O_RDONLY);
  if (child == 0) _exit(first);
  dup2(kept, 1);
  SAY(first);
  ended("child", child);
}
