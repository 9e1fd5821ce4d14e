"""Bytes of a process that only the kernel counted: from which size on they are said, and how."""

from __future__ import annotations

from trace_tables import process

from leadline.tracing.figures import unseen, unseen_words
from leadline.verdict.codes.catalogue import catalogue

THRESHOLDS = catalogue()["bytes_unseen"].thresholds
READ, WRITTEN = int(THRESHOLDS["read_bytes"]), int(THRESHOLDS["written_bytes"])


def test_up_to_the_bounds_nothing_is_said() -> None:
    rows = [process(0), process(1, unseen_read=READ, unseen_written=-WRITTEN)]
    assert unseen(rows, THRESHOLDS) == ()


def test_more_and_fewer_bytes_are_said_with_their_process_the_worst_first() -> None:
    rows = [
        process(0, unseen_read=0, unseen_written=WRITTEN + 1),
        process(1, unseen_read=3 << 20, unseen_written=0),
        process(2, unseen_read=-READ - 1, unseen_written=5),
        process(3, unseen_read=READ + 2, unseen_written=0),
    ]
    found = unseen(rows, THRESHOLDS)
    assert [item.process for item in found] == [1, 2, 3, 0]
    words = unseen_words(found)
    assert words.startswith("/usr/bin/tar (pid 101): 3 MiB more read than was recorded; ")
    assert "(pid 102): 512 KiB less read and 5 B more written than was recorded" in words
    assert words.endswith("and 1 more process")
