"""iperf3 on one host as it was told: it listens, sends in turns, and prints what came of each as JSON.

    python -m leadline.check.measured.exchange '{"address": …, "listen": […], "turns": […], "seconds": 1}'

Its peers start as much as seconds later or earlier: who sends asks again until somebody listens. What it
started ends with it, also after `kill -9`.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from leadline.foreign import parse_json
from leadline.observe.host.proc_parse import parse_stat

STARTED_S, ENDED_S = 10.0, 15.0  # until a peer listens; for a transfer beside its own time
_AGAIN_S = 0.05
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
Answer = dict[str, Any]


def exchange(told: Mapping[str, Any]) -> Answer:
    """By peer: what `iperf3 -J` printed of each turn's stream to it, or an `error`; `busy` of the processors.

    `turns` are lists of sends (`to`, `address`, `port`, `streams`): those of one list go at once.
    """
    program = shutil.which("iperf3")
    if program is None:
        return {"error": "no iperf3"}
    seconds = float(told["seconds"])
    with ExitStack() as stack:
        listening = []
        for port in told["listen"]:
            listening.append(_Listener(program, told["address"], port))
            stack.callback(listening[-1].end)
        sent: list[dict[str, Answer]] = []
        busy: list[float] = []
        for turn in told["turns"]:
            before = parse_stat(Path("/proc/stat").read_text())["cpu"]
            sent.append(_at_once(program, turn, seconds))
            after = parse_stat(Path("/proc/stat").read_text())["cpu"]
            busy.append((after.busy - before.busy) / max(1, after.total - before.total))
        problems = _ended(listening, len(told["turns"] or told["listen"]) * (seconds + ENDED_S))
    return {"sent": sent, "busy": busy} | ({"listening": problems} if problems else {})


class _Listener:
    """An iperf3 that takes one client."""

    def __init__(self, program: str, address: str, port: int) -> None:
        self.port = port
        self.process = _child([program, "-s", "-1", "-B", address, "-p", str(port)])

    def end(self) -> None:
        """It is gone afterwards."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def _child(words: Sequence[str]) -> subprocess.Popen[bytes]:
    own = os.getpid()

    def bound() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != own:
            os.kill(os.getpid(), signal.SIGKILL)

    return subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=bound,  # noqa: PLW1509 - no thread of this process holds a lock then
    )


def _ended(listening: Sequence[_Listener], limit_s: float) -> list[str]:
    """Why some of them served nobody."""
    until = time.monotonic() + limit_s
    problems = []
    for one in listening:
        try:
            code = one.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            problems.append(f"nobody came to port {one.port}")
            continue
        if code != 0:
            problems.append(f"iperf3 could not listen on port {one.port}")
    return problems


def _at_once(program: str, turn: Sequence[Mapping[str, Any]], seconds: float) -> dict[str, Answer]:
    # A child ends with the thread that started it, so that thread waits for it.
    until = time.monotonic() + STARTED_S
    with ThreadPoolExecutor(max(1, len(turn))) as threads:
        going = {one["to"]: threads.submit(_send, program, one, seconds, until) for one in turn}
        return {to: answer.result() for to, answer in going.items()}


def _send(program: str, one: Mapping[str, Any], seconds: float, until: float) -> Answer:
    where = ["-c", one["address"], "-p", str(one["port"])]
    words = [program, *where, "-t", f"{seconds:g}", "-P", str(one["streams"]), "-J"]
    while True:
        child = _child(words)
        try:
            output, _ = child.communicate(timeout=seconds + ENDED_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            return {"error": "iperf3 did not end"}
        try:
            answer = parse_json(output)
        except ValueError:
            return {"error": "an iperf3 that speaks no JSON"}
        if not isinstance(answer, dict):
            return {"error": "iperf3 answers with no object"}
        if "error" not in answer:
            return _needed(answer)
        if time.monotonic() > until:
            return {"error": f"iperf3: {answer['error']}"}
        time.sleep(_AGAIN_S)


def _needed(answer: Mapping[str, Any]) -> Answer:
    """What is read of it: sums, and each second's; all that iperf3 says is ten times that."""
    seconds = [one.get("sum", {}).get("bits_per_second") for one in answer.get("intervals", ())]
    end = answer.get("end", {})
    return {"end": {name: end.get(name) for name in ("sum_received", "sum_sent")}, "seconds": seconds}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(exchange(json.loads(sys.argv[1]))))
