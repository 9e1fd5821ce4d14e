"""A virtual machine beside the lab, whose kernel has the clients that the host's may lack."""
