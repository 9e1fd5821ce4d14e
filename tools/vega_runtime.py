"""Keeps the charts' runtime beside the page's templates, so that no report has to put it together."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from leadline.report.renderers.runtime import made_runtime

PLACE = Path(__file__).parent.parent / "python" / "leadline" / "report" / "templates"


def main() -> None:
    """Write the runtime of the installed vl-convert, and take away those of others."""
    path = PLACE / f"vega-{version('vl-convert-python')}.js"
    for other in PLACE.glob("vega-*.js"):
        if other != path:
            other.unlink()
    notices = (PLACE / "notices.txt").read_text(encoding="utf-8")
    if not path.exists() or notices not in path.read_text(encoding="utf-8"):
        path.write_text(made_runtime(), encoding="utf-8", newline="")


if __name__ == "__main__":
    main()
