"""Hooks of the documentation's site: pages of the repository's root and of `bench/` belong to it, too."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
_PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)(#[\w-]+)?\)")


def _outside() -> dict[str, Path]:
    """Pages outside of docs/ by their path in the site."""
    bench = sorted((ROOT / "bench").glob("*.md"))
    return {name: ROOT / name for name in _PAGES} | {f"bench/{page.name}": page for page in bench}


def on_files(files: Files, config: Any) -> Files:
    """Add them."""
    for place, path in _outside().items():
        files.append(File.generated(config, place, content=path.read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to where pages are in the site; what is no page (a program's file) becomes its name."""
    where = page.file.src_uri
    outside = _outside()
    source = outside[where] if where in outside else ROOT / "docs" / where

    def lead(found: re.Match[str]) -> str:
        target = (source.parent / found[1]).resolve()
        if not target.is_relative_to(ROOT):
            return found[0]
        if target.is_relative_to(ROOT / "docs"):
            place = str(target.relative_to(ROOT / "docs"))
        elif (name := str(target.relative_to(ROOT))) in outside:
            place = name
        elif name == "README.md":
            place = "README.md"
        else:
            return f"]({_up(where)}CONTRIBUTING.md)" if target.exists() else found[0]
        return f"]({_up(where)}{place}{found[2] or ''})"

    return _LINK.sub(lead, markdown)


def _up(where: str) -> str:
    return "../" * where.count("/")
