"""Logs of Darshan, read by PyDarshan in a process of its own, as the tables of a trace."""
