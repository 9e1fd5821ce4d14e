"""A dead man's switch: a process of its own session that puts a run back unless it is confirmed in time.

It survives whoever started it, the end of their terminal, and a journal that can no longer be read or
written: it remembers what it has read. It does not survive a reboot, after which `leadline tune revert` puts
back what is still there. While it waits it watches the health of the cluster.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from leadline.errors import LeadlineError, RefusedChangeError
from leadline.interpreter import module_command, module_environment
from leadline.tuning.changing.journal import TuningJournal
from leadline.tuning.changing.reverting import Reverted, put_back, reached
from leadline.tuning.changing.state import JournalState, TuningRun
from leadline.tuning.surroundings import HealthSeen, health_of, worsened

_POLL_S = 0.25
_HEALTH_S = 2.0
_START_S = 20.0
_LOCK_S = 300.0  # who applies at that moment ends by itself within this
LOG = "holding.log"
MODULE = "leadline.tuning.changing.holding"


def start(directory: Path, run: str, within_s: float) -> None:
    """Starts it, and returns once it has said in the journal that it waits. Raises RefusedChangeError."""
    words = (str(directory.absolute()), run, repr(within_s))
    try:
        log = os.open(
            directory / LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        try:
            child = subprocess.Popen(
                module_command(MODULE, *words),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=module_environment(), cwd="/",
                start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(log)
    except OSError as error:
        raise RefusedChangeError(
            f"the process that is to put everything back could not be started: {error.strerror}",
            f"see {directory / LOG}",
        ) from error
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
    end, look, known = time.monotonic() + within_s, 0.0, JournalState({}, ())
    while True:
        known = _looked(journal, known)
        if known.runs and run not in known.runs:
            return "the journal was set aside: the run was undone"
        if how := _over(known, run):
            return how
        now = time.monotonic()
        if now >= end:
            return _put_back(journal, run, known, "nobody confirmed it in time")
        if now >= look and run in known.runs:
            look = now + _HEALTH_S
            if worse := _worse(known.runs[run]):
                return _put_back(journal, run, known, f"the cluster is worse off: {worse}")
        time.sleep(_POLL_S)


def _looked(journal: TuningJournal, known: JournalState) -> JournalState:
    """What the journal says; what it said before, where it cannot be read or is gone."""
    try:
        found = journal.state()
    except LeadlineError:
        return known
    return found if found.runs else known


def _over(state: JournalState, run: str) -> str:
    """How the run came to its end without this process; "" where it did not."""
    if run not in state.runs:
        return ""
    if state.runs[run].confirmed:
        return "confirmed"
    return "undone by another" if state.runs[run].ended and not state.outstanding(run) else ""


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


def _put_back(journal: TuningJournal, run: str, known: JournalState, why: str) -> str:
    """Once nobody else changes settings; without the lock where it cannot be had for another reason."""
    while True:
        try:
            with journal.locked(_LOCK_S):
                return _put_back_alone(journal, run, known, why)
        except RefusedChangeError:
            if not journal.is_busy():
                return _put_back_alone(journal, run, known, why)


def _put_back_alone(journal: TuningJournal, run: str, known: JournalState, why: str) -> str:
    known = _looked(journal, known)
    if how := _over(known, run):
        return how
    if run not in known.runs:
        return f"nothing is known of run {run}: {journal.path} cannot be read"
    with reached(known.runs[run].reach) as system:
        found: Reverted = put_back(journal, known.outstanding(run), lambda _: system)
    left = f"; left: {'; '.join(found.left)}" if found.left else ""
    journal.say_if_it_can("ended", run=run, how=f"put back: {why}{left}")
    return f"put back: {why}{left}"


def main() -> None:
    """Waits as the command line says; the log has how it ended."""
    directory, run, within_s = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    journal = TuningJournal(directory)
    journal.say("holding", run=run, pid=os.getpid())
    how = wait(journal, run, within_s)
    with suppress(OSError):  # the log is on the same disk
        sys.stdout.write(f"{how}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
