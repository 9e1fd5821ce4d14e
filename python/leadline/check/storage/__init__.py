"""Devices and directories of this host, measured: each alone, and all at once."""
