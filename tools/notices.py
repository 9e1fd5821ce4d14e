"""Writes the notices of what leadline redistributes: names, versions, copyrights and licences.

    python tools/notices.py     of the JavaScript in every page (npm) and of the crates in the wheel (cargo)

They stand in the repository, so that a build needs no npm; a unit test says when they are of other versions.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from importlib import util
from pathlib import Path
from typing import Any

CRATES = Path(__file__).parent.parent / "NOTICES-crates.txt"
PLACE = Path(__file__).parent.parent / "python" / "leadline" / "report" / "templates" / "notices.txt"
_HEAD_CRATES = (
    "Third-party notices: leadline's wheel and agent are linked with these crates, on the terms below.\n"
)
_MODULE = re.compile(rb"/npm/((?:@[a-z0-9-]+/)?[a-z0-9][a-z0-9.-]*)@(\d+\.\d+\.\d+)/")
_NAMED = re.compile(r"([^ ,]+) ([0-9.]+) \(([^)]+)\)")
_NEAREST = {("robust-predicates", "3.0.0"): "3.0.1"}  # a version that the registry does not have (any more)
_HEAD = "Third-party notices: the charts' runtime is made of these packages, each under the terms below it.\n"


def carried() -> list[tuple[str, str]]:
    """Name and version of every package in the installed vl-convert's runtime; of Vega-Lite the newest."""
    found = util.find_spec("vl_convert")
    if found is None or found.submodule_search_locations is None:
        raise SystemExit("vl-convert is not installed: make setup")
    library = next(Path(found.submodule_search_locations[0]).glob("*.so"))
    names = {(name.decode(), text.decode()) for name, text in _MODULE.findall(library.read_bytes())}
    newest: dict[str, str] = {}
    for name, text in names:
        newest[name] = max(newest.get(name, "0.0.0"), text, key=lambda one: tuple(map(int, one.split("."))))
    return sorted(newest.items())


def licences(notices: str) -> list[tuple[str, str, str]]:
    """Name, version and licence of every package that notices name."""
    lines = [part.split("\n")[0] for part in notices.split("\n----\n\n")[1:]]
    return [(name, text, term) for line in lines for name, text, term in _NAMED.findall(line)]


def _licence(directory: Path, terms: str = "") -> str:
    """The texts of a package's licences; the shorter one where its terms leave the choice."""
    files = sorted(
        path for path in directory.iterdir() if re.match(r"(?i)(un)?licen[cs]e|copying", path.name)
    )
    chosen = [path for path in files if "MIT" in path.name.upper()]
    files = chosen if chosen and re.search(r"MIT(/| OR )|(/| OR )MIT", terms) else files
    texts = [path.read_text(encoding="utf-8", errors="replace").strip() for path in files if path.is_file()]
    return "\n\n".join(dict.fromkeys(texts)).replace("\r", "")


def _without(directory: Path, described: dict[str, Any]) -> str:
    """A package without a licence file says its terms in its description."""
    author = described.get("author") or described.get("maintainers") or ""
    who = author.get("name") if isinstance(author, dict) else str(author)
    readme = next(iter(sorted(directory.glob("[Rr][Ee][Aa][Dd][Mm][Ee]*"))), None)
    said = re.findall(r"(?im)^.*copyright.*$", readme.read_text(errors="replace")) if readme else []
    lines = said or [f"Copyright (c) {who}"]
    return "\n".join([*lines, f"Licensed under {described.get('license')}."])


def write_pages() -> None:
    """The terms of what every page carries: fetched, and packages of one text together."""
    packages = carried()
    texts: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as place:
        wanted = {
            f"p{number}": f"npm:{name}@{_NEAREST.get((name, text), text)}"
            for number, (name, text) in enumerate(packages)
        }
        (Path(place) / "package.json").write_text(json.dumps({"private": True, "dependencies": wanted}))
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--legacy-peer-deps"]
        subprocess.run(["npm", "install", *options], cwd=place, check=True)
        for number, (name, text) in enumerate(packages):
            directory = Path(place) / "node_modules" / f"p{number}"
            described = json.loads((directory / "package.json").read_text())
            terms = _licence(directory) or _without(directory, described)
            texts.setdefault(terms, []).append(f"{name} {text} ({described.get('license')})")
    _write(PLACE, _HEAD, texts)


def linked() -> set[tuple[str, str]]:
    """Name and version of every crate of others that the wheel and the agent are linked with."""
    options = ["--edges", "normal", "--prefix", "none", "--no-dedupe", "--format", "{p}", "--locked"]
    parts = ("leadline-python", "leadline-tracer", "leadline-agent")
    libraries = [*(word for part in parts for word in ("-p", part)), "--target", "x86_64-unknown-linux-gnu"]
    lines = [line for line in _cargo("tree", *options, *libraries).splitlines() if line and "(/" not in line]
    return {(words[0], words[1].removeprefix("v")) for words in map(str.split, lines)}


def _cargo(*words: str) -> str:
    command = ["cargo", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=CRATES.parent).stdout


def write_crates() -> None:
    """The terms of what the wheel and the agent are linked with, out of the crates' sources."""
    described = json.loads(_cargo("metadata", "--locked", "--format-version", "1"))
    wanted = linked()
    texts: dict[str, list[str]] = {}
    for one in sorted(described["packages"], key=lambda found: str(found["name"])):
        if (one["name"], one["version"]) in wanted:
            authors = ", ".join(one["authors"]) or f"the authors of {one['name']}"
            said = f"Copyright (c) {authors}\nLicensed under {one['license']}."
            terms = _licence(Path(one["manifest_path"]).parent, one["license"]) or said
            texts.setdefault(terms, []).append(f"{one['name']} {one['version']} ({one['license']})")
    _write(CRATES, _HEAD_CRATES, texts)


def _write(place: Path, head: str, texts: dict[str, list[str]]) -> None:
    ordered = sorted(texts.items(), key=_first)
    parts = [head, *(f"{', '.join(names)}\n\n{terms}\n" for terms, names in ordered)]
    place.write_text("\n----\n\n".join(parts), encoding="utf-8")


def _first(item: tuple[str, list[str]]) -> str:
    return item[1][0]


if __name__ == "__main__":
    write_pages()
    write_crates()
