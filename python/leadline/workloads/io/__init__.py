"""Reads and writes in fio's vocabulary."""
