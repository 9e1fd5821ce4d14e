"""Takes a picture of a report: `python tests/browser/screenshot.py REPORT.html OUT.png [--dark]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from devtools import browser, find_browser


def main() -> int:
    """Exit code 1 where there is no browser."""
    parser = argparse.ArgumentParser(
        description="Write a report as a PNG picture or, for OUT.pdf, as it prints."
    )
    parser.add_argument("report", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--dark", action="store_true", help="in dark colours")
    parser.add_argument("--print", action="store_true", help="as the printed medium, on the screen")
    parser.add_argument("--width", type=int, default=1366, help="of the window, in CSS pixels")
    parser.add_argument("--height", type=int, help="cut the picture here; without it the whole page")
    parser.add_argument("--top", type=int, default=0, help="begin the picture here")
    options = parser.parse_args()
    executable = find_browser()
    if executable is None:
        sys.stderr.write("no Chromium was found: install Debian's package chromium\n")
        return 1
    with browser(executable) as page:
        page.open(options.report, width=options.width, dark=options.dark)
        if options.print:
            page.media(kind="print")
        if options.out.suffix == ".pdf":
            page.pdf(options.out)
        else:
            page.screenshot(options.out, top=options.top, height=options.height)
    return 0


if __name__ == "__main__":
    sys.exit(main())
