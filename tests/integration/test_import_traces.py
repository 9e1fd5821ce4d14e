"""`leadline import strace` and `import darshan` from the command line, to what `show` says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import Command, show

START = 1_700_000_000


def test_a_log_of_strace_is_shown_like_any_trace(leadline: Command, tmp_path: Path) -> None:
    log, out = tmp_path / "log", tmp_path / "r"
    log.write_text(
        f'7 {START}.100000 execve("/bin/x", ["x"], 0x1) = 0 <0.000010>\n'
        f"7 {START}.150000 brk(NULL) = 0x1 <0.000010>\n"
        f'7 {START}.200000 openat(AT_FDCWD</w>, "f", O_RDWR) = 3</w/f> <0.000010>\n'
        f'7 {START}.300000 read(3</w/f>, "x"..., 4096) = 4096 <0.100000>\n'
        f"what the program printed\n"
        f"7 {START}.500000 +++ exited with 0 +++\n"
    )
    done = leadline("import", "strace", str(log), "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert "what the program printed" in done.stderr
    shown = show(leadline, out)
    assert shown["kind"] == "trace"
    assert shown["trace"]["mode"] == "import"
    assert shown["trace"]["totals"]["bytes_read"] == 4096
    assert shown["trace"]["totals"]["calls"]["read"] == 1
    again = leadline("import", "strace", str(log), "-o", str(out))
    assert again.returncode == 2
    assert "exists already" in again.stderr


def test_a_log_of_darshan_is_shown_like_any_trace(leadline: Command, tmp_path: Path) -> None:
    pytest.importorskip("darshan", reason="PyDarshan is not installed (leadline[darshan])")
    from darshan_logs import brought

    out = tmp_path / "r"
    done = leadline("import", "darshan", str(brought("ior_hdf5_example.darshan")), "-o", str(out))
    assert done.returncode == 0, done.stderr
    text = leadline("show", str(out), "--all").stdout
    assert "agg_perf_by_slowest" in text
    assert show(leadline, out)["trace"]["totals"]["bytes_written"] > 0


@pytest.mark.parametrize("kind", ["strace", "darshan"])
def test_what_is_no_log_leaves_no_result(leadline: Command, tmp_path: Path, kind: str) -> None:
    log, out = tmp_path / "log", tmp_path / "r"
    log.write_bytes(b"\x00\x01\x02 nothing of the kind\n" * 50)
    done = leadline("import", kind, str(log), "-o", str(out))
    assert done.returncode == 2
    assert "log" in done.stderr
    assert "internal error" not in done.stderr
    assert not out.exists()
