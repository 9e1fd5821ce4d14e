"""What counts as one process, as one file, and as the user's; and what a tracer's own time is."""
