/* A function that newer C libraries have and the one at hand may not: a shared library of its own for a subject. The
 * call is an instruction, so that nothing but the function's name can be taken. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>

int openat2(int directory, const char *path, const void *how, size_t bytes) {
    long result;
    register size_t last __asm__("r10") = bytes;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"((long)SYS_openat2), "D"((long)directory), "S"(path), "d"(how), "r"(last)
                     : "rcx", "r11", "memory");
    if (result >= 0) return result;
    errno = -result;
    return -1;
}
