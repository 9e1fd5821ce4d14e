"""A dead man's switch: a process of its own session that puts a run back unless it is confirmed in time.

It survives whoever started it and the end of their terminal; not a reboot, after which `leadline tune revert`
puts back what is still there. While it waits it watches the health of the cluster.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from leadline.errors import LeadlineError, RefusedChangeError
from leadline.interpreter import module_command, module_environment
from leadline.tuning.changing.journal import TuningJournal, TuningRun
from leadline.tuning.changing.reverting import reached, revert
from leadline.tuning.health import HealthSeen, health_of, worsened

_POLL_S = 0.25
_HEALTH_S = 2.0
_START_S = 20.0
_LOCK_S = 300.0  # who applies at that moment ends by itself within this
LOG = "holding.log"
MODULE = "leadline.tuning.changing.holding"


def start(directory: Path, run: str, within_s: float) -> None:
    """Starts it, and returns once it has said in the journal that it waits. Raises RefusedChangeError."""
    log = os.open(
        directory / LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
    )
    try:
        words = (str(directory.absolute()), run, repr(within_s))
        child = subprocess.Popen(
            module_command(MODULE, *words),
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=module_environment(), cwd="/",
            start_new_session=True,
        )  # fmt: skip
    finally:
        os.close(log)
    journal, end = TuningJournal(directory), time.monotonic() + _START_S
    while time.monotonic() < end and child.poll() is None:
        if journal.state().runs[run].holder_pid == child.pid:
            return
        time.sleep(0.02)
    child.kill()
    raise RefusedChangeError(
        "the process that is to put everything back could not be started: nothing was changed",
        f"see {directory / LOG}",
    )


def is_held(run: TuningRun) -> bool:
    """Whether its switch still waits."""
    try:
        words = Path(f"/proc/{run.holder_pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return MODULE.encode() in words and run.id.encode() in words


def wait(journal: TuningJournal, run: str, within_s: float) -> str:
    """Until the run is confirmed or undone, or puts it back; how it ended, in words."""
    end, look = time.monotonic() + within_s, 0.0
    while True:
        state = journal.state()
        if run not in state.runs:
            return "the journal was set aside: the run was undone"
        if state.runs[run].confirmed:
            return "confirmed"
        if state.runs[run].ended and not state.outstanding(run):
            return "undone by another"
        now = time.monotonic()
        if now >= end:
            return _put_back(journal, run, "nobody confirmed it in time")
        if now >= look:
            look = now + _HEALTH_S
            if worse := _worse(state.runs[run]):
                return _put_back(journal, run, f"the cluster is worse off: {worse}")
        time.sleep(_POLL_S)


def _worse(run: TuningRun) -> str:
    """What is worse in the cluster than before the run; a cluster that does not answer is not judged."""
    if not run.health:
        return ""
    with reached(run.reach) as system:
        try:
            now = health_of(system.around)
        except LeadlineError:
            return ""
    return "; ".join(worsened(HealthSeen.from_json(run.health), now, run.health.get("expected", ())))


def _put_back(journal: TuningJournal, run: str, why: str) -> str:
    with journal.locked(_LOCK_S):
        if journal.state().runs[run].confirmed:
            return "confirmed"
        found = revert(None, journal, run=run)
        left = f"; left: {'; '.join(found.left)}" if found.left else ""
        journal.say("ended", run=run, how=f"put back: {why}{left}")
    return f"put back: {why}{left}"


def main() -> None:
    """Waits as the command line says; the log has how it ended."""
    directory, run, within_s = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    journal = TuningJournal(directory)
    journal.say("holding", run=run, pid=os.getpid())
    sys.stdout.write(f"{wait(journal, run, within_s)}\n")


if __name__ == "__main__":
    main()
