"""What is done to files and directories themselves, as mdtest does it."""
