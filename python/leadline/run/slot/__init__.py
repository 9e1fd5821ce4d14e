"""How one slot of a plan is executed on this host: its jobs, their workers, and what is seen meanwhile."""
