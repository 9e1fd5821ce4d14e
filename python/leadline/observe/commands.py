"""Finds out about a command or a pipeline's source before it is run: that it is there, and how large it is.

What is asked may lie on a mount that hangs: it is walked in a child with a deadline (this very module), and
a video is asked by ffprobe with one. Also knows where films lie that leadline made itself.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from leadline.errors import TargetError
from leadline.foreign import parse_json
from leadline.observe.hang_guard import Doing, ask_child, check_answers, finish, in_fork
from leadline.study.kind.lookups import SOURCE_FILES_MAX, Film, Input, ProgramVersion, SourceFacts, SourceFile

_VIDEO_DEADLINE_S = 60.0
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
    done = finish([program, *command[1:]], _VIDEO_DEADLINE_S)
    if done.exit_code is None:
        return 1, "", f"no answer within {_VIDEO_DEADLINE_S:g} s"
    return (
        done.exit_code,
        done.output.decode("utf-8", "replace"),
        done.errors.decode("utf-8", "replace").strip(),
    )


def _first(text: str, path: str) -> str:
    """The first line, without the path, which is said already."""
    line = text.replace(f"file:{path}", "").replace(path, "").strip(" :\n").splitlines()
    return line[0].strip(" :") if line else ""


FILES_MAX = 1_000_000
_DEADLINE_S = 120.0
_VERSION_S = 10.0
_VERSION = re.compile(r"\b[0-9]+(?:\.[0-9]+)+")


def find_program(word: str) -> tuple[str | None, str]:
    """The program's path, or None and why it cannot be started. Raises TargetError where the search hangs."""
    return in_fork(lambda doing: _find_program(word, doing), word)


def _find_program(word: str, doing: Doing) -> tuple[str | None, str]:
    if "/" in word:
        path = Path(word).expanduser()
        if path.is_dir():
            return None, f"{word} is a directory"
        if not path.exists():
            return None, f"there is no program {word}"
        if not os.access(path, os.X_OK):
            return None, f"{word} may not be executed (chmod +x does that; or put its interpreter before it)"
        return str(path.absolute()), ""
    for directory in os.get_exec_path():
        doing(directory or ".")
        found = shutil.which(word, path=directory or ".")
        if found:
            return found, ""
    return None, f"there is no program {word} on PATH"


def program_version(program: str, deadline_s: float = _VERSION_S) -> ProgramVersion:
    """What `program -version` or `--version` says of itself."""
    for option in ("-version", "--version"):
        try:
            done = finish([program, option], deadline_s)
        except OSError:
            continue
        found = _VERSION.search((done.output or done.errors).decode("utf-8", "replace")[:400])
        if done.exit_code == 0 and found:
            return ProgramVersion(found[0], tuple(int(part) for part in found[0].split(".")))
    return ProgramVersion("unknown", None)


def words_here(words: tuple[str, ...]) -> tuple[str, ...]:
    """Those words of a command that name something in this process's directory by a relative path."""
    relative = [
        word for word in words[1:] if word and not word.startswith(("/", "-", "~")) and len(word) < 4096
    ]
    return in_fork(lambda _: tuple(filter(os.path.lexists, relative)), ".") if relative else ()


def look_at_input(path: str, deadline_s: float = _DEADLINE_S) -> Input:
    """What lies at `path`. Raises TargetError where it cannot be staged."""
    shown = os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - Path.absolute keeps ".."
    check_answers([shown])  # the walk may take its time, a hung mount may not
    answer = ask_child("leadline.observe.commands", [shown], deadline_s)
    if answer.stuck_pid is not None:
        raise TargetError(
            f"--input {shown}: no answer within {deadline_s:g} s; process {answer.stuck_pid} waits for it",
            "see whether its server is up, or name a smaller input",
        )
    found = answer.lines[-1] if answer.lines else {"problem": answer.stderr or "cannot be read"}
    if "problem" in found:
        raise TargetError(f"--input {shown}: {found['problem']}", "name a directory of files, or a file")
    return Input(shown, int(found["files"]), int(found["bytes"]), tuple(found["names"]))


def find_sources(path: str) -> Sequence[SourceFile]:
    """The files that a transfer sends, by name. Raises TargetError where there are none."""
    shown = os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - Path.absolute keeps ".."
    found = look_at_input(shown)
    if found.files > SOURCE_FILES_MAX:
        problem = f"--input {shown}: more than {SOURCE_FILES_MAX:,} files"
        raise TargetError(problem, "name a smaller directory")

    def walk(_: object) -> list[tuple[str, int]]:
        place = Path(shown)
        files = [place] if place.is_file() else sorted(one for one in place.rglob("*") if one.is_file())
        return [(str(file), file.stat().st_size) for file in files]

    sent = [SourceFile(name, size) for name, size in in_fork(walk, shown) if size]
    if not sent:
        raise TargetError(f"--input {shown}: its files hold no byte", "name a directory of files, or a file")
    return sent


def _measure(path: str) -> dict[str, Any]:
    place = Path(path)
    if place.is_file():
        return {"files": 1, "bytes": place.stat().st_size, "names": [place.name]}
    if not place.is_dir():
        return {"problem": "there is no such file or directory" if not place.exists() else "is no directory"}
    files = size = 0
    waiting = [path]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_file():
                    files, size = files + 1, size + entry.stat().st_size
                else:
                    return {"problem": f"{entry.path} is neither a file nor a directory"}
                if files > FILES_MAX:
                    return {"problem": f"more than {FILES_MAX:,} files"}
    if not files:
        return {"problem": "holds no file"}
    return {"files": files, "bytes": size, "names": sorted(os.listdir(path))[:10_000]}  # noqa: PTH208


def main() -> None:
    """Print what lies at the path of the command line, as one line of JSON."""
    try:
        found = _measure(sys.argv[1])
    except OSError as error:
        found = {"problem": f"{error.strerror} ({error.filename})"}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
