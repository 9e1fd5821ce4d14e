"""What is said of the hosts of a study that ran on several: which one is slow, how far apart they began."""
