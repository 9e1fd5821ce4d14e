"""Follows programs while they run, and reads what others recorded of theirs: always the same tables."""
