/* The least that create, stat and unlink of empty files can cost: the same calls in a bare loop, no latencies.
 * Usage: metadata DIRECTORY FILES PASSES. Prints nanoseconds of each phase, elapsed and on the CPU, all passes:
 * "create 12345678 12340000". */
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

static long now_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

struct phase {
    const char *name;
    int (*call)(int);
    long elapsed_ns, cpu_ns;
};

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

static void phase(struct phase *phase, int at, long files)
{
    int (*call)(int) = phase->call;
    first();
    long begun = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
    for (long file = 0; file < files; file++) {
        if (call(at) < 0)
            fail(phase->name);
        next();
    }
    phase->cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
    phase->elapsed_ns += now_ns(CLOCK_MONOTONIC) - begun;
}

int main(int count, char **words)
{
    long files = count == 4 ? atol(words[2]) : 0, passes = count == 4 ? atol(words[3]) : 0;
    int at = count == 4 ? open(words[1], O_RDONLY | O_DIRECTORY) : -1;
    if (at < 0 || files < 1 || passes < 1) {
        fprintf(stderr, "usage: metadata DIRECTORY FILES PASSES\n");
        return 2;
    }
    struct phase phases[] = {{"create", create, 0, 0}, {"stat", look, 0, 0}, {"unlink", drop, 0, 0}};
    for (long pass = 0; pass < passes; pass++)
        for (int place = 0; place < 3; place++)
            phase(&phases[place], at, files);
    for (int place = 0; place < 3; place++)
        printf("%s %ld %ld\n", phases[place].name, phases[place].elapsed_ns, phases[place].cpu_ns);
    return 0;
}
