"""Finds out what a target is, and samples host, processes and cluster while a trial runs."""
