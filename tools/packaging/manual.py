"""Man pages of all commands, out of their help: tools/packaging/manual.py VERSION DIRECTORY

The Python that runs it has leadline and click-man.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click
from click_man.core import write_man_pages

from leadline.cli.main import leadline

# A paragraph whose lines stay as they are, as click marks it.
_UNWRAPPED = re.compile(r"\x08\n(.*?)(?=\n\.(?:PP|SH))", re.DOTALL)


def load(command: click.Command, context: click.Context) -> None:
    """Commands that are loaded when they are named become those that a group has, as click-man asks for."""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None:
                load(found, click.Context(found, info_name=name, parent=context))
                command.commands[name] = found


def main() -> None:
    """Write them all."""
    version, directory = sys.argv[1], Path(sys.argv[2])
    directory.mkdir(parents=True, exist_ok=True)
    load(leadline, click.Context(leadline, info_name="leadline"))
    write_man_pages("leadline", leadline, version=version, target_dir=str(directory))
    for page in directory.glob("*.1"):
        page.write_text(_UNWRAPPED.sub(r".nf\n\1\n.fi", page.read_text()))


if __name__ == "__main__":
    main()
