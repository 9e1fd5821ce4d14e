"""What one way to a file system sees of another."""
