/* A subject that calls functions on files and directories, each by its own symbol, and prints what it did as JSON
 * under these names: those that trace_calls.c and old.c have not. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "truth.h"

int openat2(int, const char *, const void *, size_t); /* newer.c */

static char buffer[4096];

static void opened(void) {
    char names[5][16] = {"aXXXXXX", "bXXXXXX", "cXXXXXX.t", "dXXXXXX.t", "eXXXXXX.t"};
    DO(close, close(DO(creat64, creat64("data", 0644))));
    DO(close, close(DO(mkstemp64, mkstemp64(names[0]))));
    DO(close, close(DO(mkostemp64, mkostemp64(names[1], O_APPEND))));
    DO(close, close(DO(mkstemps64, mkstemps64(names[2], 2))));
    DO(close, close(DO(mkostemps, mkostemps(names[3], 2, O_APPEND))));
    DO(close, close(DO(mkostemps64, mkostemps64(names[4], 2, O_APPEND))));
    uint64_t how[3] = {O_RDONLY, 0, 0};
    DO(close, close(DO(openat2, openat2(AT_FDCWD, "data", how, sizeof how))));
    FAILS(openat2, openat2(AT_FDCWD, "absent", how, sizeof how));
}

static void worked_on(void) {
    int file = DO(open, open("data", O_RDWR)), to = DO(open, open("copy", O_WRONLY | O_CREAT, 0644));
    DO(posix_fallocate64, posix_fallocate64(file, 0, 8192));
    WRITE(write, write(file, buffer, sizeof buffer));
    off64_t start = 0;
    long moved = DO(sendfile64, sendfile64(to, file, &start, 3000));
    truth->read += moved, truth->written += moved;
    DO(readahead, readahead(file, 0, 4096));
    DO(syncfs, syncfs(file));
    truth_count("mmap64");
    void *seen = mmap64(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    if (seen == MAP_FAILED) exit(2);
    munmap(seen, 4096);
    DO(fcntl64, fcntl64(file, F_DUPFD, 60));
    DO(dup2, dup2(file, 61));
    truth_count("closefrom"), closefrom(60);
    DO(close, close(to));
    DO(close, close(file));
    DO(truncate64, truncate64("data", 5000));
}

static void named(void) {
    DO(access, access("data", R_OK));
    DO(eaccess, eaccess("data", R_OK));
    DO(euidaccess, euidaccess("data", R_OK));
    DO(linkat, linkat(AT_FDCWD, "data", AT_FDCWD, "hard", 0));
    DO(symlinkat, symlinkat("data", AT_FDCWD, "soft"));
    DO(readlinkat, readlinkat(AT_FDCWD, "soft", buffer, sizeof buffer));
    DO(remove, remove("hard"));
    FAILS(remove, remove("hard"));
}

static DIR *listed(const char *name, DIR *directory) {
    truth_count(name);
    if (directory == NULL) exit(2);
    return directory;
}

static void list(void) {
    DO(mkdir, mkdir("folder", 0755));
    for (int i = 0; i < 3; i++) {
        char name[] = "folder/0";
        name[7] += i;
        DO(close, close(DO(creat64, creat64(name, 0644))));
    }
    int file = DO(open, open("folder", O_RDONLY | O_DIRECTORY));
    DO(getdents64, getdents64(file, buffer, sizeof buffer));
    DO(lseek, lseek(file, 0, SEEK_SET));
    DIR *all = listed("fdopendir", fdopendir(file));
    struct dirent one, *got = &one;
    struct dirent64 large, *large_got = &large;
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    do DO(readdir_r, readdir_r(all, &one, &got)); while (got != NULL);
    DO(closedir, closedir(all));
    all = listed("opendir", opendir("folder"));
    do DO(readdir64_r, readdir64_r(all, &large, &large_got)); while (large_got != NULL);
    DO(closedir, closedir(all));
    all = listed("opendir", opendir("folder"));
    do truth_count("readdir64"); while (readdir64(all) != NULL);
    DO(closedir, closedir(all));
    struct dirent **names;
    struct dirent64 **large_names;
    if (DO(scandir, scandir("folder", &names, NULL, NULL)) != 5) exit(2);
    if (DO(scandir64, scandir64("folder", &large_names, NULL, NULL)) != 5) exit(2);
}

/* Last: from a changed root on, no path is what it was. Where that is not allowed it is only asked for. */
static void gone(void) {
    int back = DO(open, open(".", O_RDONLY | O_DIRECTORY));
    DO(chdir, chdir("folder"));
    FAILS(chdir, chdir("absent"));
    DO(fchdir, fchdir(back));
    DO(close, close(back));
    truth_count("chroot");
    if (chroot("folder") != 0) perror("chroot");
}

int main(void) {
    truth_begin();
    opened();
    worked_on();
    named();
    list();
    gone();
    truth_print();
    return 0;
}
