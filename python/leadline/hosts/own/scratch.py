"""A directory of this account's own for what Dask writes beside its work, in the command and on each host.

Dask itself takes `dask-scratch-space` below the temporary directory, which another account may have made
first. There it opens files by known names, through links too, and it puts the directory before all others
that modules are imported from.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leadline.store.making import temporary


@contextmanager
def private_scratch() -> Iterator[Path]:
    """The directory. Raises UsageError where none can be made that others could not exchange."""
    with temporary(Path(tempfile.gettempdir())) as scratch:
        yield scratch


if __name__ == "__main__":  # whoever could not start Dask on a host asks there for the reason
    with private_scratch():
        pass
