"""Settings of hosts and Ceph: what they are and cost, and how one is changed, proved and taken back."""
