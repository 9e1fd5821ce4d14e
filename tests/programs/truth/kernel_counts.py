"""Runs a command and keeps what the kernel counted of it: `kernel_counts.py FILE COMMAND...`.

Read while the command is a zombie: until then its counts and those of the children it waited for are there.
"""

import os
import sys

pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
with open(f"/proc/{pid}/io") as counts, open(sys.argv[1], "w") as kept:
    kept.write(counts.read())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
