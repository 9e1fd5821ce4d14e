/* A subject that moves bytes by instructions of its own, where no tracer that takes functions' places can see them:
 * writes or reads a mebibyte of a file, by its first thread, by one that has ended, or in a child; or by the calls of
 * 32-bit programs, whose numbers the tracer in the kernel does not know. Linked to a fixed address for these. */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK (64 << 10)

static char block[BLOCK];
static const char *way;

static long by_instruction(long number, long first, const void *second, long third) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(first), "S"(second), "d"(third) : "rcx", "r11", "memory");
    return result;
}

static long by_old_instruction(long number, long first, const void *second, long third) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(first), "c"(second), "d"(third) : "memory");
    return result;
}

static long moved(int file) {
    if (!strcmp(way, "old")) return by_old_instruction(4, file, block, BLOCK);
    return by_instruction(!strcmp(way, "read") ? SYS_read : SYS_write, file, block, BLOCK);
}

static void *move(void *unused) {
    int file = open("moved", O_RDWR | O_CREAT, 0644);
    (void)unused;
    for (int turn = 0; turn < 16; turn++)
        if (moved(file) != BLOCK) _exit(4);
    close(file);
    return NULL;
}

int main(int count, char **words) {
    pthread_t thread;
    int status = 0;
    if (count != 2) return 3;
    way = words[1];
    if (!strcmp(way, "thread")) {
        if (pthread_create(&thread, NULL, move, NULL) != 0 || pthread_join(thread, NULL) != 0) return 3;
    } else if (!strcmp(way, "child")) {
        if (fork() == 0) return move(NULL) != NULL;
        wait(&status);
    } else {
        move(NULL);
    }
    return status;
}
