"""What the kernel says of this host: CPUs, devices, processes."""
