"""Plain English for users: no word of `tools/house/words.toml` stands in a text that they read.

Users read string literals of the program (a Python or Rust string with a space in it), help of commands,
tables in YAML and TOML, templates, README and the prose of `docs/*.md`. They read `docs/cli.md`, which is all
help, and built-in studies as they stand. `areas` in `words.toml` has the paths. An exception names one file,
one text and its reason. README, help and screens have none. `python tools/house/words.py [ROOT] [AREA...]`
prints every breach, and exits with 1 where there is one.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

Piece = tuple[int, str]  # the first line of a text, and the text

LIST = Path(__file__).with_suffix(".toml")
STRICT = ("README.md", "docs/cli.md", "python/leadline/cli/")


@dataclass(frozen=True)
class Word:
    """A word that no user should have to learn."""

    pattern: re.Pattern[str]
    instead: str
    reason: str
    found: tuple[str, ...]
    passes: tuple[str, ...]

    def in_text(self, text: str) -> Iterator[re.Match[str]]:
        """Each place of `text` where it stands; a line's end is a space like another."""
        return self.pattern.finditer(text)


def words(source: Path = LIST) -> list[Word]:
    """The list, in its order."""
    return [
        Word(
            re.compile(entry["pattern"].replace(" ", r"\s+"), re.IGNORECASE),
            entry["instead"],
            entry["reason"],
            tuple(entry["found"]),
            tuple(entry.get("passes", ())),
        )
        for entry in tomllib.loads(source.read_text(encoding="utf-8"))["word"]
    ]


def _is_command(node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", [])
    return any(re.search(r"\.(command|group)\b|verb", ast.unparse(one)) for one in decorators)


def _python(text: str) -> Iterator[Piece]:
    """String literals with a space, joined where they are formatted, and the help that is a docstring."""
    tree = ast.parse(text)
    skipped: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and not _is_command(node):
            skipped |= {id(one.value) for one in body if isinstance(one, ast.Expr)}
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(value) for value in node.values}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = (value.value if isinstance(value, ast.Constant) else "{}" for value in node.values)
            yield node.lineno, "".join(str(part) for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def _yaml(text: str) -> Iterator[Piece]:
    """Values that hold a space; a key is a name."""
    root = YAML().compose(text)
    pending: list[Node] = [root] if root is not None else []
    while pending:
        node = pending.pop()
        if isinstance(node, MappingNode):
            pending.extend(value for _, value in node.value)
        elif isinstance(node, SequenceNode):
            pending.extend(node.value)
        elif isinstance(node, ScalarNode) and " " in node.value:
            yield node.start_mark.line + 1, node.value


def _toml(text: str) -> Iterator[Piece]:
    pending: list[object] = [tomllib.loads(text)]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
        elif isinstance(value, str) and " " in value:
            yield text.count("\n", 0, max(0, text.find(value[:20]))) + 1, value


def _blank(found: re.Match[str]) -> str:
    return "\n" * found.group().count("\n")


def _template(text: str) -> Iterator[Piece]:
    """What is left without statements, comments, scripts, styles and tags."""
    for pattern in (r"(?s)\{#.*?#\}", r"(?s)\{%.*?%\}", r"(?s)<(script|style)\b.*?</\1>"):
        text = re.sub(pattern, _blank, text)
    text = re.sub(r"(?s)\{\{.*?\}\}", lambda found: "{}" + _blank(found), text)
    yield 1, re.sub(r"(?s)<[^>]*>", _blank, text)


def _markdown(text: str) -> Iterator[Piece]:
    """Prose: no blocks of code, no `code` in a line, no target of a link."""
    text = re.sub(r"(?s)<!--.*?-->", _blank, text)
    text = re.sub(r"(?ms)^( *)(```|~~~).*?^\1\2[^\n]*$", _blank, text)
    text = re.sub(r"(?m)(?<=\n\n)(?: {4,}\S[^\n]*\n+)+", _blank, text)
    text = re.sub(r"(`+)(?:(?!\1).|\n(?!\n))+?\1", lambda found: "{}" + _blank(found), text)
    yield 1, re.sub(r"\]\([^)]*\)", "]", text)


def _whole(text: str) -> Iterator[Piece]:
    yield 1, text


def _rust(text: str) -> Iterator[Piece]:
    """String literals with a space, before the module of tests."""
    text = text.split("#[cfg(test)]", maxsplit=1)[0]
    text = re.sub(r"(?m)^\s*//[^\n]*$", "", text)
    for found in re.finditer(r'(?s)"((?:\\.|[^"\\])*)"', text):
        value = re.sub(r"\\\n\s*", "", found.group(1))
        if " " in value:
            yield text.count("\n", 0, found.start()) + 1, value


READERS: dict[str, Callable[[str], Iterator[Piece]]] = {
    ".py": _python,
    ".yaml": _yaml,
    ".toml": _toml,
    ".j2": _template,
    ".md": _markdown,
    ".rs": _rust,
}


def _files(root: Path, areas: list[str]) -> Iterator[Path]:
    """The files of each area: a file, all below a folder, or what a pattern matches."""
    for place in (place for area in areas for place in sorted(root.glob(area))):
        yield from sorted(place.rglob("*")) if place.is_dir() else [place]


def breaches(root: Path, areas: list[str] | None = None) -> list[str]:
    """One line for each, with the place first; every exception must be needed where its file is read."""
    table = tomllib.loads(LIST.read_text(encoding="utf-8"))
    known, unused, found, read = words(), list(table.get("exception", [])), [], set()
    exceptions = list(unused)
    for one in exceptions:
        if one["in"].startswith(STRICT):
            found.append(f"{one['in']}: README, help and screens have no exceptions")
    for path in dict.fromkeys(_files(root, areas or table["areas"])):
        reader = READERS.get(path.suffix)
        if reader is None or path.name == "tests.rs":
            continue
        name = str(path.relative_to(root))
        read.add(name)
        if name == "docs/cli.md" or "leadline/studies/" in name:  # which users read as they stand
            reader = _whole
        own = [one for one in exceptions if one["in"] == name]
        for line, text in reader(path.read_text(encoding="utf-8")):
            for word in known:
                for match in word.in_text(text):
                    context = " ".join(text[max(0, match.start() - 60) : match.end() + 60].split())
                    allowed = [one for one in own if one["text"] in context]
                    unused = [one for one in unused if one not in allowed]
                    if not allowed:
                        place = line if path.suffix == ".py" else line + text.count("\n", 0, match.start())
                        said = " ".join(match.group().split())
                        found.append(f"{name}:{place}: {said!r}: write {word.instead} ({context})")
    found += [f"{one['in']}: {one['text']!r} needs no exception" for one in unused if one["in"] in read]
    return found


def main(arguments: list[str]) -> int:
    """The exit code: 1 where a user would have to learn a word of ours."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[2]
    found = breaches(root, arguments[1:])
    for line in found:
        sys.stdout.write(f"{line}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
