"""`python -m leadline.hosts.agent.proxy JSON`: answers calls for a host that has an agent.

It connects by the program that JSON names, has the agent copied there and started, and is from then on to the
command what `hosts/stdio.py` is on a host that has leadline. The host's session is a thread of this process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from leadline.errors import LeadlineError
from leadline.foreign import parse_json
from leadline.hosts.agent.connection import AgentConnection, read_greeting
from leadline.hosts.agent.copying import AgentFile, bring
from leadline.hosts.agent.machine import AgentMachine
from leadline.observe.host.host import EMULATED_VARIABLE
from leadline.observe.machine import work_for
from leadline.removal import discard_tree

_TALK_BYTES_MAX = 1 << 16
_END_S = 10.0
_FAILED = 3


class _Reached:
    """The program that reaches the host, and the last that it said. `place` goes with this process."""

    def __init__(self, command: list[str], place: Path) -> None:
        self._place = place
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._talk = bytearray()
        self._hearing = threading.Thread(target=self._hear, daemon=True)
        self._hearing.start()
        self.ending = False
        self._leaving = threading.Lock()

    def _hear(self) -> None:
        stream = self.process.stderr
        assert stream is not None  # noqa: S101 - PIPE was asked for
        while data := os.read(stream.fileno(), 1 << 12):
            self._talk += data
            del self._talk[:-_TALK_BYTES_MAX]

    def leave(self, words: str = "") -> NoReturn:
        """End this process, and say why: in words, or by the last that was said."""
        self._leaving.acquire()  # who comes later waits for the end of this process
        self.ending = True
        with suppress(OSError, ValueError):
            assert self.process.stdin is not None  # noqa: S101
            self.process.stdin.close()
        code: int | None = None
        with suppress(subprocess.TimeoutExpired):
            code = self.process.wait(_END_S)
            self._hearing.join(1.0)
        if code is None:
            self.process.kill()
        discard_tree(self._place)
        last = self._talk.decode("utf-8", "replace").strip().splitlines()
        os.write(2, f"{words or (last[-1] if last else 'the agent ended')}\n".encode())
        os._exit(_FAILED if words or not code else code)

    def lost(self) -> None:
        """The agent answers no more."""
        if not self.ending:
            self.leave()

    def end(self) -> None:
        """Wait until the agent has ended and its directory is gone: its input has ended."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_END_S)


def serve(asked: dict[str, Any]) -> None:
    """Bring the agent there, and answer until the input ends."""
    from leadline.hosts import procedures
    from leadline.hosts.stdio import own_streams

    server = own_streams()
    place = Path(tempfile.mkdtemp(prefix="leadline-host-"))
    reached = _Reached([str(word) for word in asked["command"]], place)
    to, answers = reached.process.stdin, reached.process.stdout
    assert to is not None  # noqa: S101
    assert answers is not None  # noqa: S101
    files = {machine: AgentFile(machine, Path(path)) for machine, path in asked["files"].items()}
    try:
        bring(files, to, answers)
        connection = AgentConnection(to, answers, read_greeting(answers), reached.lost)
        connection.start()
        there = AgentMachine(connection, str(asked["name"]), place)
        there.refresh()
        if (seen := there.facts()["emulation"]) != "none seen":  # it takes longer, and so do its deadlines
            os.environ.setdefault(EMULATED_VARIABLE, seen)
        work_for(there)
        server.greet(agent=str(connection.greeting.get("machine")))
        with suppress(BrokenPipeError):
            server.serve()
        procedures.leave()
        reached.ending = True
        connection.close()
        reached.end()
    except (EOFError, BrokenPipeError):
        reached.leave()
    except LeadlineError as error:
        reached.leave("; ".join(filter(None, (error.message, error.remedy))))
    except Exception as error:  # whatever is sent in place of what an agent says
        reached.leave(f"what answers there is no agent of leadline's: {type(error).__name__}: {error}")
    finally:
        discard_tree(place)


def main() -> NoReturn:
    """Serve, and leave without a wait for calls that last."""
    try:
        serve(parse_json(sys.argv[1]))
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
