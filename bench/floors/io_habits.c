/* Small programs for bench/drishti.py: each has one habit of I/O, bad or good. io_habits HABIT DIRECTORY SEED
 *
 * Sizes differ by the seed, up to a third. Files to be read are made by `make`, apart, so that a tool sees the
 * reader only. Compiled with -DMPI, `imbalance` and `balance` share the work out over ranks.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef MPI
#include <mpi.h>
#endif

enum { KIB = 1 << 10, MIB = 1 << 20 };
static const size_t DATA_BYTES = (size_t)96 * MIB;

static char *block;
static uint64_t state;

static void die(const char *what) {
    perror(what);
    exit(1);
}

static uint64_t chance(uint64_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

/* Two thirds of a count up to the whole of it, by the seed. */
static long about(long count) {
    return count - (long)chance((uint64_t)count / 3);
}

static int opened(const char *name, int flags) {
    int file = open(name, flags, 0644);
    if (file < 0)
        die(name);
    return file;
}

static void moved(ssize_t bytes) {
    if (bytes < 0)
        die("transfer");
}

static void sequential_reads(size_t piece, long count) {
    int file = opened("data", O_RDONLY);
    for (long i = 0; i < count; i++)
        moved(read(file, block, piece));
    close(file);
}

static void sequential_writes(const char *name, size_t piece, long count, int sync) {
    int file = opened(name, O_CREAT | O_WRONLY | O_TRUNC);
    for (long i = 0; i < count; i++) {
        moved(write(file, block, piece));
        if (sync && fdatasync(file))
            die("fdatasync");
    }
    close(file);
}

static void random_accesses(int writes, size_t piece, long count) {
    int file = opened(writes ? "out" : "data", writes ? O_CREAT | O_WRONLY : O_RDONLY);
    for (long i = 0; i < count; i++) {
        off_t place = (off_t)(chance(DATA_BYTES / piece) * piece);
        moved(writes ? pwrite(file, block, piece, place) : pread(file, block, piece, place));
    }
    close(file);
}

static void backward_reads(size_t piece) {
    int file = opened("data", O_RDONLY);
    for (off_t place = (off_t)(DATA_BYTES - piece); place >= 0; place -= (off_t)piece)
        moved(pread(file, block, piece, place));
    close(file);
}

static void misaligned(int writes, long count) {
    int file = opened(writes ? "out" : "data", writes ? O_CREAT | O_WRONLY : O_RDONLY);
    const size_t piece = 256 * KIB;
    for (long i = 0; i < count; i++) {
        off_t place = 512 + (off_t)i * (off_t)piece;
        moved(writes ? pwrite(file, block, piece, place) : pread(file, block, piece, place));
    }
    close(file);
}

static void passes(int writes, long times) {
    int file = opened(writes ? "out" : "data", writes ? O_CREAT | O_RDWR : O_RDONLY);
    for (long pass = 0; pass < times; pass++)
        for (long i = 0; i < 16; i++)
            moved(writes ? pwrite(file, block, MIB, i * MIB) : pread(file, block, MIB, i * MIB));
    close(file);
}

static void opens(long count) {
    for (long i = 0; i < count; i++)
        close(opened("data", O_RDONLY));
}

static void stats(long count) {
    struct stat found;
    for (long i = 0; i < count; i++)
        if (stat("data", &found))
            die("stat");
}

static void small_files(long count) {
    char name[32];
    for (long i = 0; i < count; i++) {
        snprintf(name, sizeof name, "small-%ld", i);
        sequential_writes(name, 64, 1, 0);
    }
}

static void stream(int buffered, long lines) {
    FILE *file = fopen("out", "w");
    if (!file)
        die("out");
    if (!buffered)
        setvbuf(file, NULL, _IONBF, 0);
    for (long i = 0; i < lines; i++)
        if (fprintf(file, "%09ld %.110s\n", i, "a line of a log that is about as long as lines of logs are, "
                    "with a time, a host and a few words on what was done") < 0)
            die("fprintf");
    fclose(file);
}

static void copy(void) {
    int from = opened("data", O_RDONLY), to = opened("out", O_CREAT | O_WRONLY | O_TRUNC);
    ssize_t got;
    while ((got = read(from, block, 4 * MIB)) > 0)
        moved(write(to, block, (size_t)got));
    close(from);
    close(to);
}

/* Some settings, then the data in large pieces. */
static void configured(void) {
    for (int i = 0; i < 4; i++) {
        int file = opened("data", O_RDONLY);
        moved(read(file, block, 200));
        close(file);
    }
    sequential_writes("out", 4 * MIB, 24, 0);
}

static void compute(void) {
    volatile double sum = 0;
    sequential_reads(MIB, 8);
    for (long i = 1; i < 300 * 1000 * 1000L; i++)
        sum += 1.0 / (double)i;
    sequential_writes("out", MIB, 4, 0);
}

#ifdef MPI
static void ranks(int uneven) {
    int rank, count;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    int file = opened("shared", O_CREAT | O_WRONLY);
    const long pieces = 128;
    long own = uneven ? (rank == 0 ? pieces : 1) : pieces / count;
    for (long i = 0; i < own; i++)
        moved(pwrite(file, block, MIB, (off_t)(rank * pieces + i) * MIB));
    if (fsync(file))
        die("fsync");
    close(file);
    MPI_Barrier(MPI_COMM_WORLD);
}
#endif

static int act(const char *habit) {
    if (!strcmp(habit, "make")) sequential_writes("data", MIB, (long)(DATA_BYTES / MIB), 0);
    else if (!strcmp(habit, "small_reads")) sequential_reads(512, about(30000));
    else if (!strcmp(habit, "small_writes")) sequential_writes("out", 512, about(30000), 0);
    else if (!strcmp(habit, "random_reads")) random_accesses(0, 4 * KIB, about(6000));
    else if (!strcmp(habit, "random_writes")) random_accesses(1, 4 * KIB, about(6000));
    else if (!strcmp(habit, "backward_reads")) backward_reads(64 * KIB);
    else if (!strcmp(habit, "misaligned_reads")) misaligned(0, about(380));
    else if (!strcmp(habit, "misaligned_writes")) misaligned(1, about(380));
    else if (!strcmp(habit, "read_again")) passes(0, about(12));
    else if (!strcmp(habit, "written_again")) passes(1, about(12));
    else if (!strcmp(habit, "many_opens")) opens(about(9000));
    else if (!strcmp(habit, "polling")) stats(about(30000));
    else if (!strcmp(habit, "small_files")) small_files(about(4000));
    else if (!strcmp(habit, "sync_each")) sequential_writes("out", 64 * KIB, about(600), 1);
    else if (!strcmp(habit, "stdio_unbuffered")) stream(0, about(40000));
    else if (!strcmp(habit, "stdio_default")) stream(1, about(400000));
    else if (!strcmp(habit, "large_reads")) sequential_reads(4 * MIB, (long)(DATA_BYTES / (4 * MIB)));
    else if (!strcmp(habit, "large_writes")) sequential_writes("out", 4 * MIB, about(24), 0);
    else if (!strcmp(habit, "copy")) copy();
    else if (!strcmp(habit, "configured")) configured();
    else if (!strcmp(habit, "compute")) compute();
#ifdef MPI
    else if (!strcmp(habit, "imbalance")) ranks(1);
    else if (!strcmp(habit, "balance")) ranks(0);
#endif
    else return 2;
    return 0;
}

int main(int count, char **words) {
    if (count != 4)
        return 2;
#ifdef MPI
    MPI_Init(&count, &words);
#endif
    state = (uint64_t)strtoull(words[3], NULL, 10) * 0x9e3779b97f4a7c15u + 1;
    for (int i = 0; i < 8; i++)
        chance(1);
    if (chdir(words[2]) || posix_memalign((void **)&block, 4 * KIB, 4 * MIB))
        die("start");
    memset(block, 'x', 4 * MIB);
    int code = act(words[1]);
#ifdef MPI
    MPI_Finalize();
#endif
    return code;
}
