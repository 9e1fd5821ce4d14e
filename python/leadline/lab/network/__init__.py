"""The lab's own data centre: hosts and clients in network namespaces, switches, links with limits."""
