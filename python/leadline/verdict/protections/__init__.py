"""Block sizes and protections beside each other, and what a device of the cluster gives of that."""
