/* Programs whose bottleneck is known by how they are made: `bottlenecks WHAT COUNT [PATH...]`.
 * Each does one thing COUNT times, and next to nothing else. `programs.py` has the list. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (1 << 20)
static char block[MIB];

/* So many milliseconds of CPU time of the calling thread. */
static void compute(long ms)
{
	struct timespec now;
	volatile double sum = 0;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	long end_ns = now.tv_sec * 1000000000L + now.tv_nsec + ms * 1000000L;
	do {
		for (int step = 1; step < 20000; step++)
			sum += 1.0 / step;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while (now.tv_sec * 1000000000L + now.tv_nsec < end_ns);
}

static void *computes(void *ms)
{
	compute(*(long *)ms);
	return NULL;
}

static int opened(const char *path, int flags)
{
	int fd = open(path, flags, 0600);
	if (fd < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

static void moves(const char *path, long count, size_t bytes, int writes, int anywhere)
{
	int fd = opened(path, writes ? O_WRONLY | O_CREAT : O_RDONLY);
	for (long at = 0; at < count; at++) {
		off_t place = anywhere ? (at * 7919 % count) * (off_t)(64 * 1024) : at * (off_t)bytes;
		ssize_t done = writes ? pwrite(fd, block, bytes, place) : pread(fd, block, bytes, place);
		if (done < 0)
			exit(1);
	}
	close(fd);
}

static void touches(const char *path, long count)
{
	int fd = opened(path, O_RDONLY);
	char *whole = mmap(NULL, count * (size_t)MIB, PROT_READ, MAP_SHARED, fd, 0);
	volatile char last = 0;
	for (long at = 0; whole != MAP_FAILED && at < count; at++)
		last = whole[at * (size_t)MIB];
	(void)last;
}

static void renames(const char *directory, long count)
{
	char from[512], into[512];
	for (long at = 0; at < count; at++) {
		snprintf(from, sizeof from, "%s/f%ld", directory, at);
		snprintf(into, sizeof into, "%s/g%ld", directory, at);
		close(opened(from, O_WRONLY | O_CREAT));
		rename(from, into);
	}
}

static void sleeps(long ms)
{
	struct timespec left = {ms / 1000, ms % 1000 * 1000000L};
	nanosleep(&left, NULL);
}

/* Nobody ever posts it. */
static void waits(long ms)
{
	sem_t never;
	struct timespec end;
	sem_init(&never, 0, 0);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += (end.tv_nsec + ms * 1000000L) / 1000000000L;
	end.tv_nsec = (end.tv_nsec + ms * 1000000L) % 1000000000L;
	sem_timedwait(&never, &end);
}

/* Questions to a server that takes its time. */
static void asks(const char *port, long count)
{
	struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
	there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (struct sockaddr *)&there, sizeof there) != 0)
		exit(1);
	for (long at = 0; at < count; at++)
		if (send(fd, "?", 1, 0) != 1 || recv(fd, block, 1, 0) != 1)
			exit(1);
}

/* A child that answers by a pipe after some time of its own work. */
static void listens(long ms)
{
	int ends[2];
	if (pipe(ends) != 0)
		exit(1);
	if (fork() == 0) {
		compute(ms);
		_exit(write(ends[1], "!", 1) != 1);
	}
	if (read(ends[0], block, 1) != 1)
		exit(1);
	wait(NULL);
}

/* Four processes side by side, of which one has nearly all of the work. */
static void straggles(const char *path, long count)
{
	for (int child = 0; child < 4; child++)
		if (fork() == 0) {
			moves(path, child == 2 ? count : 2, 64 * 1024, 0, 0);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	const char *what = argv[1], *path = argc > 3 ? argv[3] : "";
	long count = atol(argv[2]);
	if (strcmp(what, "computes") == 0)
		compute(count);
	else if (strcmp(what, "threads") == 0) {
		pthread_t beside;
		pthread_create(&beside, NULL, computes, &count);
		compute(count);
		pthread_join(beside, NULL);
	} else if (strcmp(what, "reads") == 0)
		moves(path, count, 64 * 1024, 0, 0);
	else if (strcmp(what, "small_reads") == 0)
		moves(path, count, 512, 0, 0);
	else if (strcmp(what, "random_reads") == 0)
		moves(path, count, 4096, 0, 1);
	else if (strcmp(what, "writes") == 0)
		moves(path, count, 64 * 1024, 1, 0);
	else if (strcmp(what, "small_writes") == 0)
		moves(path, count, 512, 1, 0);
	else if (strcmp(what, "touches") == 0)
		touches(path, count);
	else if (strcmp(what, "touches_computes") == 0) {
		touches(path, count);
		compute(300);
	} else if (strcmp(what, "renames") == 0)
		renames(path, count);
	else if (strcmp(what, "sleeps") == 0)
		sleeps(count);
	else if (strcmp(what, "polls") == 0)
		for (struct stat facts; count-- > 0; sleeps(20))
			stat(path, &facts);
	else if (strcmp(what, "waits") == 0)
		waits(count);
	else if (strcmp(what, "asks") == 0)
		asks(path, count);
	else if (strcmp(what, "listens") == 0)
		listens(count);
	else if (strcmp(what, "straggles") == 0)
		straggles(path, count);
	else if (strcmp(what, "reads_computes") == 0) {
		moves(path, count, 64 * 1024, 0, 0);
		compute(300);
	} else
		return 2;
	return 0;
}
