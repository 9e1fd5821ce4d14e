"""What a command line changes of a study before it is validated: `--set`, `--bound`, `-- COMMAND`."""
