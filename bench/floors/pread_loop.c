/* The least that a random read costs with plain calls: pread in a loop, no clock, no counting.
 * Usage: pread_loop FILE BLOCK_BYTES COUNT. The file must hold a power of two of blocks. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	size_t block_bytes = strtoull(argv[2], NULL, 10);
	uint64_t count = strtoull(argv[3], NULL, 10), state = 88172645463325252ULL;
	int fd = open(argv[1], O_RDONLY);
	struct stat facts;
	if (fd < 0 || fstat(fd, &facts) != 0)
		return 1;
	uint64_t mask = (uint64_t)facts.st_size / block_bytes - 1;
	void *buffer = aligned_alloc(4096, block_bytes);
	if (buffer == NULL)
		return 1;
	for (uint64_t done = 0; done < count; done++) {
		state ^= state << 13; /* Marsaglia's xorshift64 */
		state ^= state >> 7;
		state ^= state << 17;
		if (pread(fd, buffer, block_bytes, (off_t)((state & mask) * block_bytes)) != (ssize_t)block_bytes)
			return 1;
	}
	return 0;
}
