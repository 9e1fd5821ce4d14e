"""A study's host that has no leadline: its session runs here, and an agent touches that host for it.

The agent is one program without Python, in an installation's `lib/agent`. `copying.py` brings it there by
SSH, `connection.py` calls it, `children.py` has its workers and observers in the place of processes here,
`machine.py` is that host as the rest of the package asks for it, and `proxy.py` is the process that joins
them: to the command it is what answers calls on any other host (`hosts/stdio.py`).
"""
