"""What a mount or a location is, what it can do, and who uses it."""
