/* libaio's functions as its older versions have them: system calls by instructions of their own, past syscall(). */
#include <sys/syscall.h>

static long call(long number, const long *words) {
    register long fourth __asm__("r10") = words[3], fifth __asm__("r8") = words[4], sixth __asm__("r9") = words[5];
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(words[0]), "S"(words[1]), "d"(words[2]), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
}

#define CALL(number, ...) ((int)call(number, (const long[6]){__VA_ARGS__}))

int io_setup(int most, void *context) { return CALL(SYS_io_setup, most, (long)context); }
int io_destroy(void *context) { return CALL(SYS_io_destroy, (long)context); }
int io_submit(void *context, long count, void *all) { return CALL(SYS_io_submit, (long)context, count, (long)all); }

int io_getevents(void *context, long least, long most, void *events, void *timeout) {
    return CALL(SYS_io_getevents, (long)context, least, most, (long)events, (long)timeout);
}

int io_pgetevents(void *context, long least, long most, void *events, void *timeout, void *signals) {
    return CALL(333, (long)context, least, most, (long)events, (long)timeout, (long)signals);
}
