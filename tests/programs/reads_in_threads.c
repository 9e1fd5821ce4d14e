/* Reads a file in blocks by so many threads, each of which may compute before each block. For tests of profiles: how
 * much of each call's time the program waits for is known.
 *
 * Usage: reads_in_threads FILE BLOCKS THREADS COMPUTE_US BESIDE
 * BESIDE 1: the first thread, which reads nothing, computes for as long as BLOCKS * COMPUTE_US takes, beside the others;
 * 0: each thread computes before each of its blocks, as if asleep. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 4096

static int file;
static long blocks, threads, compute_us, beside;

static void pass(long us)
{
	struct timespec time = {us / 1000000, us % 1000000 * 1000};
	if (us > 0)
		nanosleep(&time, NULL);
}

static void *reads(void *of)
{
	char block[BLOCK];
	for (long at = (long)of; at < blocks; at += threads) {
		if (!beside)
			pass(compute_us);
		if (pread(file, block, BLOCK, at * BLOCK) != BLOCK)
			exit(3);
	}
	return NULL;
}

int main(int count, char **words)
{
	pthread_t known[64];
	if (count != 6)
		return 2;
	blocks = atol(words[2]);
	threads = atol(words[3]);
	compute_us = atol(words[4]);
	beside = atol(words[5]);
	file = open(words[1], O_RDONLY);
	if (file < 0 || threads < 1 || threads > 64)
		return 2;
	for (long at = 0; at < threads; at++)
		pthread_create(&known[at], NULL, reads, (void *)at);
	if (beside)
		pass(blocks * compute_us);
	for (long at = 0; at < threads; at++)
		pthread_join(known[at], NULL);
	return 0;
}
