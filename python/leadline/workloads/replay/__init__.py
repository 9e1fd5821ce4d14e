"""The calls of a trace, repeated."""
