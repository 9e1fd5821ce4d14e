"""Faults on purpose: what can be broken in a lab, how it is done, and how it is undone whatever happens."""
