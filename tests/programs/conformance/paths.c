// What names files: opening, links, renaming, directories, with the errors that each has.

#include "conformance.h"

#include <dirent.h>
#include <limits.h>
#include <sys/resource.h>

static struct stat status;

#define ONE(name, expression) CASE(name) { SAY(expression); }

static long kind_of(const char *path) {
  return lstat(path, &status) ? -1 : (long)(status.st_mode & S_IFMT);
}

ONE(open_absent, open("absent", O_RDONLY))
ONE(open_through_file, open("data/x", O_RDONLY))
ONE(open_loop, open("loop", O_RDONLY))
ONE(open_dangling, open("dangling", O_RDONLY))
ONE(open_dangling_create, open("dangling", O_WRONLY | O_CREAT | O_EXCL, 0644))
ONE(open_exists, open("data", O_WRONLY | O_CREAT | O_EXCL, 0644))
ONE(open_directory_write, open("dir", O_WRONLY))
ONE(open_file_directory, open("data", O_RDONLY | O_DIRECTORY))
ONE(open_nofollow, open("link", O_RDONLY | O_NOFOLLOW))
ONE(open_nofollow_path, open("link", O_PATH | O_NOFOLLOW))
ONE(open_empty_name, open("", O_RDONLY))
ONE(open_fifo, open("fifo", O_WRONLY | O_NONBLOCK))
ONE(open_temporary, open(".", O_RDWR | O_TMPFILE, 0600))
ONE(open_number, data)
ONE(open_lowest, open("data", O_RDONLY))
ONE(open_twice, dup(open("data", O_RDONLY)))
ONE(open_executable_busy, open(self, O_WRONLY))
ONE(openat_absolute, openat(77, "/dev/null", O_RDONLY))
ONE(openat_file, openat(data, "x", O_RDONLY))
ONE(openat_closed, openat(77, "x", O_RDONLY))
ONE(stat_absent, stat("absent", &status))
ONE(stat_dangling, stat("dangling", &status))
ONE(stat_loop, stat("loop", &status))
ONE(lstat_dangling, kind_of("dangling"))
ONE(lstat_fifo, kind_of("fifo"))
ONE(stat_empty_name, stat("", &status))
ONE(stat_slash, stat("data/", &status))
ONE(fstatat_empty, fstatat(data, "", &status, AT_EMPTY_PATH))
ONE(fstatat_empty_here, fstatat(AT_FDCWD, "", &status, AT_EMPTY_PATH))
ONE(fstat_closed, fstat(77, &status))
ONE(fstat_negative, fstat(-1, &status))
ONE(access_absent, access("absent", R_OK))
ONE(access_execute, access("data", X_OK))
ONE(faccessat_link, faccessat(AT_FDCWD, "dangling", F_OK, AT_SYMLINK_NOFOLLOW))
ONE(mkdir_exists, mkdir("dir", 0755))
ONE(mkdir_deep, mkdir("absent/x", 0755))
ONE(mkdir_file, mkdir("data", 0755))
ONE(rmdir_full, rmdir("dir"))
ONE(rmdir_file, rmdir("data"))
ONE(rmdir_dot, rmdir("dir/."))
ONE(unlink_directory, unlink("dir"))
ONE(unlink_absent, unlink("absent"))
ONE(unlinkat_directory, unlinkat(AT_FDCWD, "dir", AT_REMOVEDIR))
ONE(remove_full, remove("dir"))
ONE(remove_file, remove("empty"))
ONE(rename_absent, rename("absent", "x"))
ONE(rename_into_itself, rename("dir", "dir/x"))
ONE(rename_over_directory, rename("data", "dir"))
ONE(rename_over_file, rename("dir", "data"))
ONE(rename_devices, rename("data", "/proc/x"))
ONE(renameat2_exists, renameat2(AT_FDCWD, "data", AT_FDCWD, "empty", 1))
ONE(renameat2_exchange, renameat2(AT_FDCWD, "data", AT_FDCWD, "dir", 2))
ONE(link_exists, link("data", "empty"))
ONE(link_directory, link("dir", "x"))
ONE(link_devices, link("data", "/proc/x"))
ONE(linkat_descriptor, linkat(data, "", AT_FDCWD, "x", AT_EMPTY_PATH))
ONE(symlink_exists, symlink("x", "data"))
ONE(readlink_file, readlink("data", (char[10]){0}, 10))
ONE(readlink_cut, readlink("link", (char[2]){0}, 2))
ONE(chdir_file, chdir("data"))
ONE(chdir_absent, chdir("absent"))
ONE(fchdir_file, fchdir(data))
ONE(fchdir_closed, fchdir(77))
ONE(truncate_directory, truncate("dir", 0))
ONE(truncate_negative, truncate("data", -1))
ONE(truncate_absent, truncate("absent", 0))
ONE(opendir_file, opendir("data") ? 1 : -1)
ONE(opendir_absent, opendir("absent") ? 1 : -1)
ONE(creat_read, read(creat("new", 0644), (char[1]){0}, 1))
ONE(open_flags_kept, fcntl(open("data", O_RDWR | O_APPEND | O_NONBLOCK), F_GETFL) & (O_APPEND | O_NONBLOCK | O_RDWR))
ONE(open_close_on_exec, fcntl(open("data", O_RDONLY | O_CLOEXEC), F_GETFD))
ONE(open_not_close_on_exec, fcntl(open("data", O_RDONLY), F_GETFD))

static void long_name(size_t length) {
  char *name = malloc(length + 1);
  memset(name, 'n', length);
  name[length] = '\0';
  SAY(open(name, O_WRONLY | O_CREAT, 0644));
  SAY(stat(name, &status));
  SAY(mkdir(name, 0755));
  SAY(rename("empty", name));
  SAY(unlink(name));
}

CASE(name_255) { long_name(255); }
CASE(name_256) { long_name(256); }
CASE(name_4095) { long_name(4095); }
CASE(name_4096) { long_name(4096); }
CASE(name_100000) { long_name(100000); }

CASE(path_4095) {
  char path[4097] = "";
  for (int i = 0; i < 2047; i++) strcat(path, "./");
  SAY((long)strlen(path));
  SAY(stat(path, &status));
  strcat(path, "x");
  SAY(stat(path, &status));
  strcat(path, "x");
  SAY(stat(path, &status));
}

CASE(modes_and_umask) {
  umask(027);
  SAY(close(open("a", O_CREAT | O_WRONLY, 0666)));
  SAY(mkdir("b", 0777));
  SAY(close(creat("c", 0777)));
  for (const char *name = "a\0b\0c\0"; *name; name += 2) {
    SAY(stat(name, &status));
    SAY(status.st_mode);
  }
}

CASE(directory_entries) {
  char names[2000] = "";
  struct dirent **list;
  int count = scandir(".", &list, NULL, alphasort);
  for (int i = 0; i < count; i++) strcat(strcat(names, list[i]->d_name), " ");
  puts(names);
  DIR *stream = opendir(".");
  count = 0;
  while (readdir(stream)) count++;
  SAY(count);
  rewinddir(stream);
  count = 0;
  errno = 0;
  while (readdir64(stream)) count++;
  SAY(count);
  SAY(dirfd(stream));
  SAY(closedir(stream));
  SAY(open("data", O_RDONLY));
}

CASE(directory_from_descriptor) {
  DIR *stream = fdopendir(dup(dir));
  SAY(dirfd(stream));
  SAY(closedir(stream));
  SAY(fcntl(dir, F_GETFD));
  SAY(fdopendir(data) ? 1 : -1);
  SAY(fdopendir(77) ? 1 : -1);
}

CASE(working_directory_gone) {
  SAY(mkdir("gone", 0755));
  SAY(chdir("gone"));
  SAY(rmdir("../gone"));
  SAY(open("x", O_WRONLY | O_CREAT, 0644));
  SAY(stat("x", &status));
  SAY(getcwd((char[100]){0}, 100) ? 1 : -1);
  SAY(chdir(".."));
  SAY(chdir("/"));
}

CASE(working_directory_deep) {
  int depth = 0;
  char name[201];
  memset(name, 'd', 200);
  name[200] = '\0';
  while (depth < 30 && !mkdir(name, 0755) && !chdir(name)) depth++;
  SAY(depth);
  SAY(close(open("x", O_WRONLY | O_CREAT, 0644)));
  SAY(stat("x", &status));
  SAY(unlink("x"));
}

CASE(changed_root) {
  if (geteuid()) return;
  SAY(chroot("dir"));
  SAY(chdir("/"));
  SAY(stat("/inner", &status));
  SAY(open("/absent", O_RDONLY));
  SAY(close(open("/new", O_WRONLY | O_CREAT, 0644)));
  SAY(execve("/bin/true", (char *[]){"true", NULL}, (char *[]){NULL}));
  pid_t child = fork();
  if (child == 0) _exit(access("/new", F_OK));
  ended("child", child);
}

CASE(temporary_names) {
  char name[] = "tXXXXXX", end[] = "tXXXXXX.c", wrong[] = "tXXX";
  SAY(mkstemp(name));
  SAY(mkostemp(strcpy(name, "tXXXXXX"), O_APPEND | O_CLOEXEC));
  SAY(mkstemps(end, 2));
  SAY(mkostemps(strcpy(end, "tXXXXXX.c"), 2, O_CLOEXEC));
  SAY(mkstemp(wrong));
  SAY(mkstemps(wrong, 9));
  SAY(mkdtemp(strcpy(name, "tXXXXXX")) ? 1 : -1);
  puts(wrong);
  SAY(tmpfile() ? 1 : -1);
}

CASE(names_of_any_bytes) {
  char name[3] = "";
  int made = 0, seen = 0;
  for (int byte = 1; byte < 256; byte += 3) {
    if (byte == '/' || byte == '.') continue;
    name[0] = (char)byte;
    name[1] = '\n';
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
    made += fd >= 0;
    close(fd);
    seen += !stat(name, &status);
  }
  SAY(made);
  SAY(seen);
}
