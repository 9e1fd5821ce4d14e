/* The least that create, stat and unlink of empty files can cost: the same calls in a bare loop, no latencies.
 * Usage: metadata DIRECTORY FILES. Prints the nanoseconds of each phase, one to a line: "create 12345678". */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char name[] = "f0000.0000000000";

static void first(void) { memset(name + 6, '0', 10); }

static void next(void)
{
    for (int digit = 15; digit > 5; digit--) {
        if (name[digit]++ < '9')
            return;
        name[digit] = '0';
    }
}

static long now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void fail(const char *what)
{
    fprintf(stderr, "%s of %s: %s\n", what, name, strerror(errno));
    exit(1);
}

static int create(int at)
{
    int file = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    return file < 0 ? -1 : close(file);
}

static int look(int at)
{
    struct stat facts;
    return fstatat(at, name, &facts, AT_SYMLINK_NOFOLLOW);
}

static int drop(int at) { return unlinkat(at, name, 0); }

static void phase(const char *what, int (*call)(int), int at, long files)
{
    first();
    long begun = now_ns();
    for (long file = 0; file < files; file++) {
        if (call(at) < 0)
            fail(what);
        next();
    }
    printf("%s %ld\n", what, now_ns() - begun);
}

int main(int count, char **words)
{
    long files = count == 3 ? atol(words[2]) : 0;
    int at = count == 3 ? open(words[1], O_RDONLY | O_DIRECTORY) : -1;
    if (at < 0 || files < 1) {
        fprintf(stderr, "usage: metadata DIRECTORY FILES\n");
        return 2;
    }
    phase("create", create, at, files);
    phase("stat", look, at, files);
    phase("unlink", drop, at, files);
    return 0;
}
