"""What documents and comments name exists: files, links, modules, make targets and exit codes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.cli import main

ROOT = Path(__file__).parents[2]
TRACKED = frozenset(
    subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
)
FOLDERS = frozenset(str(parent) for path in TRACKED for parent in Path(path).parents)
# A change log names what was: files and targets that are gone too.
DOCUMENTS = sorted(path for path in TRACKED if path.endswith(".md") and path != "CHANGELOG.md")
SOURCES = sorted(path for path in TRACKED if path.endswith((".py", ".rs", ".toml", ".yaml", ".md")))
# A path may be written from the root, or from the top of a package.
_TOPS = ("", "python/leadline/", "crates/engine/src/", "crates/", "crates/bpf/", "tests/")
_PATH = re.compile(
    r"`((?:crates|python|tests|tools|bench|docs)/[\w./-]+|[a-z_]+(?:/[a-z_]+)+\.(?:py|rs|yaml|toml|h))(?:::\w+)?`"
)
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[\w-]+)?\)")
_MODULE = re.compile(r"`((?:leadline\.)?([a-z_]+)(?:\.(?!(?:py|rs|toml|md|json|yaml)`)[a-z_]+)+)`")
_TARGET = re.compile(r"`make ([a-z-]+)|^    make ([a-z-]+)")
_MODULES = frozenset(
    ".".join(Path(path).with_suffix("").parts[1:]).removesuffix(".__init__")
    for path in TRACKED
    if path.startswith("python/leadline/") and path.endswith(".py")
) | {"leadline._core"}


def lines(paths: list[str]) -> Iterator[tuple[str, str]]:
    for path in paths:
        if path.startswith("CHANGELOG"):
            continue
        for number, line in enumerate((ROOT / path).read_text(errors="replace").splitlines(), start=1):
            yield f"{path}:{number}", line


def is_there(path: str) -> bool:
    return any(top + path.rstrip("/") in TRACKED | FOLDERS for top in _TOPS)


def test_every_file_that_a_document_names_exists() -> None:
    named = [(place, found[1]) for place, line in lines(DOCUMENTS) for found in _PATH.finditer(line)]
    assert len(named) > 100  # else the pattern finds nothing any more
    assert [f"{place}: {path}" for place, path in named if not is_there(path)] == []


def test_every_link_of_a_document_leads_to_a_file() -> None:
    missing = [
        f"{place}: {found[1]}"
        for place, line in lines(DOCUMENTS)
        for found in _LINK.finditer(line)
        if "://" not in found[1] and not (ROOT / place.rpartition(":")[0]).parent.joinpath(found[1]).exists()
    ]
    assert missing == []


def is_named_module(name: str) -> bool:
    """Whether a dotted name is a module, or a function, a class or a method in one that is a file."""
    packages = {module.rpartition(".")[0] for module in _MODULES}
    parents = [name.rsplit(".", depth)[0] for depth in (1, 2)]
    return name in _MODULES or any(one in _MODULES - packages for one in parents)


def test_every_module_that_a_text_names_exists() -> None:
    tops = {module.split(".")[1] for module in _MODULES if "." in module}
    wrong = []
    for place, line in lines(SOURCES):
        for found in _MODULE.finditer(line):
            if found[2] not in tops and not found[1].startswith("leadline."):
                continue
            whole = "leadline." + found[1].removeprefix("leadline.")
            if not is_named_module(whole):
                wrong.append(f"{place}: {found[1]}")
    examples = {"leadline.a.b", "leadline.a"}  # of an explanation in tools/test_for.py
    assert [one for one in wrong if one.rpartition(" ")[2] not in examples] == []


def test_every_make_target_that_a_document_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = [
        (place, found[1] or found[2]) for place, line in lines(DOCUMENTS) for found in _TARGET.finditer(line)
    ]
    assert len(named) > 30
    assert [f"{place}: make {target}" for place, target in named if target not in targets] == []


@pytest.mark.parametrize("where", ["help", "page"])
def test_the_exit_codes_that_are_written_are_those_of_the_program(where: str) -> None:
    codes = {value for name, value in vars(main).items() if name.startswith("EXIT_")} - {
        main.EXIT_INTERRUPTED
    }
    if where == "help":
        written = re.findall(r"\b(\d+) [a-z]", (main.leadline.help or "").partition("Exit codes:")[2])
    else:
        table = (ROOT / "docs" / "results.md").read_text().partition("## Exit codes")[2].partition("\n\nR")[0]
        written = re.findall(r"^\| (\d) \|", table, re.MULTILINE)
    assert {int(code) for code in written} == codes
