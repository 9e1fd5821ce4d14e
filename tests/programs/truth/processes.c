/* Part of calls.c: threads, forks, execs, spawns and a death by SIGKILL, each with I/O of its own. */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

static void work(const char *name, int turns) {
    char own[4096] = {0};
    int file = DO(open, open(name, O_RDWR | O_CREAT | O_TRUNC, 0644));
    for (int i = 0; i < turns; i++) WRITE(write, write(file, own, sizeof own));
    for (int i = 0; i < turns; i++) READ(pread, pread(file, own, sizeof own, 4096L * i));
    DO(close, close(file));
}

/* What an exec begins: it cannot see the shared table, so its parent counts for it. */
static int child(void) {
    char own[512] = {0};
    int file = open("child", O_RDWR | O_CREAT | O_TRUNC, 0644);
    int good = file >= 0 && write(file, own, 512) == 512 && pread(file, own, 512, 0) == 512 && close(file) == 0;
    return good ? 0 : 2;
}

static void count_child(void) {
    truth_count("open"), truth_count("write"), truth_count("pread"), truth_count("close");
    truth->written += 512;
    truth->read += 512;
}

static void *thread_work(void *name) {
    work(name, 50);
    return NULL;
}

void threads(void) {
    static char names[4][8];
    pthread_t all[4];
    for (int i = 0; i < 4; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i);
        if (pthread_create(&all[i], NULL, thread_work, names[i]) != 0) exit(2);
    }
    for (int i = 0; i < 4; i++) pthread_join(all[i], NULL);
}

static void await(pid_t pid, int wanted) {
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != wanted) exit(2);
}

/* A tree: each of three children forks one more. */
void forks(void) {
    work("root", 5);
    for (int i = 0; i < 3; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            char name[8];
            snprintf(name, sizeof name, "c%d", i);
            work(name, 10);
            pid_t below = fork();
            if (below == 0) {
                snprintf(name, sizeof name, "d%d", i);
                work(name, 3);
                _exit(0);
            }
            await(below, 0);
            _exit(0);
        }
        await(pid, 0);
    }
}

void spawns(void) {
    char *words[] = {"calls", "child", NULL};
    pid_t pid;
    if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, words, environ) != 0) exit(2);
    await(pid, 0);
    count_child();
    pid = vfork();
    if (pid == 0) {
        execve("/proc/self/exe", words, environ);
        _exit(2);
    }
    await(pid, 0);
    count_child();
}

/* An exec in a process that did I/O before it, with an environment of its own. */
void replaced(void) {
    pid_t pid = fork();
    if (pid == 0) {
        char *words[] = {"calls", "child", NULL}, *bare[] = {"ONLY=this", NULL};
        work("before", 2);
        execve("/proc/self/exe", words, bare);
        _exit(2);
    }
    await(pid, 0);
    count_child();
}

void killed(void) {
    pid_t pid = fork();
    if (pid == 0) {
        work("killed", 20);
        raise(SIGKILL);
    }
    await(pid, SIGKILL);
    work("after", 1);
}
