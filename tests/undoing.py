"""Results that were made to lead `leadline undo` and `run --resume` astray: the same on every scheme."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leadline import _core
from support import Command

ID = "0badc0de"
OURS = f"/leadline-{ID}"
MARK = f'{{"format": "leadline.workspace/1", "id": "{ID}"}}'.encode()
PRECIOUS = b"of somebody else"


def crafted(
    path: Path, targets: dict[str, str], left: list[dict[str, Any]], study_id: str = ID, **plan: Any
) -> Path:
    """A result whose journal says that these directories were left."""
    path.mkdir(parents=True)
    path.chmod(0o755)
    whole = {
        "format": "leadline.plan/1", "study": "s", "title": "t", "about": "", "seed": 1, "blocks": 1,
        "seconds": 0, "targets": [{"name": name, "url": url} for name, url in targets.items()],
        "cells": [], "trials": [], "bytes_needed": {}, "notes": [], **plan,
    }  # fmt: skip
    manifest = {"format": "leadline.result/1", "kind": "study", "id": study_id, "plan": whole}
    (path / "manifest.json").write_text(json.dumps({**manifest, "targets": {}, "options": {}}))
    lines = [json.dumps({"t_ns": 1, "event": "workspace_intended", **place}) for place in left]
    (path / "events.jsonl").write_text("\n".join(lines) + "\n")
    for file in path.iterdir():
        file.chmod(0o644)
    return path


def intended(targets: dict[str, str], directory: str = OURS) -> list[dict[str, Any]]:
    return [{"target": name, "directory": directory, "location": url} for name, url in targets.items()]


def only_what_is_marked_goes(
    leadline: Command,
    tmp_path: Path,
    at: Callable[[str], str],
    *,
    makes_directories: bool = True,
    keeps_lists: bool = False,
) -> None:
    """Directories of the very name, each on a target of its own: one is ours, one was begun, others are not.

    `at(name)` is the URL of a place that is there. Where nothing can be listed, a list of ours has the files.
    """
    stay: dict[str, bytes | None] = {
        "unmarked": None,
        "other": MARK.replace(b"0bad", b"1bad"),
        "longer": MARK + b" ",
        "cut-beside-others": MARK[:20],
        "garbage": b"\xff\x00",
    }
    go: dict[str, bytes | None] = {"ours": MARK, "cut": MARK[:20], "empty": b""}
    urls = {name: at(name) for name in (*stay, *go)}
    for name, mark in (stay | go).items():
        volume = _core.Volume(urls[name])
        volume.make_directory(OURS)
        if mark is not None:
            volume.put(f"{OURS}/.leadline", mark)
        if name in stay:
            volume.put(f"{OURS}/notes", PRECIOUS)
            if keeps_lists:
                volume.put(f"{OURS}/.leadline-files", f"4096 4096 {OURS}/notes\n".encode())
    if makes_directories:
        urls["bare"] = at("bare")
        _core.Volume(urls["bare"]).make_directory(OURS)
    done = leadline("undo", str(crafted(tmp_path / "crafted", urls, intended(urls))))
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    for name, mark in stay.items():
        volume = _core.Volume(urls[name])
        assert volume.get(f"{OURS}/notes", 99) == PRECIOUS, (name, done.stdout)
        assert volume.get(f"{OURS}/.leadline", 99) == mark
        assert f"could not be removed: {OURS} of {urls[name]}" in done.stderr
    for name in urls.keys() - stay.keys():
        assert f"removed: {OURS} of {urls[name]}" in done.stdout, done.stderr
        assert is_gone(_core.Volume(urls[name])), name


def is_gone(volume: _core.Volume) -> bool:
    try:
        volume.names_in(OURS, 9)
    except FileNotFoundError:
        return True
    return False


def links_are_not_followed(leadline: Command, tmp_path: Path, url: str, shared: Path) -> None:
    """`shared` is the top of what the URL leads to, as its server sees it.

    A client can only remove a link where it can see one; else it stays and is named.
    """
    (shared / "projects").mkdir(mode=0o777)
    (shared / "projects" / "thesis").write_bytes(PRECIOUS)
    (shared / "single").write_bytes(PRECIOUS)
    volume = _core.Volume(url)
    for name in (OURS, f"{OURS}/s-data.0"):
        volume.make_directory(name)
        volume.put(f"{name}/s-data.0.0", b"ours")
    volume.put(f"{OURS}/.leadline", MARK)
    (shared / OURS[1:] / "s-data.0" / "t0").symlink_to("../../projects")
    (shared / OURS[1:] / "s-data.0" / "t1").symlink_to("../../single")
    done = leadline("undo", str(crafted(tmp_path / "links", {"s": url}, intended({"s": url}))))
    assert (shared / "projects" / "thesis").read_bytes() == PRECIOUS
    assert (shared / "single").read_bytes() == PRECIOUS
    link = shared / OURS[1:] / "s-data.0" / "t0"
    assert done.returncode == int(link.is_symlink()), done.stderr
    if link.is_symlink():
        assert (shared / OURS[1:] / ".leadline").exists()
        assert f"{OURS}/s-data.0/t0" in done.stderr, done.stderr
        link.unlink()
        again = leadline("undo", str(tmp_path / "links"))
        assert again.returncode == 0, again.stderr
    assert not (shared / OURS[1:]).exists()


def other_directories_are_refused(leadline: Command, tmp_path: Path, url: str) -> None:
    """An id, or a place, that leads to a directory of somebody else's on the same storage."""
    volume = _core.Volume(url)
    for name in ("/projects", "/marked", "/leadline-x", OURS):
        volume.make_directory(name)
    for name in ("/projects", "/marked"):
        volume.put(f"{name}/thesis", PRECIOUS)
    volume.put("/marked/.leadline", MARK)
    targets = {"s": url}
    results = {
        "id": crafted(
            tmp_path / "id", targets, intended(targets, "/leadline-x/../projects"), "x/../projects"
        ),
        "place": crafted(tmp_path / "place", targets, intended(targets, "/marked")),
        "way": crafted(tmp_path / "way", targets, intended(targets, f"{OURS}/../projects")),
        "location": crafted(tmp_path / "location", {"s": "null://"}, intended(targets)),
        "target": crafted(tmp_path / "target", {"other": url}, intended(targets)),
    }
    for why, result in results.items():
        for words in (("undo", str(result)), ("run", "--resume", str(result), "--quiet"))[
            : 1 + (why == "id")
        ]:
            done = leadline(*words)
            assert volume.get("/projects/thesis", 99) == PRECIOUS, (why, words)
            assert volume.get("/marked/thesis", 99) == PRECIOUS, (why, words)
            assert done.returncode == 2, (why, words, done.stdout, done.stderr)
            # An id of another form is refused where the manifest is read, before anything is looked at.
            said = "is damaged: id" if why == "id" else "nothing was"
            assert said in done.stderr, (why, words, done.stderr)
    for name in ("/projects", "/marked", "/leadline-x", OURS):
        volume.remove_files(name, "", 30.0)
        remove(volume, name, ".leadline")


def remove(volume: _core.Volume, directory: str, mark: str) -> None:
    try:
        volume.remove_directory(directory, mark)
    except FileNotFoundError:
        return
