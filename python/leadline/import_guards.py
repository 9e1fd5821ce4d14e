"""Libraries without what they load and write in passing, which nothing here uses."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING, Any

from leadline.errors import ResultError

if TYPE_CHECKING:
    import duckdb


@contextmanager
def duckdb_in_memory(**settings: Any) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB without files. Raises ResultError where the memory of this host does not suffice.

    By itself it writes what does not fit into `.tmp` of the working directory, which another account may have
    made first: there it would follow links.
    """
    import duckdb

    try:
        with duckdb.connect(config={"temp_directory": "", **settings}) as connection:
            yield connection
    except duckdb.OutOfMemoryException as error:
        raise ResultError(
            f"the tables do not fit into the memory of this host: {str(error).splitlines()[0]}",
            "read the result on a host with more memory",
        ) from None


def leave_out_pandas() -> None:
    """Let pandas not be found in this process, which is a command's: pyarrow asks for it at its first list.

    It would ask whether the list is one of pandas, and take as long for that as for all else it does. None of
    ours is: a reader of logs that needs pandas is a process of its own.
    """
    sys.meta_path.insert(0, _WithoutPandas())


class _WithoutPandas(MetaPathFinder):
    """None in `sys.modules` would say the same to Python, but pyarrow takes it for pandas itself."""

    def find_spec(self, fullname: str, _path: object, _target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
