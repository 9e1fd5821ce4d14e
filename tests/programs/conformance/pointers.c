// Pointers that a system call refuses with EFAULT, and some that it never looks at because it fails before.

#include "conformance.h"

#include <dirent.h>
#include <linux/openat2.h>
#include <sys/sendfile.h>

extern int eaccess(const char *, int);

static struct stat status;
static struct statx extended;
static char buffer[100];
static const struct open_how how = {.flags = O_RDONLY};

#define BAD_CASE(name, expression) CASE(name) { SAY_BAD(expression); }

BAD_CASE(bad_access, access(p, F_OK))
BAD_CASE(bad_access_mode, access(p, 0xff))
BAD_CASE(bad_faccessat, faccessat(dir, p, R_OK, 0))
BAD_CASE(bad_faccessat_directory, faccessat(77, p, R_OK, 0))
BAD_CASE(bad_faccessat_flags, faccessat(dir, p, R_OK, 0x40000))
BAD_CASE(bad_eaccess, eaccess(p, R_OK))
BAD_CASE(bad_euidaccess, euidaccess(p, R_OK))
BAD_CASE(bad_open, open(p, O_RDONLY))
BAD_CASE(bad_open_create, open(p, O_WRONLY | O_CREAT, 0644))
BAD_CASE(bad_open_flags, open(p, O_RDONLY | O_TMPFILE, 0600))
BAD_CASE(bad_open64, open64(p, O_RDONLY))
BAD_CASE(bad_openat, openat(dir, p, O_RDONLY))
BAD_CASE(bad_openat_directory, openat(77, p, O_RDONLY))
BAD_CASE(bad_openat64, openat64(dir, p, O_RDONLY))
BAD_CASE(bad_creat, creat(p, 0644))
BAD_CASE(bad_openat2, syscall(SYS_openat2, dir, p, &how, sizeof how))
BAD_CASE(bad_openat2_how, syscall(SYS_openat2, dir, "inner", p, sizeof how))
BAD_CASE(bad_openat2_size, syscall(SYS_openat2, dir, "inner", p, 4L))
BAD_CASE(bad_openat2_large, syscall(SYS_openat2, dir, p, p, 1L << 20))
BAD_CASE(bad_stat, stat(p, &status))
BAD_CASE(bad_stat_into, stat("data", (struct stat *)p))
BAD_CASE(bad_lstat, lstat(p, &status))
BAD_CASE(bad_fstat_into, fstat(data, (struct stat *)p))
BAD_CASE(bad_fstatat, fstatat(dir, p, &status, 0))
BAD_CASE(bad_fstatat_empty, fstatat(dir, p, &status, AT_EMPTY_PATH))
BAD_CASE(bad_fstatat_flags, fstatat(dir, p, &status, 0x70000))
BAD_CASE(bad_statx, statx(dir, p, 0, STATX_ALL, &extended))
BAD_CASE(bad_statx_empty, statx(dir, p, AT_EMPTY_PATH, STATX_ALL, &extended))
BAD_CASE(bad_statx_flags, statx(dir, p, 0x70000, STATX_ALL, &extended))
BAD_CASE(bad_statx_into, statx(dir, "inner", 0, STATX_ALL, (struct statx *)p))
BAD_CASE(bad_readlink, readlink(p, buffer, sizeof buffer))
BAD_CASE(bad_readlink_size, readlink(p, buffer, 0))
BAD_CASE(bad_readlink_into, readlink("link", p == bad[4] ? bad[2] : p, sizeof buffer))
BAD_CASE(bad_readlinkat, readlinkat(dir, p, buffer, sizeof buffer))
BAD_CASE(bad_rename_from, rename(p, "new"))
BAD_CASE(bad_rename_to, rename("data", p))
BAD_CASE(bad_rename_absent, rename("absent", p))
BAD_CASE(bad_renameat, renameat(dir, "inner", dir, p))
BAD_CASE(bad_renameat2_flags, renameat2(dir, p, dir, p, 0x7000))
BAD_CASE(bad_unlink, unlink(p))
BAD_CASE(bad_unlinkat, unlinkat(dir, p, 0))
BAD_CASE(bad_unlinkat_flags, unlinkat(dir, p, 0x7000))
BAD_CASE(bad_remove, remove(p))
BAD_CASE(bad_mkdir, mkdir(p, 0755))
BAD_CASE(bad_mkdirat, mkdirat(dir, p, 0755))
BAD_CASE(bad_rmdir, rmdir(p))
BAD_CASE(bad_link_from, link(p, "new"))
BAD_CASE(bad_link_to, link("data", p))
BAD_CASE(bad_link_absent, link("absent", p))
BAD_CASE(bad_linkat_flags, linkat(dir, p, dir, p, 0x70000))
BAD_CASE(bad_symlink_text, symlink(p, "new"))
BAD_CASE(bad_symlink_to, symlink("text", p))
BAD_CASE(bad_symlink_empty, symlink("", p))
BAD_CASE(bad_symlinkat, symlinkat("text", dir, p))
BAD_CASE(bad_chdir, chdir(p))
BAD_CASE(bad_chroot, chroot(p))
BAD_CASE(bad_truncate, truncate(p, 10))
BAD_CASE(bad_truncate_size, truncate(p, -1))
BAD_CASE(bad_truncate64, truncate64(p, -1))
BAD_CASE(bad_opendir, opendir(p) ? 1 : -1)
BAD_CASE(bad_scandir, scandir(p, &(struct dirent **){NULL}, NULL, NULL))
BAD_CASE(bad_fopen, fopen(p, "r") ? 1 : -1)
BAD_CASE(bad_fopen64, fopen64(p, "a") ? 1 : -1)
BAD_CASE(bad_read, read(data, p, p == bad[4] ? 0 : 100))
BAD_CASE(bad_write, write(data, p, 100))
BAD_CASE(bad_pread, pread(data, p == bad[4] ? bad[2] : p, 100, 0))
BAD_CASE(bad_pwrite, pwrite(data, p, 4000, 50))
BAD_CASE(bad_getdents64, getdents64(dir, p == bad[4] ? bad[2] : p, 100))
BAD_CASE(bad_readv, readv(data, (struct iovec *)p, 8))
BAD_CASE(bad_readv_count, readv(data, (struct iovec *)p, 100000))
BAD_CASE(bad_readv_none, readv(data, (struct iovec *)p, 0))
BAD_CASE(bad_writev, writev(data, (struct iovec *)p, 8))
BAD_CASE(bad_preadv, preadv(data, (struct iovec *)p, 8, 0))
BAD_CASE(bad_pwritev, pwritev(data, (struct iovec *)p, 8, 0))
BAD_CASE(bad_preadv2, preadv2(data, (struct iovec *)p, 8, 0, 0))
BAD_CASE(bad_pwritev2, pwritev2(data, (struct iovec *)p, 8, 0, 0x7000))
BAD_CASE(bad_readv_part, readv(data, &(struct iovec){p == bad[4] ? bad[2] : p, 10}, 1))
BAD_CASE(bad_sendfile, sendfile(dir, data, (off_t *)(p == bad[4] ? bad[2] : p ? p : bad[1]), 10))
BAD_CASE(bad_splice, splice(data, (loff_t *)(p ? p : bad[1]), data, NULL, 10, 0))
BAD_CASE(bad_copy_range, copy_file_range(data, (loff_t *)(p ? p : bad[1]), data, NULL, 10, 0))
BAD_CASE(bad_execve_path, execve(p, (char *[]){"x", NULL}, (char *[]){NULL}))
BAD_CASE(bad_execve_arguments, p ? execve("/bin/true", (char **)p, (char *[]){NULL}) : -2)
BAD_CASE(bad_execve_argument, p ? execve("/bin/true", (char *[]){"x", p, NULL}, (char *[]){NULL}) : -2)
BAD_CASE(bad_execve_environment, p ? execve("/bin/true", (char *[]){"x", NULL}, (char **)p) : -2)
BAD_CASE(bad_execve_variable, p ? execve("/bin/true", (char *[]){"x", NULL}, (char *[]){"A=1", p, NULL}) : -2)
BAD_CASE(bad_execve_absent, p ? execve("absent", (char **)p, (char **)p) : -2)
BAD_CASE(bad_execv, execv(p, (char *[]){"x", NULL}))
BAD_CASE(bad_execveat, execveat(dir, p, (char *[]){"x", NULL}, (char *[]){NULL}, 0))
BAD_CASE(bad_execveat_flags, execveat(dir, p, (char **)p, (char **)p, 0x70000))
BAD_CASE(bad_fexecve, p ? fexecve(data, (char *[]){"x", NULL}, (char **)p) : -2)
BAD_CASE(bad_execve_number, syscall(SYS_execve, p, p, p))
BAD_CASE(bad_access_number, syscall(SYS_access, p, 0xffL))
BAD_CASE(bad_statx_number, syscall(SYS_statx, dir, p, 0x70000L, 0L, p))
BAD_CASE(bad_readlinkat_number, syscall(SYS_readlinkat, dir, p, p, 0L))
BAD_CASE(bad_renameat2_number, syscall(SYS_renameat2, dir, p, dir, p, 0x7000L))
BAD_CASE(bad_preadv2_number, syscall(SYS_preadv2, data, p, 8L, 0L, 0L, 0L))

// Text of one byte below, at and above the longest that the kernel takes, ended by nothing that may be read.
CASE(endless_paths) {
  for (size_t length = 4094; length <= 4098; length++) {
    char *memory = fenced(2 * 4096), *text = memory + 2 * 4096 - length;
    memset(text, 'y', length);
    for (size_t at = 0; at < length; at += 100) text[at] = '/';
    SAY(access(text, F_OK));
    SAY(open(text, O_RDONLY));
    SAY(execve(text, (char *[]){"x", NULL}, (char *[]){NULL}));
    text[length - 1] = '\0';
    SAY(access(text, F_OK));
    SAY(open(text, O_RDONLY));
    SAY(unlink(text));
  }
}

CASE(endless_success) {
  char *text = fenced(4096) + 4096 - 5;
  memcpy(text, "data", 5);
  for (int i = 0; i < 3; i++) {
    SAY(access(text, F_OK));
    SAY(stat(text, &status));
  }
}

// The answer takes the question's place, and is not ended by a zero byte.
CASE(readlink_in_place) {
  char long_text[1000];
  memset(long_text, 'z', sizeof long_text - 1);
  long_text[sizeof long_text - 1] = '\0';
  SAY(symlink(long_text, "long"));
  for (size_t before = 0; before < 12; before += 4) {
    char *text = fenced(4096) + 4096 - 200 - before;
    strcpy(text, "long");
    SAY(readlink(text, text, 200 + before));
    strcpy(text, "long");
    SAY(readlink(text, text + 2, 198 + before));
    strcpy(text, "long");
    SAY(readlinkat(AT_FDCWD, text, text + 5, 195 + before));
  }
}

CASE(stat_in_place) {
  union {
    char text[sizeof(struct stat)];
    struct stat status;
  } *both = (void *)((char *)fenced(4096) + 4096 - sizeof(struct stat));
  strcpy(both->text, "data");
  SAY(stat(both->text, &both->status));
  strcpy(both->text, "data");
  SAY(lstat(both->text, &both->status));
}
