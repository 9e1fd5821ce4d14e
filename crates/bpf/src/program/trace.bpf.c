// The tracer's programs in the kernel: counts the I/O calls of followed processes where they happen.
// It sees what no library can: static programs, raw system calls, io_uring. It changes nothing.
#include "calls.h"
#include "processes.h"
#include "rings.h"

char licence[] SEC("license") = "Dual BSD/GPL";
