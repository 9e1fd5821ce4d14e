/* A subject whose calls on files are known: `calls SCENARIO` works in the current directory and prints what it
 * did as JSON. Lengths and flags are volatile, so that a fortified build uses the checked variants. */
#define _GNU_SOURCE
#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "truth.h"

static char buffer[1 << 16];
static volatile size_t length = 1000;
static volatile int read_only = O_RDONLY;

static void data(void) {
    int file = DO(open, open("data", O_RDWR | O_CREAT | O_TRUNC, 0644));
    for (int i = 0; i < 5; i++) WRITE(write, write(file, buffer, length));
    DO(lseek, lseek(file, 0, SEEK_SET));
    for (int i = 0; i < 3; i++) READ(read, read(file, buffer, length));
    WRITE(pwrite, pwrite(file, buffer, length, 10000));
    READ(pread, pread(file, buffer, length + 500, 10000));
    struct iovec two[2] = {{buffer, 100}, {buffer + 100, 200}};
    WRITE(writev, writev(file, two, 2));
    READ(readv, readv(file, two, 2));
    WRITE(pwritev, pwritev(file, two, 2, 5000));
    READ(preadv, preadv(file, two, 2, 5000));
    WRITE(pwritev2, pwritev2(file, two, 2, 6000, 0));
    READ(preadv2, preadv2(file, two, 2, 6000, 0));
    DO(lseek, lseek(file, 0, SEEK_END));
    READ(read, read(file, buffer, length)); /* at the end: a read of nothing */
    DO(close, close(file));
    file = DO(open, open("data", O_WRONLY));
    FAILS(read, read(file, buffer, length));
    DO(close, close(file));
}

static void opens(void) {
    DO(close, close(DO(creat, creat("one", 0644))));
    DO(close, close(DO(open, open("one", read_only))));
    DO(close, close(DO(openat, openat(AT_FDCWD, "one", read_only))));
    int directory = DO(open, open(".", O_RDONLY | O_DIRECTORY));
    DO(close, close(DO(openat, openat(directory, "two", O_CREAT | O_WRONLY, 0600))));
    DO(close, close(directory));
    FAILS(open, open("absent", read_only));
    struct { unsigned long long flags, mode, resolve; } how = {0, 0, 0};
    DO(close, close(DO(openat2, syscall(SYS_openat2, AT_FDCWD, "one", &how, sizeof how))));
    DO(close, close(DO(openat, syscall(SYS_openat, AT_FDCWD, "one", O_RDONLY))));
    char first[] = "madeXXXXXX", second[] = "madeXXXXXX.txt", third[] = "madeXXXXXX", fourth[] = "madeXXXXXX.txt";
    DO(close, close(DO(mkstemp, mkstemp(first))));
    DO(close, close(DO(mkstemps, mkstemps(second, 4))));
    DO(close, close(DO(mkostemp, mkostemp(third, O_CLOEXEC))));
    DO(close, close(DO(mkostemps, mkostemps(fourth, 4, O_CLOEXEC))));
}

static void descriptors(void) {
    int file = DO(open, open("data", O_RDWR | O_CREAT | O_TRUNC, 0644));
    WRITE(write, write(file, buffer, 3000));
    int copy = DO(dup, dup(file));
    DO(dup2, dup2(file, 50));
    DO(dup3, dup3(file, 51, O_CLOEXEC));
    int high = DO(fcntl, fcntl(file, F_DUPFD, 60));
    DO(fcntl, fcntl(file, F_DUPFD_CLOEXEC, 70));
    DO(lseek, lseek(copy, 0, SEEK_SET));
    READ(read, read(high, buffer, 1000)); /* all share one offset */
    READ(read, read(50, buffer, 1000));
    DO(close, close(copy));
    DO(close_range, close_range(50, 90, 0));
    READ(read, read(file, buffer, 5000)); /* what is left */
    DO(close, close(file));
    int added = DO(open, open("data", O_WRONLY | O_APPEND));
    WRITE(write, write(added, buffer, 500));
    DO(close, close(added));
}

static void names(void) {
    struct stat found;
    struct statx more;
    DO(close, close(DO(creat, creat("a", 0644))));
    DO(rename, rename("a", "b"));
    DO(renameat, renameat(AT_FDCWD, "b", AT_FDCWD, "c"));
    DO(renameat2, renameat2(AT_FDCWD, "c", AT_FDCWD, "d", RENAME_NOREPLACE));
    DO(link, link("d", "e"));
    DO(linkat, linkat(AT_FDCWD, "d", AT_FDCWD, "f", 0));
    DO(symlink, symlink("d", "g"));
    DO(symlinkat, symlinkat("d", AT_FDCWD, "h"));
    DO(stat, stat("g", &found));
    DO(lstat, lstat("g", &found));
    DO(fstatat, fstatat(AT_FDCWD, "d", &found, 0));
    DO(statx, statx(AT_FDCWD, "d", 0, STATX_ALL, &more));
    int file = DO(open, open("d", O_RDWR));
    DO(fstat, fstat(file, &found));
    DO(close, close(file));
    DO(access, access("d", R_OK));
    DO(faccessat, faccessat(AT_FDCWD, "d", R_OK, 0));
    DO(readlink, readlink("g", buffer, 10));
    FAILS(stat, stat("absent", &found));
    DO(unlink, unlink("e"));
    DO(unlinkat, unlinkat(AT_FDCWD, "f", 0));
    DO(mkdir, mkdir("sub", 0755));
    DO(mkdirat, mkdirat(AT_FDCWD, "sub/two", 0755));
    DO(unlinkat, unlinkat(AT_FDCWD, "sub/two", AT_REMOVEDIR));
    DO(rmdir, rmdir("sub"));
    DO(remove, remove("h"));
}

static void directory(void) {
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "file%d", i);
        DO(close, close(DO(creat, creat(name, 0644))));
    }
    DIR *stream = opendir(".");
    truth_count("opendir");
    if (stream == NULL) exit(2);
    while (readdir(stream) != NULL) truth_count("readdir");
    truth_count("readdir");
    DO(closedir, closedir(stream));
}

static void sizes(void) {
    int file = DO(open, open("data", O_RDWR | O_CREAT, 0644));
    DO(ftruncate, ftruncate(file, 100000));
    DO(truncate, truncate("data", 50000));
    DO(fallocate, fallocate(file, 0, 0, 60000));
    DO(posix_fallocate, posix_fallocate(file, 0, 70000));
    DO(posix_fadvise, posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL));
    WRITE(write, write(file, buffer, 4096));
    DO(fsync, fsync(file));
    DO(fdatasync, fdatasync(file));
    DO(sync_file_range, sync_file_range(file, 0, 4096, SYNC_FILE_RANGE_WRITE));
    void *seen = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    truth_count("mmap");
    if (seen == MAP_FAILED) exit(2);
    DO(msync, msync(seen, 8192, MS_SYNC));
    munmap(seen, 8192);
    DO(close, close(file));
}

static void moves(const char *name, long moved) {
    truth_count(name);
    truth_sure(name, moved);
    truth->read += moved;
    truth->written += moved;
}

static void copies(void) {
    int from = DO(open, open("from", O_RDWR | O_CREAT | O_TRUNC, 0644));
    int to = DO(open, open("to", O_RDWR | O_CREAT | O_TRUNC, 0644));
    WRITE(write, write(from, buffer, 20000));
    loff_t offset = 1000;
    moves("copy_file_range", copy_file_range(from, &offset, to, NULL, 5000, 0));
    off_t start = 0;
    moves("sendfile", sendfile(to, from, &start, 7000));
    int ends[2];
    if (pipe(ends) != 0) exit(2);
    READ(splice, splice(from, &offset, ends[1], NULL, 4000, 0)); /* a pipe is no file: this side only reads */
    WRITE(splice, splice(ends[0], NULL, to, NULL, 4000, 0));
    DO(close, close(from));
    DO(close, close(to));
}

static void buffered(void) {
    FILE *file = fopen("text", "w+");
    truth_count("fopen");
    if (file == NULL) exit(2);
    for (int i = 0; i < 100; i++) truth->written += fwrite(buffer, 1, 333, file), truth_count("fwrite");
    truth->written += fprintf(file, "%s\n", "twelve chars"), truth_count("fprintf");
    DO(fflush, fflush(file));
    DO(fseek, fseek(file, 0, SEEK_SET));
    for (size_t got = 1; got > 0; truth_count("fread")) truth->read += got = fread(buffer, 1, length, file);
    DO(fclose, fclose(file));
}

/* The stream goes on in another file; what was buffered still goes to the first. */
static void reopened(void) {
    FILE *file = fopen("first", "w+");
    truth_count("fopen");
    if (file == NULL) exit(2);
    truth->written += fwrite(buffer, 1, 500, file), truth_count("fwrite");
    file = freopen("second", "w+", file);
    truth_count("freopen");
    if (file == NULL) exit(2);
    truth->written += fwrite(buffer, 1, 700, file), truth_count("fwrite");
    DO(fseek, fseek(file, 0, SEEK_SET));
    truth->read += fread(buffer, 1, 600, file), truth_count("fread");
    truth->read += fread(buffer, 1, 600, file), truth_count("fread");
    DO(fclose, fclose(file));
}

static void lists(void) {
    int file = DO(open, open("data", O_RDWR | O_CREAT | O_TRUNC, 0644));
    WRITE(write, write(file, buffer, 4000));
    struct aiocb one = {.aio_fildes = file, .aio_buf = buffer, .aio_nbytes = 3000, .aio_offset = 0,
                        .aio_lio_opcode = LIO_READ};
    struct aiocb two = {.aio_fildes = file, .aio_buf = buffer + 3000, .aio_nbytes = 1500, .aio_offset = 9000,
                        .aio_lio_opcode = LIO_WRITE};
    struct aiocb *list[2] = {&one, &two};
    DO(lio_listio, lio_listio(LIO_WAIT, list, 2, NULL));
    truth->read += aio_return(&one);
    truth->written += aio_return(&two);
    DO(close, close(file));
}

static void asynchronous(void) {
    int file = DO(open, open("data", O_RDWR | O_CREAT | O_TRUNC, 0644));
    struct aiocb one = {.aio_fildes = file, .aio_buf = buffer, .aio_nbytes = 3000, .aio_offset = 0};
    const struct aiocb *list[1] = {&one};
    DO(aio_write, aio_write(&one));
    while (aio_error(&one) == EINPROGRESS) aio_suspend(list, 1, NULL);
    truth->written += aio_return(&one);
    DO(aio_read, aio_read(&one));
    while (aio_error(&one) == EINPROGRESS) aio_suspend(list, 1, NULL);
    truth->read += aio_return(&one);
    DO(aio_fsync, aio_fsync(O_SYNC, &one));
    while (aio_error(&one) == EINPROGRESS) aio_suspend(list, 1, NULL);
    aio_return(&one);
    DO(close, close(file));
}

void libaio(void);
void ring(void);
void threads(void);
void forks(void);
void spawns(void);
void replaced(void);
void killed(void);

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"data", data},         {"opens", opens},   {"descriptors", descriptors}, {"names", names},
    {"directory", directory}, {"sizes", sizes}, {"copies", copies},           {"buffered", buffered},
    {"asynchronous", asynchronous}, {"reopened", reopened}, {"lists", lists},
};

#include "kernel.c"
#include "processes.c"

static const struct {
    const char *name;
    void (*run)(void);
} others[] = {
    {"libaio", libaio}, {"ring", ring},         {"threads", threads}, {"forks", forks},
    {"spawns", spawns}, {"replaced", replaced}, {"killed", killed},
};

int main(int count, char **words) {
    if (count < 2) return 2;
    if (strcmp(words[1], "child") == 0) return child();
    truth_begin();
    memset(buffer, 'x', sizeof buffer);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (strcmp(words[1], scenarios[i].name) == 0) return scenarios[i].run(), truth_print(), 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(words[1], others[i].name) == 0) return others[i].run(), truth_print(), 0;
    return 2;
}
