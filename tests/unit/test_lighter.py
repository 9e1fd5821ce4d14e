"""What commands leave out of libraries is not loaded, and is there for whoever asks for it by name."""

from __future__ import annotations

import subprocess
import sys

import pytest


def said(program: str) -> str:
    """What a fresh interpreter prints, since modules of this one are loaded already."""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout.strip()


def test_scipy_comes_without_the_parser_of_fortran_which_loads_as_ever() -> None:
    program = """
import sys
from leadline.lighter import special
print(round(special().stdtr(1, 1.0), 12), "numpy.f2py" in sys.modules)
import numpy.f2py, scipy.special
print(callable(numpy.f2py.run_main), special() is scipy.special)
"""
    assert said(program).split() == ["0.75", "False", "True", "True"]


def test_pyarrow_comes_without_pandas_in_a_command_only() -> None:
    pytest.importorskip("pandas")
    program = """
import sys
from leadline.lighter import leave_out_pandas
WHERE
import pyarrow
print(pyarrow.array(["a"]).to_pylist(), "pandas" in sys.modules)
"""
    assert said(program.replace("WHERE", "leave_out_pandas()")) == "['a'] False"
    assert said(program.replace("WHERE", "")) == "['a'] True"
