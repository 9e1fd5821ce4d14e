"""Charts as SVG that stands in a page: Vega draws them in a JavaScript engine, which starts slowly.

What Vega says for machines is taken out. What it says of a mark becomes its title, which browsers show.
So a page shows its charts without scripts, and a chart has half of the bytes.
"""

from __future__ import annotations

import functools
import re
import resource
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from typing import Any
from xml.etree import ElementTree

from leadline.interpreter import module_command, module_environment
from leadline.units import format_size

_LEAST: dict[str, Any] = {"mark": "point", "data": {"values": []}}
WIDTH = 400  # CSS pixels, with its axes: a phone shows it so, and two stand beside each other on a screen
_TRIAL_MAX_S = 60
_SVG = "http://www.w3.org/2000/svg"
_SAID = {"role", "class", "pointer-events", "font-family", "stroke-miterlimit"}
_DIGITS = re.compile(r"-?\d+\.\d\d+")
_PLACED = ("d", "transform", "x", "y", "x1", "y1", "x2", "y2", "width", "height", "fill-opacity")
_LINK = re.compile(r"url\(#([^)]+)\)")


@functools.cache
def undrawable() -> tuple[str, str] | None:
    """Why this process cannot draw and what to do. Under a limit of address space a child tries it first."""
    if find_spec("vl_convert") is None:
        return "vl-convert is not installed", "Install it: pip install 'leadline[report]'"
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    with suppress(OSError, subprocess.TimeoutExpired):
        tried = subprocess.run(
            module_command("leadline.report.still_charts"),
            env=module_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TRIAL_MAX_S,
            check=False,
        )
        if tried.returncode == 0:
            return None
    return (
        f"the address space of this process is limited to {format_size(limit)} (ulimit -v),"
        " and the chart engine needs more",
        "Raise the limit: ulimit -v unlimited",
    )


def begin_drawing() -> None:
    """Start the engine in a thread: it is native, and holds no lock of Python's meanwhile."""
    threading.Thread(target=_start).start()


def _start() -> None:
    with suppress(Exception):  # whoever draws the first chart meets it again
        if not undrawable():
            svg_of(_LEAST)


def svg_of(spec: Mapping[str, Any]) -> str:
    """A chart of Vega-Lite as SVG. Ends the process where it is `undrawable`."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(dict(spec)))


def picture(name: str, spec: Mapping[str, Any]) -> str:
    """A chart as SVG to stand in a page among others. Raises as `svg_of`."""
    from leadline.report.charts.parts import CONFIG  # which the build has no extension for

    root = ElementTree.fromstring(svg_of({**spec, "width": WIDTH, "config": CONFIG}))  # noqa: S314  Vega wrote it
    _lean(root, name)
    for attribute in ("version", "class"):
        root.attrib.pop(attribute, None)
    root.set("aria-hidden", "true")
    ElementTree.register_namespace("", _SVG)
    return ElementTree.tostring(root, encoding="unicode")


def _lean(element: ElementTree.Element, name: str) -> None:
    """Take out what no reader sees, from the leaves up, and make ids the chart's own."""
    for child in list(element):
        _lean(child, name)
        if _is_nothing(child):
            element.remove(child)
    kind = next((one for one in element.get("class", "").split() if one.startswith("mark-")), "")
    drawn = "role-mark" in element.get("class", "")
    title = element.get("aria-label") if element.tag != f"{{{_SVG}}}g" else None
    for attribute in [one for one in element.attrib if one in _SAID or one.startswith("aria-")]:
        del element.attrib[attribute]
    if drawn:
        element.set("class", kind)
    if title:
        ElementTree.SubElement(element, f"{{{_SVG}}}title").text = title
    for attribute, value in element.attrib.items():
        if attribute in _PLACED:
            element.set(attribute, _DIGITS.sub(_rounded, value))
        elif attribute == "id":
            element.set(attribute, f"{name}-{value}")
        else:
            element.set(attribute, _LINK.sub(rf"url(#{name}-\1)", value))
    if element.get("opacity") == "1":
        del element.attrib["opacity"]


def _rounded(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")


def _is_nothing(element: ElementTree.Element) -> bool:
    """A group of nothing, or a shape without ink."""
    tag = element.tag.removeprefix(f"{{{_SVG}}}")
    if tag == "g":
        return not len(element)
    inked = any(element.get(one) not in (None, "none") for one in ("fill", "stroke"))
    titled = any(child.tag == f"{{{_SVG}}}title" for child in element)
    return tag == "path" and (element.get("display") == "none" or not (inked or titled))


def main() -> None:
    """Draw one point: whoever started this sees by how it ended whether the chart engine lives here.

    Without a core file: where the engine gets too little address space, it ends the process by SIGTRAP.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    svg_of(_LEAST)


if __name__ == "__main__":
    main()
