"""The result directory: the only code that knows its files."""
