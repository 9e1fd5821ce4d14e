/* How a subject counts its own calls: in memory that all its processes share, so that nothing is lost when one
 * is killed. It knows nothing of any tracer. */
#ifndef TRUTH_H
#define TRUTH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TRUTH_NAMES 160

struct truth {
    long read, written, ring_read, ring_written;
    int lock, names;
    struct {
        char name[32];
        long count;
    } calls[TRUTH_NAMES];
};

static struct truth *truth;

static void truth_begin(void) {
    truth = mmap(NULL, sizeof *truth, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (truth == MAP_FAILED) exit(2);
}

static void truth_count(const char *name) {
    while (__atomic_exchange_n(&truth->lock, 1, __ATOMIC_ACQUIRE)) {
    }
    int place = 0;
    while (place < truth->names && strcmp(truth->calls[place].name, name) != 0) place++;
    if (place == truth->names) {
        if (place == TRUTH_NAMES) abort();
        strncpy(truth->calls[place].name, name, sizeof truth->calls[place].name - 1);
        truth->names++;
    }
    truth->calls[place].count++;
    __atomic_store_n(&truth->lock, 0, __ATOMIC_RELEASE);
}

/* A call that a subject relies on: its failure makes the subject fail, so that no test passes by accident. */
static long truth_sure(const char *name, long result) {
    if (result < 0) {
        perror(name);
        exit(2);
    }
    return result;
}

__attribute__((unused)) static long truth_add(const char *name, long *sum, long result) {
    truth_count(name);
    __atomic_add_fetch(sum, truth_sure(name, result), __ATOMIC_RELAXED);
    return result;
}

#define DO(name, call) (truth_count(#name), truth_sure(#name, (long)(call)))
#define READ(name, call) truth_add(#name, &truth->read, (long)(call))
#define WRITE(name, call) truth_add(#name, &truth->written, (long)(call))
#define FAILS(name, call) (truth_count(#name), (long)(call) < 0 ? 0L : (fprintf(stderr, #name " did not fail\n"), exit(2), 0L))

static void truth_print(void) {
    char text[8192];
    int used = snprintf(text, sizeof text, "{\"bytes_read\": %ld, \"bytes_written\": %ld, ", truth->read, truth->written);
    used += snprintf(text + used, sizeof text - used, "\"ring_read\": %ld, \"ring_written\": %ld, \"calls\": {",
                     truth->ring_read, truth->ring_written);
    for (int place = 0; place < truth->names; place++)
        used += snprintf(text + used, sizeof text - used, "%s\"%s\": %ld", place ? ", " : "",
                         truth->calls[place].name, truth->calls[place].count);
    used += snprintf(text + used, sizeof text - used, "}}\n");
    if (write(1, text, used) != used) exit(2);
}

#endif
