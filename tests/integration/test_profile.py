"""`leadline profile` with real programs: slopes that are known, and run times on a slow mount."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import slow_fuse
from built import PROGRAM, built
from leadline.causal.model import CLASSES
from slow_fuse import SlowMount
from support import Command, command_line

BLOCK = 4096
READ_MS = 4.0
QUICK = ("--blocks", "3", "--delay", "1ms")
LONGER = ("--blocks", "3", "--delay", "4ms")  # more than a busy machine adds

# Reads 30 blocks, allows itself no sleeping any more, and reads 30 others.
FILTERS = r"""
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static char block[4096];
static int reads(int f) {
  for (int i = 0; i < 30; i++) if (read(f, block, sizeof block) < 1) return 1;
  return 0;
}
int main(int c, char **v) {
  struct sock_filter no_sleep[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_nanosleep, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {4, no_sleep};
  int f = open(v[1], O_RDONLY);
  if (reads(f) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 1;
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 2;
  return reads(f) + c - 2;
}
"""


@pytest.fixture(scope="module")
def reads() -> Path:
    source = Path(__file__).parents[1] / "programs" / "reads_in_threads.c"
    return built("reads_in_threads", [source], ["cc", "-O2", "-pthread", "-o", PROGRAM, str(source)])


@pytest.fixture
def data(place: Path) -> Path:
    (place / "data").write_bytes(os.urandom(800 * BLOCK))
    return place / "data"


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[SlowMount]:
    if slow_fuse.missing():
        pytest.skip(str(slow_fuse.missing()))
    with slow_fuse.mounted(slow_fuse.build(), tmp_path) as mount:
        yield mount


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-c", code)


def profiled(leadline: Command, words: Sequence[str], *options: str, code: int = 0) -> dict[str, Any]:
    done = leadline("profile", "--json", *options, "--", *words, timeout=300)
    assert done.returncode == code, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def slope(found: dict[str, Any], name: str) -> tuple[float, float, float]:
    one = found["classes"][name]["slope"]
    return one["low"], one["value"], one["high"]


def assert_near(found: tuple[float, float, float], truth: float, by: float) -> None:
    """Near it, or, on a machine that is too busy for that, with an interval that says so."""
    low, value, high = found
    assert low <= truth <= high or value == pytest.approx(truth, abs=by), found


def run_s(words: Sequence[str]) -> float:
    start = time.monotonic()
    subprocess.run(words, check=True, timeout=120)
    return time.monotonic() - start


def test_a_program_that_reads_one_block_after_the_other_waits_for_each(
    leadline: Command, reads: Path, data: Path
) -> None:
    found = profiled(
        leadline, (str(reads), str(data), "200", "1", "0", "0"), "--below", str(data.parent), *QUICK
    )
    assert_near(slope(found, "small-read"), 1.0, 0.1)
    assert found["classes"]["small-read"]["calls"] == 200
    assert set(found["called"]) <= set(CLASSES)
    waited = [
        run["sums"]["small-read"]["waited_s"] for run in found["runs"] if run["delayed"] == "small-read"
    ]
    assert min(waited) >= 200 * 0.001


def test_threads_that_wait_side_by_side_share_the_slope(leadline: Command, reads: Path, data: Path) -> None:
    words = (str(reads), str(data), "400", "8", "0", "0")
    found = profiled(leadline, words, "--class", "small-read", *LONGER)
    assert_near(slope(found, "small-read"), 1 / 8, 0.06)


def test_reads_beside_longer_work_are_hidden(leadline: Command, reads: Path, data: Path) -> None:
    words = (str(reads), str(data), "100", "1", "6000", "1")
    found = profiled(leadline, words, "--class", "small-read", *LONGER)
    assert_near(slope(found, "small-read"), 0.0, 0.15)


@pytest.mark.parametrize(("threads", "compute_us"), [(1, 1000), (4, 0)])
def test_the_run_time_on_a_slow_mount_is_as_was_predicted_on_a_quick_one(
    leadline: Command, reads: Path, data: Path, slow: SlowMount, tmp_path: Path, threads: int, compute_us: int
) -> None:
    """What calls take there is another program's; what this one takes there natively is seen afterwards."""
    (slow.backing / "data").write_bytes(data.read_bytes())
    slow.rules(read_ms=READ_MS)
    there = tmp_path / "there.json"
    probe = (str(reads), str(slow.path / "data"), "40", str(threads), "0", "0")
    options = ("--class", "small-read", "--blocks", "5", "--delay", "1ms")
    profiled(leadline, probe, *options, "--below", str(slow.path), "-o", str(there))
    subject = (str(threads), str(compute_us), "0")
    here = (str(reads), str(data), "400", *subject)
    options = ("--class", "small-read", "--blocks", "5", "--delay", "1ms,4ms")
    found = profiled(leadline, here, *options, "--below", str(data.parent), "--like", str(there))
    predicted = found["elsewhere"]["time"]["one"]
    native = [run_s((str(reads), str(slow.path / "data"), "400", *subject)) for _ in range(3)]
    # Far from what it takes here, so that the prediction has something to say.
    assert min(native) > 2 * max(run_s(here), 0.1) or compute_us
    # A tenth beyond the interval: the mount answers several at once more slowly than it answered the probe.
    inside = [0.9 * predicted["low"] <= one <= 1.1 * predicted["high"] for one in native]
    assert sum(inside) >= 2, (native, predicted)


@pytest.mark.processors  # a mean waiting time beside others' work is no bound of the mount's own
def test_a_trace_made_there_tells_what_calls_take(
    leadline: Command, reads: Path, data: Path, slow: SlowMount, tmp_path: Path
) -> None:
    (slow.backing / "data").write_bytes(data.read_bytes())
    slow.rules(read_ms=READ_MS)
    trace = tmp_path / "trace"
    probe = (str(reads), str(slow.path / "data"), "20", "1", "0", "0")
    assert leadline("trace", "-o", str(trace), "--", *probe).returncode == 0
    words = (str(reads), str(data), "100", "1", "0", "0")
    found = profiled(leadline, words, "--class", "read", *QUICK, "--like", str(trace))
    latency_s = found["elsewhere"]["there"]["small-read"]["value"]
    assert latency_s >= READ_MS / 1000
    # The reads there, and besides at most what it takes here, of which they are a part, too.
    waited_s = 100 * latency_s
    assert (
        0.9 * waited_s
        <= found["elsewhere"]["time"]["mean"]["value"]
        <= 1.1 * waited_s + found["run"]["value"]
    )


def test_metadata_writes_and_syncs_are_delayed_below_the_directory_only(
    leadline: Command, place: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    code = (
        "import os\n"
        f"for place, count in (({str(place)!r}, 20), ({str(other)!r}, 5)):\n"
        "    f = os.open(place + '/f', os.O_RDWR | os.O_CREAT)\n"
        "    for _ in range(count):\n"
        "        os.pwrite(f, b'x', 0); os.fsync(f); os.stat(place + '/f')\n"
        "    os.close(f)\n"
    )
    found = profiled(leadline, python(code), "--below", str(place), *LONGER)
    calls = {name: one["calls"] for name, one in found["classes"].items()}
    assert calls["write"] == 20
    assert calls["sync"] == 20
    assert 22 <= calls["metadata"] <= 30
    assert_near(slope(found, "sync"), 1.0, 0.5)


def test_children_are_delayed_too(leadline: Command, place: Path, data: Path) -> None:
    words = ("sh", "-c", f"head -c 81920 {data} | cat > {place}/copy; cat {place}/copy > /dev/null")
    found = profiled(leadline, words, "--class", "read", *QUICK, "--below", str(place))
    assert sum(one["calls"] for one in found["classes"].values()) >= 2


def test_streams_of_the_c_library_are_delayed_where_they_reach_the_kernel(
    leadline: Command, place: Path, tmp_path: Path
) -> None:
    source = tmp_path / "s.c"
    source.write_text(
        '#include <stdio.h>\nint main(int c, char **v)\n{\n\tFILE *f = fopen(v[1], "r");\n'
        "\twhile (getc(f) != EOF)\n\t\t;\n\treturn fclose(f) + c - 2;\n}\n"
    )
    subprocess.run(["cc", "-o", tmp_path / "s", source], check=True)
    (place / "text").write_bytes(bytes(10 * BLOCK))
    found = profiled(leadline, (str(tmp_path / "s"), str(place / "text")), "--class", "small-read", *QUICK)
    assert found["classes"]["small-read"]["calls"] == 11  # ten blocks and the end, not 40,960 characters


def test_a_program_that_filters_its_calls_lives_and_what_was_not_delayed_is_said(
    leadline: Command, data: Path, tmp_path: Path
) -> None:
    source = tmp_path / "f.c"
    source.write_text(FILTERS)
    subprocess.run(["cc", "-o", tmp_path / "f", source], check=True)
    found = profiled(leadline, (str(tmp_path / "f"), str(data)), "--class", "small-read", *QUICK)
    assert found["classes"]["small-read"]["calls"] == 60
    assert any("of the small-read calls were not delayed" in text for text in found["cautions"])


def test_what_the_program_prints_is_not_shown_and_it_has_nothing_to_read(
    leadline: Command, data: Path
) -> None:
    code = f"import sys; print('out', sys.stdin.read()); sys.stderr.write('err'); open({str(data)!r}).close()"
    done = leadline(
        "profile", *QUICK, "--class", "metadata", "--below", str(data.parent), "--", *python(code), input="in"
    )
    assert done.returncode == 0
    assert "out" not in done.stdout.split()
    assert "err" not in done.stderr.split()
    assert done.stdout.splitlines()[1].startswith(("It is most sensitive to metadata", "Whether it waits"))


BAD = {
    "no command": (("profile",), 2, "takes a command"),
    "unknown class": (
        ("profile", "--class", "opens", "--", "true"),
        2,
        "no class of calls is called 'opens'",
    ),
    "no class": (("profile", "--class", "", "--", "true"), 2, "no class of calls is called ''"),
    "no delay": (("profile", "--delay", "0", "--", "true"), 2, "delays nothing"),
    "long delay": (("profile", "--delay", "2s", "--", "true"), 2, "longer than a second"),
    "no time": (("profile", "--for", "0", "--", "true"), 2, "leaves no time"),
    "not found": (("profile", "--", "no-such-command"), 2, "was not found"),
    "no directory": (("profile", "--below", "/no/such/place", "--", "true"), 2, "does not exist"),
    "no call there": (("profile", "--", "true"), 2, "reached a file below"),
    "both": (("profile", "--at", "write=1ms", "--like", "/tmp", "--", "true"), 2, "both give"),
    "no latency": (("profile", "--at", "write", "--", "true"), 2, "no latency of a class"),
    "no profile": (("profile", "--from", "/dev/null"), 2, "/dev/null"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_what_to_do(leadline: Command, place: Path, name: str) -> None:
    words, code, says = BAD[name]
    done = leadline(*words, cwd=place)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 2, done.stderr


def test_a_static_program_is_refused(leadline: Command, tmp_path: Path) -> None:
    source = tmp_path / "s.c"
    source.write_text("int main(void) { return 0; }\n")
    built_it = subprocess.run(
        ["cc", "-static", "-o", tmp_path / "s", source], check=False, capture_output=True
    )
    if built_it.returncode != 0:
        pytest.skip("no static C library")
    done = leadline("profile", "--", str(tmp_path / "s"))
    assert done.returncode == 2
    assert "cannot be delayed" in done.stderr
    assert "statically linked" in done.stderr


def test_a_program_that_fails_is_named_with_its_exit_code_and_gives_no_figures(
    leadline: Command, data: Path
) -> None:
    code = f"import sys; open({str(data)!r}).read(1) if 0 else open({str(data)!r}); sys.exit('no luck') "
    done = leadline("profile", *QUICK, "--", *python(code), cwd=data.parent)
    assert (done.returncode, done.stdout) == (1, "")
    assert "ended with exit code 1 (no luck) in run 1" in done.stderr


def test_a_program_that_works_once_only_is_named(leadline: Command, data: Path) -> None:
    code = f"import os; os.mkdir({str(data.parent)!r} + '/made')"
    done = leadline("profile", *QUICK, "--", *python(code), cwd=data.parent)
    assert done.returncode == 1
    assert "exit code 1" in done.stderr
    assert "in run 2" in done.stderr


def test_the_time_allowed_ends_a_program_that_goes_on(leadline: Command, data: Path) -> None:
    code = f"import time; open({str(data)!r}).close(); time.sleep(100)"
    begun = time.monotonic()
    done = leadline("profile", "--for", "1s", "--", *python(code), cwd=data.parent)
    assert done.returncode == 1
    assert "--for" in done.stderr
    assert time.monotonic() - begun < 60


def test_ctrl_c_is_said_and_leaves_no_process_and_no_directory(data: Path, tmp_path: Path) -> None:
    mark, out = data.parent / "begun", tmp_path / "out"
    out.mkdir()
    code = f"import time; open({str(mark)!r}, 'w').close(); time.sleep(100)"
    words = command_line("profile", "-o", str(out / "p.json"), "--", *python(code))
    running = subprocess.Popen(
        words, cwd=data.parent, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    end = time.monotonic() + 60
    while not mark.exists() and time.monotonic() < end:
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 1
    assert "interrupted in the first run" in said
    assert list(out.iterdir()) == []


def test_a_profile_is_kept_and_predicts_without_running_anything(
    leadline: Command, reads: Path, data: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "p.json"
    words = (str(reads), str(data), "100", "1", "0", "0")
    done = leadline("profile", "-o", str(kept), *QUICK, "--", *words)
    assert done.returncode == 0
    data.unlink()
    done = leadline("profile", "--from", str(kept), "--at", "read=2ms,metadata=1ms")
    assert done.returncode == 0, done.stderr
    assert "Where a call takes metadata 1.00 ms, small-read 2.00 ms" in done.stdout
    assert leadline("profile", "-o", str(kept), "--", *words).returncode == 2
