"""The daemons of the lab's Ceph: configuration, keys, processes, start and stop."""
