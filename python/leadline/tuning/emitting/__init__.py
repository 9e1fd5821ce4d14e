"""Settings as the files and commands of those who keep hosts and clusters: one intermediate, many formats."""
