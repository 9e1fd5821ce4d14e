"""Writes docs/published-examples.md: what leadline says of the four documents that it grew out of."""

from __future__ import annotations

import tempfile
from pathlib import Path

from leadline.published.document import document_text, read_published, write_published
from leadline.published.findings import published_findings
from leadline.report import render
from leadline.store.reader import open_result

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "published-examples.md"
DOCUMENTS = ("opencast", "castor", "fermilab", "suse")
_HEAD = """# Four documents, recomputed

Each part is the output of `leadline report DIR --format md` after `leadline import published FILE`, for
one of `python/leadline/published/documents/*.yaml`. [published.md](published.md) describes the method.
`tools/published_page.py` writes this page.
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    with tempfile.TemporaryDirectory() as directory:
        for name in DOCUMENTS:
            text = document_text(name)
            out = Path(directory) / name
            write_published(out, text, read_published(text, name), {}, lambda: 1)
            markdown = render(published_findings(open_result(out)), "md")
            kept, _, _ = markdown.partition("\n## What the document lets one compute")
            parts.append("#" + kept.replace("\n## ", "\n### ").rstrip() + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
