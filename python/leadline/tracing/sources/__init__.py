"""Where traces come from: the library, the kernel, strace, Darshan."""
