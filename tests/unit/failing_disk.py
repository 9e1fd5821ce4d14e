"""A disk of a tuning journal whose writes fail, from the call on that a test says."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


class FailingDisk:
    """Calls that write below a directory `state` fail from call `fails_at` on; 0: none does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls, self.fails_at, self.error = 0, 0, errno.ENOSPC
        for name in ("write", "pwrite", "fsync", "truncate", "ftruncate", "posix_fallocate"):
            monkeypatch.setattr(os, name, self._failing(getattr(os, name)))

    def _failing(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def called(descriptor: Any, *arguments: Any) -> Any:
            path = (
                Path(f"/proc/self/fd/{descriptor}").readlink() if isinstance(descriptor, int) else descriptor
            )
            if "/state" in str(path):
                self.calls += 1
                if self.fails_at and self.calls >= self.fails_at:
                    raise OSError(self.error, os.strerror(self.error), str(path))
            return real(descriptor, *arguments)

        return called
