"""Charts as SVG, for readers without scripts: Vega draws them in a JavaScript engine, which starts slowly."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

_LEAST: dict[str, Any] = {"mark": "point", "data": {"values": []}}


def begin_drawing() -> None:
    """Start the engine in a thread: it is native, and holds no lock of Python's meanwhile."""
    threading.Thread(target=_start).start()


def _start() -> None:
    with suppress(Exception):  # whoever draws the first chart meets it again
        svg_of(_LEAST)


def svg_of(spec: Mapping[str, Any]) -> str:
    """A chart of Vega-Lite as SVG."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(dict(spec)))
