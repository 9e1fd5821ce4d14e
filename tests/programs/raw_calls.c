/* A static program that makes its calls itself: 8 threads read one file, then it forks a child that writes and is
 * killed. Prints the bytes that its threads read. Usage: raw_calls FILE. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_long bytes_read;
static int descriptor;

static void *reader(void *unused)
{
	char block[512];
	(void)unused;
	for (int turn = 0; turn < 1000; turn++)
		bytes_read += syscall(SYS_pread64, descriptor, block, sizeof(block), 512L * (turn % 8));
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[8];
	if (argc != 2 || (descriptor = (int)syscall(SYS_openat, AT_FDCWD, argv[1], O_RDWR)) < 0)
		return 1;
	for (int index = 0; index < 8; index++)
		pthread_create(&threads[index], NULL, reader, NULL);
	for (int index = 0; index < 8; index++)
		pthread_join(threads[index], NULL);
	pid_t child = fork();
	if (child == 0) {
		if (syscall(SYS_pwrite64, descriptor, argv, 100, 0L) == 100)
			kill(getpid(), SIGKILL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	printf("%ld\n", atomic_load(&bytes_read));
	return 0;
}
