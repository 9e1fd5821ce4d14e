/* The least that a random read costs with io_uring: fixed buffers and files, batches, no clock, no counting.
 * One call of the kernel hands over what is queued and brings back what has ended.
 * Usage: uring_loop FILE|- BLOCK_BYTES DEPTH COUNT. The file must hold a power of two of blocks; with - the
 * operations do nothing. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static struct io_uring_params parameters;
static uint8_t *sq, *cq;
static struct io_uring_sqe *entries;
static uint64_t state = 88172645463325252ULL, mask;
static size_t block_bytes;
static uint8_t *buffers;
static unsigned tail;
static int without_file;

static void queue(uint64_t slot)
{
	unsigned index = tail & *(unsigned *)(sq + parameters.sq_off.ring_mask);
	struct io_uring_sqe *entry = &entries[index];
	state ^= state << 13; /* Marsaglia's xorshift64 */
	state ^= state >> 7;
	state ^= state << 17;
	memset(entry, 0, sizeof *entry);
	entry->opcode = without_file ? IORING_OP_NOP : IORING_OP_READ_FIXED;
	entry->user_data = slot;
	((unsigned *)(sq + parameters.sq_off.array))[index] = index;
	tail++;
	if (without_file)
		return;
	entry->flags = IOSQE_FIXED_FILE;
	entry->off = (state & mask) * block_bytes;
	entry->addr = (uint64_t)(uintptr_t)(buffers + slot * block_bytes);
	entry->len = (uint32_t)block_bytes;
}

static int set_up(const char *path, unsigned depth)
{
	parameters.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE;
	parameters.cq_entries = depth * 2;
	int ring = (int)syscall(SYS_io_uring_setup, depth, &parameters);
	without_file = strcmp(path, "-") == 0;
	int fd = without_file ? 0 : open(path, O_RDONLY | O_DIRECT);
	struct stat facts;
	if (ring < 0 || fd < 0 || fstat(fd, &facts) != 0)
		return -1;
	mask = (uint64_t)facts.st_size / block_bytes - 1;
	size_t sq_bytes = parameters.sq_off.array + parameters.sq_entries * sizeof(unsigned);
	size_t cq_bytes = parameters.cq_off.cqes + parameters.cq_entries * sizeof(struct io_uring_cqe);
	int protection = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
	sq = mmap(NULL, sq_bytes, protection, flags, ring, IORING_OFF_SQ_RING);
	cq = mmap(NULL, cq_bytes, protection, flags, ring, IORING_OFF_CQ_RING);
	entries = mmap(NULL, parameters.sq_entries * sizeof *entries, protection, flags, ring, IORING_OFF_SQES);
	struct iovec memory = {.iov_len = block_bytes * depth};
	memory.iov_base = buffers = mmap(NULL, memory.iov_len, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sq == MAP_FAILED || cq == MAP_FAILED || (void *)entries == MAP_FAILED || buffers == MAP_FAILED)
		return -1;
	madvise(buffers, memory.iov_len, MADV_HUGEPAGE);
	memset(buffers, 0, memory.iov_len);
	if (!without_file && syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &memory, 1) != 0)
		return -1;
	if (!without_file &&
	    syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, &fd, 1) != 0)
		return -1;
	return ring;
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	block_bytes = strtoull(argv[2], NULL, 10);
	unsigned depth = (unsigned)strtoul(argv[3], NULL, 10), unsubmitted = 0;
	uint64_t count = strtoull(argv[4], NULL, 10), queued = 0, done = 0;
	int ring = set_up(argv[1], depth);
	if (ring < 0)
		return 1;
	_Atomic unsigned *sq_tail = (_Atomic unsigned *)(sq + parameters.sq_off.tail);
	_Atomic unsigned *cq_head = (_Atomic unsigned *)(cq + parameters.cq_off.head);
	_Atomic unsigned *cq_tail = (_Atomic unsigned *)(cq + parameters.cq_off.tail);
	unsigned cq_mask = *(unsigned *)(cq + parameters.cq_off.ring_mask);
	struct io_uring_cqe *ended = (struct io_uring_cqe *)(cq + parameters.cq_off.cqes);
	for (; queued < depth && queued < count; queued++, unsubmitted++)
		queue(queued);
	while (done < count) {
		atomic_store_explicit(sq_tail, tail, memory_order_release);
		long handed = syscall(SYS_io_uring_enter, ring, unsubmitted, 1, IORING_ENTER_GETEVENTS, NULL, 0);
		if (handed < 0)
			return 1;
		unsubmitted -= (unsigned)handed;
		unsigned head = atomic_load_explicit(cq_head, memory_order_relaxed);
		unsigned end = atomic_load_explicit(cq_tail, memory_order_acquire);
		for (; head != end; head++, done++) {
			if (ended[head & cq_mask].res != (without_file ? 0 : (int)block_bytes))
				return 1;
			if (queued < count) {
				queue(ended[head & cq_mask].user_data);
				queued++;
				unsubmitted++;
			}
		}
		atomic_store_explicit(cq_head, head, memory_order_release);
	}
	return 0;
}
