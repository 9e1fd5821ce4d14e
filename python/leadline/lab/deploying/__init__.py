"""What a lab stands for, written out for those who deploy a cluster of that shape for real."""
