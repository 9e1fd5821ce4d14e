"""Files are written whole or not at all, and leave nothing beside them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from leadline import durable


def test_an_interrupt_as_soon_as_the_file_is_there_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(path: str, flags: int) -> int:
        Path(path).touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(durable, "private_opener", interrupted)
    with pytest.raises(KeyboardInterrupt):
        durable.write_whole(tmp_path / "whole", b"new")
    assert list(tmp_path.iterdir()) == []


def test_what_fails_while_it_is_written_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "whole").write_bytes(b"old")
    with suppress(ZeroDivisionError), durable.written_whole(tmp_path / "whole") as file:
        file.write(b"ne")
        raise ZeroDivisionError
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("whole", b"old")]
