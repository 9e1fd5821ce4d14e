/* A directory seen through FUSE that is slow and faulty by known amounts: what a tool measures on it can be
 * computed beforehand.
 *
 * Usage: slow_fuse BACKING MOUNTPOINT. Stays in the foreground. BACKING/.slow holds the rules, one line of six
 * numbers, read again by each operation:
 *     READ_DELAY_US WRITE_DELAY_US SERVERS ERRNO FROM_BYTE TO_BYTE
 * At most SERVERS reads and writes are served at a time (0: no bound); those with a byte from FROM_BYTE on and
 * before TO_BYTE fail with ERRNO (0: none does). Data of failing operations is not touched.
 *
 * BACKING/.faults, read again by each write, has what becomes of acknowledged data:
 *     KIND[,KIND]... EVERY FIRST
 * Of the blocks of 4 KiB that are written the first FIRST are left alone, then each EVERYth suffers the next KIND:
 * drop (is not written), tear (half of it is), zero, flip (one bit), foreign (other bytes), swap (it and the next
 * change places), delay (is written once it was read twice) or cache (never is, and this mount shows it). Each that
 * suffered is a line in BACKING/.injected: its kind and its offset. */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 4096
/* One may be of who finds out how a file can be read. */
#define ARRIVES_AFTER_READS 2

struct rules {
	long read_delay_us, write_delay_us, servers, error;
	long long from_byte, to_byte;
};

static int backing;
/* Files are opened past the page cache, unless SLOW_FUSE_CACHED is set: mapped files need it. */
static unsigned direct_io;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;
static long serving;

static struct rules current_rules(void)
{
	struct rules rules = {0};
	char text[256] = "";
	int fd = openat(backing, ".slow", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (read(fd, text, sizeof text - 1) > 0)
			sscanf(text, "%ld %ld %ld %ld %lld %lld", &rules.read_delay_us, &rules.write_delay_us,
			       &rules.servers, &rules.error, &rules.from_byte, &rules.to_byte);
		close(fd);
	}
	return rules;
}

/* Takes a server for `delay_us`; returns 0, or minus the errno that the rules have for this range. */
static int serve(const struct rules *rules, long delay_us, off_t offset, size_t size)
{
	struct timespec left = {delay_us / 1000000, delay_us % 1000000 * 1000};
	pthread_mutex_lock(&lock);
	while (rules->servers > 0 && serving >= rules->servers)
		pthread_cond_wait(&freed, &lock);
	serving++;
	pthread_mutex_unlock(&lock);
	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
	pthread_mutex_lock(&lock);
	serving--;
	pthread_cond_signal(&freed);
	pthread_mutex_unlock(&lock);
	int hit = offset < rules->to_byte && offset + (off_t)size > rules->from_byte;
	return hit ? -(int)rules->error : 0;
}

static const char *relative(const char *path)
{
	return path[1] == '\0' ? "." : path + 1;
}

/* A block that is not where it belongs yet. */
struct late {
	struct late *next;
	char path[256], data[BLOCK];
	off_t offset;
	int seen_here, reads;
};

static pthread_mutex_t faults = PTHREAD_MUTEX_INITIALIZER;
static struct late *late_blocks, *swapped;
static long blocks_written, blocks_harmed;

static void inject(const char *kind, off_t offset)
{
	int fd = openat(backing, ".injected", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd >= 0) {
		dprintf(fd, "%s %lld\n", kind, (long long)offset);
		close(fd);
	}
}

static void put(const struct late *block, off_t offset)
{
	int fd = openat(backing, relative(block->path), O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (pwrite(fd, block->data, BLOCK, offset) != BLOCK)
			perror("slow_fuse: a late block");
		close(fd);
	}
}

static struct late *keep(const char *path, const char *data, off_t offset)
{
	struct late *block = calloc(1, sizeof *block);
	if (block != NULL) {
		snprintf(block->path, sizeof block->path, "%s", path);
		memcpy(block->data, data, BLOCK);
		block->offset = offset;
	}
	return block;
}

static void delay(const char *path, const char *data, off_t offset, int seen_here)
{
	struct late *block = keep(path, data, offset);
	if (block == NULL)
		return;
	block->seen_here = seen_here;
	block->next = late_blocks;
	late_blocks = block;
}

/* The kind whose turn it is, of those between commas. */
static const char *next_kind(char *kinds)
{
	char *words[16], *rest = NULL;
	int count = 0;
	for (char *word = strtok_r(kinds, ",", &rest); word != NULL && count < 16; word = strtok_r(NULL, ",", &rest))
		words[count++] = word;
	return count == 0 ? "" : words[blocks_harmed++ % count];
}

/* Writes one whole block as the faults have it; true when the caller is to write it as it is. */
static int suffers_nothing(const char *path, const char *data, off_t offset)
{
	char text[256] = "", kinds[200] = "";
	long every = 0, first = 0;
	int fd = openat(backing, ".faults", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 1;
	ssize_t count = read(fd, text, sizeof text - 1);
	close(fd);
	if (count <= 0 || sscanf(text, "%199s %ld %ld", kinds, &every, &first) < 3 || every < 1)
		return 1;
	struct late *changed = keep(path, data, offset);
	if (changed == NULL)
		return 1;
	if (swapped != NULL) {
		put(changed, swapped->offset);
		put(swapped, offset);
		inject("swap", swapped->offset);
		inject("swap", offset);
		free(swapped), free(changed);
		swapped = NULL;
		return 0;
	}
	blocks_written++;
	if (blocks_written <= first || (blocks_written - first) % every != 0) {
		free(changed);
		return 1;
	}
	const char *kind = next_kind(kinds);
	if (strcmp(kind, "swap") == 0) {
		swapped = changed;
		return 0;
	}
	if (strcmp(kind, "zero") == 0)
		memset(changed->data, 0, BLOCK);
	else if (strcmp(kind, "foreign") == 0)
		memset(changed->data, 0x55, BLOCK);
	else if (strcmp(kind, "flip") == 0)
		changed->data[BLOCK / 3] ^= 1;
	else if (strcmp(kind, "tear") == 0) {
		int file = openat(backing, relative(path), O_WRONLY | O_CLOEXEC);
		if (pwrite(file, data, BLOCK / 2, offset) < 0)
			perror("slow_fuse: half a block");
		close(file);
	}
	if (strcmp(kind, "zero") == 0 || strcmp(kind, "foreign") == 0 || strcmp(kind, "flip") == 0)
		put(changed, offset);
	if (strcmp(kind, "delay") == 0 || strcmp(kind, "cache") == 0)
		delay(path, data, offset, strcmp(kind, "cache") == 0);
	inject(kind, offset);
	free(changed);
	return 0;
}

/* What was read of late blocks: this mount shows them, or they arrive after this. */
static void read_late(const char *path, char *buffer, size_t size, off_t offset)
{
	struct late **link = &late_blocks;
	while (*link != NULL) {
		struct late *block = *link;
		off_t within = block->offset - offset;
		int is_read = within >= 0 && within + BLOCK <= (off_t)size && strcmp(block->path, path) == 0;
		if (is_read && block->seen_here)
			memcpy(buffer + within, block->data, BLOCK);
		else if (is_read && ++block->reads == ARRIVES_AFTER_READS) {
			put(block, block->offset);
			*link = block->next;
			free(block);
			continue;
		}
		link = &block->next;
	}
}

static int slow_getattr(const char *path, struct stat *facts, struct fuse_file_info *file)
{
	(void)file;
	return fstatat(backing, relative(path), facts, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -errno;
}

static int slow_open(const char *path, struct fuse_file_info *file)
{
	/* The kernel keeps O_DIRECT's alignment for itself; the backing file is read through its cache. */
	int fd = openat(backing, relative(path), (file->flags & ~O_DIRECT) | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	file->fh = (uint64_t)fd;
	file->direct_io = direct_io; /* each call of the program is one operation here, whatever its size */
	return 0;
}

static int slow_create(const char *path, mode_t mode, struct fuse_file_info *file)
{
	int fd = openat(backing, relative(path), (file->flags & ~O_DIRECT) | O_CREAT | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	file->fh = (uint64_t)fd;
	file->direct_io = direct_io;
	return 0;
}

static int slow_read(const char *path, char *buffer, size_t size, off_t offset, struct fuse_file_info *file)
{
	struct rules rules = current_rules();
	int refused = serve(&rules, rules.read_delay_us, offset, size);
	if (refused != 0)
		return refused;
	pthread_mutex_lock(&faults);
	ssize_t count = pread((int)file->fh, buffer, size, offset);
	int result = count < 0 ? -errno : (int)count;
	if (count > 0)
		read_late(path, buffer, (size_t)count, offset);
	pthread_mutex_unlock(&faults);
	return result;
}

static int slow_write(const char *path, const char *data, size_t size, off_t offset, struct fuse_file_info *file)
{
	struct rules rules = current_rules();
	int refused = serve(&rules, rules.write_delay_us, offset, size);
	if (refused != 0)
		return refused;
	if (offset % BLOCK != 0 || size % BLOCK != 0 || faccessat(backing, ".faults", F_OK, 0) != 0) {
		ssize_t count = pwrite((int)file->fh, data, size, offset);
		return count < 0 ? -errno : (int)count;
	}
	int result = (int)size;
	pthread_mutex_lock(&faults);
	for (size_t at = 0; at < size && result > 0; at += BLOCK)
		if (suffers_nothing(path, data + at, offset + (off_t)at) &&
		    pwrite((int)file->fh, data + at, BLOCK, offset + (off_t)at) != BLOCK)
			result = -EIO;
	pthread_mutex_unlock(&faults);
	return result;
}

static int slow_truncate(const char *path, off_t size, struct fuse_file_info *file)
{
	(void)file;
	int fd = openat(backing, relative(path), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int result = ftruncate(fd, size) == 0 ? 0 : -errno;
	close(fd);
	return result;
}

static int slow_fsync(const char *path, int data_only, struct fuse_file_info *file)
{
	(void)path;
	return (data_only ? fdatasync((int)file->fh) : fsync((int)file->fh)) == 0 ? 0 : -errno;
}

static int slow_release(const char *path, struct fuse_file_info *file)
{
	(void)path;
	close((int)file->fh);
	return 0;
}

static int slow_unlink(const char *path)
{
	return unlinkat(backing, relative(path), 0) == 0 ? 0 : -errno;
}

/* New names wait as writes do. */
static int slow_rename(const char *path, const char *to, unsigned flags)
{
	struct rules rules = current_rules();
	serve(&rules, rules.write_delay_us, 0, 0);
	return renameat2(backing, relative(path), backing, relative(to), flags) == 0 ? 0 : -errno;
}

static int slow_link(const char *path, const char *to)
{
	struct rules rules = current_rules();
	serve(&rules, rules.write_delay_us, 0, 0);
	return linkat(backing, relative(path), backing, relative(to), 0) == 0 ? 0 : -errno;
}

static int slow_mkdir(const char *path, mode_t mode)
{
	return mkdirat(backing, relative(path), mode) == 0 ? 0 : -errno;
}

static int slow_rmdir(const char *path)
{
	return unlinkat(backing, relative(path), AT_REMOVEDIR) == 0 ? 0 : -errno;
}

static int slow_readdir(const char *path, void *entries, fuse_fill_dir_t fill, off_t offset,
			struct fuse_file_info *file, enum fuse_readdir_flags flags)
{
	(void)offset, (void)file, (void)flags;
	int fd = openat(backing, relative(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	DIR *directory = fdopendir(fd);
	if (directory == NULL) {
		close(fd);
		return -ENOMEM;
	}
	for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory))
		fill(entries, entry->d_name, NULL, 0, 0);
	closedir(directory);
	return 0;
}

static int slow_statfs(const char *path, struct statvfs *found)
{
	(void)path;
	int fd = openat(backing, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int result = fstatvfs(fd, found) == 0 ? 0 : -errno;
	close(fd);
	return result;
}

static const struct fuse_operations operations = {
	.getattr = slow_getattr,
	.open = slow_open,
	.create = slow_create,
	.read = slow_read,
	.write = slow_write,
	.truncate = slow_truncate,
	.fsync = slow_fsync,
	.release = slow_release,
	.unlink = slow_unlink,
	.rename = slow_rename,
	.link = slow_link,
	.mkdir = slow_mkdir,
	.rmdir = slow_rmdir,
	.readdir = slow_readdir,
	.statfs = slow_statfs,
};

int main(int argc, char **argv)
{
	direct_io = getenv("SLOW_FUSE_CACHED") == NULL;
	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: slow_fuse BACKING MOUNTPOINT [SECONDS]\n");
		return 2;
	}
	/* How long the kernel may believe names and attributes that it was told; libfuse's default is 1 s. */
	char options[128];
	const char *believed = argc == 4 ? argv[3] : "1";
	snprintf(options, sizeof options, "-omax_threads=64,fsname=slow_fuse,entry_timeout=%s,attr_timeout=%s",
		 believed, believed);
	backing = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (backing < 0) {
		perror(argv[1]);
		return 1;
	}
	char *words[] = {argv[0], "-f", options, argv[2], NULL};
	return fuse_main(4, words, &operations, NULL);
}
