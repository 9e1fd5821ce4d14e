"""No scheme and no engine of a library is known by its name outside the engine's table and the lab.

`python tools/house/schemes.py [PACKAGE]` prints each place that breaks this, and ends with 1 where there is
one. The names are those of the engine's own table.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from leadline import _core

PACKAGE = Path(__file__).parents[2] / "python" / "leadline"
# The words that mean something else: file or folder, the word, and what it means there.
OTHER_MEANINGS: tuple[tuple[str, str, str], ...] = (
    ("study/schemes.py", "nfs", "the kernel's file system, and the way to a target through its mount"),
    ("study/schemes.py", "smb", "the way to a target through the kernel's mount"),
    ("study/schema.py", "null", "JSON Schema's type of nothing"),
    ("yamlio/yaml_source.py", "null", "YAML's tag of nothing"),
    ("tracing", "null", "JSON's word for nothing"),
    ("observe/commands.py", "null", "ffmpeg's format without a file"),
    ("observe/mounts/fuse_client.py", "root", "ceph-fuse's directory of the file system"),
    ("observe/mounts/reachable.py", "root", "the root directory of this host"),
    ("observe/mounts/users.py", "root", "a process's root directory, /proc/PID/root"),
    ("cli/measure/labs.py", "nfs", "a kernel client of a guest of the lab"),
    ("cli/measure/labs.py", "smb", "a kernel client of a guest of the lab"),
)


def names() -> frozenset[str]:
    """The schemes that stand before `://`, and the engines that serve them."""
    of_urls = [scheme for scheme in _core.schemes() if scheme["storage"] != "mount"]
    engines = (engine["name"] for scheme in of_urls for engine in scheme["engines"])
    return frozenset((*(scheme["name"] for scheme in of_urls), *engines))


def breaches(package: Path) -> Iterator[str]:
    """`FILE:LINE: what` for every such text of a package but in `lab/`, and for every needless exception."""
    known = "|".join(map(re.escape, sorted(names())))
    name = re.compile(rf"({known})(://\S*)?")
    used: set[tuple[str, str, str]] = set()
    for file in sorted(package.rglob("*.py")):
        place = file.relative_to(package)
        if place.parts[0] == "lab":
            continue
        for line, text in _texts(ast.parse(file.read_text(encoding="utf-8"))):
            if name.fullmatch(text) is None:
                continue
            meant = [one for one in OTHER_MEANINGS if _covers(one, place, text)]
            used.update(meant)
            if not meant:
                yield f"{file}:{line}: {text!r} belongs into the engine's table: ask leadline.study.schemes"
    if package == PACKAGE:
        for where, word, _ in sorted(set(OTHER_MEANINGS) - used):
            yield f"{package / where}: {word!r} is not there any more: take the exception out of {__file__}"


def _covers(meaning: tuple[str, str, str], place: Path, text: str) -> bool:
    where, word, _ = meaning
    return text == word and (place == Path(where) or Path(where) in place.parents)


def _texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """All texts of a file, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value.strip()


def main(arguments: list[str]) -> int:
    """Prints what breaks the rule."""
    package = Path(arguments[0]) if arguments else PACKAGE
    found = list(breaches(package))
    for one in found:
        print(one)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
