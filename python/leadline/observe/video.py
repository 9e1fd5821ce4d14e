"""Looks at a source before a pipeline begins: that it is there, and a video where one is expected.

Also knows where films lie that leadline made itself. Read only; what asks a file may hang, so it is asked by
ffprobe in a process with a deadline.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from leadline.foreign import parse_json
from leadline.observe.children import finish
from leadline.observe.commands import find_program, look_at_input
from leadline.observe.hang_guard import in_fork
from leadline.workloads.pipeline.job import Film, SourceFacts

_DEADLINE_S = 60.0
_ENTRIES = (
    "stream=codec_type,codec_name,width,height,nb_frames,avg_frame_rate,duration:format=format_name,duration"
)
_FORMATS_OF_NO_VIDEO = ("tty", "image2", "png_pipe", "jpeg_pipe", "lrc")
_NOT_WHOLE = "it is not whole: its last picture cannot be read"
_INVALID = ("moov atom not found", "Invalid data found")


def film_path(film: Film, environment: Mapping[str, str]) -> Path:
    """Where a film is kept between runs, made or not: the user's cache directory."""
    home = environment.get("XDG_CACHE_HOME") or str(
        Path(environment.get("HOME") or "~").expanduser() / ".cache"
    )
    return Path(home) / "leadline" / "films" / film.name


def look_at_file(path: str, video: bool) -> SourceFacts:
    """What lies at `path`. Raises TargetError where nothing does or it cannot be read in time."""
    found = look_at_input(path)
    if not video:
        return SourceFacts(found.path, found.bytes)
    if in_fork(lambda _: Path(found.path).is_dir(), found.path):
        return SourceFacts(found.path, problem="it is a directory, and no video")
    return _look_at_video(found.path, found.bytes)


def _look_at_video(path: str, size: int) -> SourceFacts:
    command = ["ffprobe", "-v", "error", "-show_entries", _ENTRIES, "-of", "json", "-i", f"file:{path}"]
    code, text, errors = _ask(command)
    if code != 0:
        why = errors or "it cannot be read"
        whole = (
            f"{_first(why, path)} (is it whole?)"
            if any(word in why for word in _INVALID)
            else _first(why, path)
        )
        return SourceFacts(path, size, problem=f"it is no video that ffprobe can read: {whole}")
    described: dict[str, Any] = parse_json(text)
    streams = described.get("streams") or []
    pictures = [one for one in streams if one.get("codec_type") == "video" and one.get("width")]
    form = str((described.get("format") or {}).get("format_name"))
    if not pictures or any(name in _FORMATS_OF_NO_VIDEO for name in form.split(",")):
        return SourceFacts(path, size, problem=f"it has no moving picture (ffprobe calls it {form})")
    cut = _is_cut(path)
    if cut:
        return SourceFacts(path, size, problem=cut)
    audio = any(one.get("codec_type") == "audio" for one in streams)
    width, elements = int(pictures[0]["width"]), _elements(pictures[0], described.get("format") or {})
    return SourceFacts(path, size, width=width, elements=elements, audio=audio)


def _elements(stream: Mapping[str, Any], form: Mapping[str, Any]) -> int | None:
    """Of all pictures; not every container counts its pictures, and some know no length."""
    try:
        counted = str(stream.get("nb_frames") or "")
        if counted.isdigit() and int(counted) > 0:
            pictures = float(counted)
        else:
            seconds = float(stream.get("duration") or form["duration"])
            pictures = seconds * float(Fraction(str(stream["avg_frame_rate"])))
        return round(pictures * int(stream["width"]) * int(stream["height"])) or None
    except (KeyError, ValueError, ZeroDivisionError, OverflowError):
        return None


def _is_cut(path: str) -> str | None:
    """Why the end of a film cannot be read; None where it can. Its index may be whole and it not."""
    command = ["ffmpeg", "-nostdin", "-v", "error", "-sseof", "-1", "-i", f"file:{path}"]
    code, _, errors = _ask([*command, "-map", "0:v:0", "-f", "null", "-"])
    if code == 0 and not errors:
        return None
    return f"{_NOT_WHOLE}: {_first(errors, path)}" if errors else _NOT_WHOLE


def _ask(command: list[str]) -> tuple[int, str, str]:
    program, _ = find_program(command[0])
    if program is None:
        return 1, "", f"{command[0]} is not installed"
    done = finish([program, *command[1:]], _DEADLINE_S)
    if done.exit_code is None:
        return 1, "", f"no answer within {_DEADLINE_S:g} s"
    return (
        done.exit_code,
        done.output.decode("utf-8", "replace"),
        done.errors.decode("utf-8", "replace").strip(),
    )


def _first(text: str, path: str) -> str:
    """The first line, without the path, which is said already."""
    line = text.replace(f"file:{path}", "").replace(path, "").strip(" :\n").splitlines()
    return line[0].strip(" :") if line else ""
