"""Streams to a target or from it, each with its buffers in flight and every acknowledgement recorded."""
