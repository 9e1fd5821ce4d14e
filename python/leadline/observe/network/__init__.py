"""What passes the network: interfaces, sockets and connections of this host, ports of a lab."""
