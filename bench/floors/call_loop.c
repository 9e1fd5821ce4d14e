/* One system call in a tight loop, for what a tracer adds to each. Usage: call_loop CALL FILE COUNT [PATHS].
 * With PATHS the calls go to FILE.0, FILE.1, … in turn. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char block[4096];

static int one(char call, int descriptor, const char *path)
{
	struct stat facts;
	switch (call) {
	case 'r':
		return pread(descriptor, block, sizeof(block), 0) != sizeof(block);
	case 'w':
		return pwrite(descriptor, block, sizeof(block), 0) != sizeof(block);
	case 'l':
		return lseek(descriptor, 0, SEEK_SET) != 0;
	default:
		return stat(path, &facts) != 0;
	}
}

int main(int argc, char **argv)
{
	if (argc != 4 && argc != 5)
		return 2;
	long paths = argc == 5 ? atol(argv[4]) : 0;
	char(*names)[256] = calloc((size_t)(paths ? paths : 1), sizeof(*names));
	if (names == NULL)
		return 1;
	for (long number = 0; number < paths; number++)
		snprintf(names[number], sizeof(*names), "%s.%ld", argv[2], number);
	char call = strcmp(argv[1], "pread") == 0 ? 'r' : strcmp(argv[1], "pwrite") == 0 ? 'w' : argv[1][0];
	int descriptor = open(argv[2], O_RDWR);
	if (descriptor < 0)
		return 1;
	for (long left = atol(argv[3]); left > 0; left--)
		if (one(call, descriptor, paths ? names[left % paths] : argv[2]))
			return 1;
	return 0;
}
