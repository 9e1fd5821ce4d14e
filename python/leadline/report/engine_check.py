"""`python -m leadline.report.engine_check`: draws one point, to see whether the chart engine lives here.

Without a core file: where the engine gets too little address space, it ends the process by SIGTRAP.
"""

from __future__ import annotations

import resource


def main() -> None:
    """Draw; whoever started this sees how it ended."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import vl_convert

    vl_convert.vegalite_to_svg({"mark": "point", "data": {"values": []}})


if __name__ == "__main__":
    main()
