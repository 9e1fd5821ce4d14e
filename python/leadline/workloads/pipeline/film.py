"""Makes a film to measure with: ProRes 422 HQ, moving and noisy, kept in the user's cache between runs.

A still or a test card would compress unlike a film. The noise follows from a seed, so that the same
parameters give the same film. A second or two are made and then repeated: encoders do not look back that far.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from leadline import units
from leadline.errors import StudyError
from leadline.study.kind.lookups import Film
from leadline.trusted import why_not_place

_UNIQUE_NS = 2 * units.NS_PER_S
_POLL_S = 0.2
_MAKING = ".making-"
_END_S = 5.0
_SMALL_PART = 4  # the moving picture is drawn at a quarter of the size, the noise at the whole


def make_film(film: Film, place: Path, stopping: Callable[[], bool]) -> None:
    """Make a film at `place`, whole or not at all. Raises StudyError where ffmpeg cannot."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        # ffmpeg would write wherever another user's link leads.
        if why := why_not_place(place):
            raise StudyError(
                f"a film is not kept in {place.parent}: {why}",
                "set XDG_CACHE_HOME to a directory of your own, or name a source with --source",
            )
        with (
            _alone(place.parent, stopping),
            tempfile.TemporaryDirectory(prefix=_MAKING, dir=place.parent) as directory,
        ):
            if place.is_file():  # by whoever was waited for
                return
            part, whole = Path(directory) / "part.mov", Path(directory) / "whole.mov"
            _run(_first_part(film, part), stopping)
            repeats = -(-film.duration_ns // _part_ns(film))
            if repeats > 1:
                _run(_repeated(film, part, whole, repeats), stopping)
            os.replace(whole if repeats > 1 else part, place)  # noqa: PTH105
    except OSError as error:
        raise StudyError(
            f"the film cannot be kept in {place.parent}: {error.strerror}",
            "free space there, set XDG_CACHE_HOME to another directory, or name a source with --source",
        ) from None


@contextlib.contextmanager
def _alone(directory: Path, stopping: Callable[[], bool]) -> Iterator[None]:
    """One at a time: what is being made there is then what one that was killed has left, and is removed."""
    with (directory / ".lock").open("w") as lock:
        while not _try_lock(lock):
            if stopping():
                raise StudyError("interrupted while another command made a film", "run it again")
            time.sleep(_POLL_S)
        for left in directory.glob(f"{_MAKING}*"):
            shutil.rmtree(left)
        yield


def _try_lock(lock: IO[str]) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _part_ns(film: Film) -> int:
    return min(film.duration_ns, _UNIQUE_NS)


def _first_part(film: Film, place: Path) -> list[str]:
    small = (max(16, side // _SMALL_PART // 2 * 2) for side in (film.width, film.height))
    picture = (
        f"mandelbrot=size={'x'.join(map(str, small))}:rate={film.frame_rate},"
        f"scale={film.width}:{film.height}:flags=fast_bilinear,noise=alls=6:allf=t:all_seed=1"
    )
    sound = "anoisesrc=amplitude=0.1:color=pink:sample_rate=48000:seed=1,aformat=channel_layouts=stereo"
    return [
        *(
            "ffmpeg",
            "-nostdin",
            "-v",
            "error",
            "-y",
            "-f",
            "lavfi",
            "-i",
            picture,
            "-f",
            "lavfi",
            "-i",
            sound,
        ),
        *("-t", f"{_part_ns(film) / 1e9:.6f}", "-c:v", "prores_aw", "-profile:v", "3"),
        *("-pix_fmt", "yuv422p10le", "-c:a", "pcm_s16le", "-fflags", "+bitexact", str(place)),
    ]


def _repeated(film: Film, part: Path, place: Path, repeats: int) -> list[str]:
    return [
        *("ffmpeg", "-nostdin", "-v", "error", "-y", "-stream_loop", str(repeats - 1), "-i", str(part)),
        *("-t", f"{film.duration_ns / 1e9:.6f}", "-c", "copy", "-map", "0", str(place)),
    ]


def _run(command: list[str], stopping: Callable[[], bool]) -> None:
    try:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
    except FileNotFoundError:
        raise StudyError(
            "ffmpeg is not installed, and makes the film", "install ffmpeg, or name a source with --source"
        ) from None
    with child:
        while child.poll() is None:
            if stopping():
                child.terminate()
                child.wait(_END_S)
                raise StudyError("interrupted while the film was made", "run it again")
            time.sleep(_POLL_S)
        assert child.stderr is not None  # noqa: S101 - PIPE was asked for
        words = child.stderr.read().decode("utf-8", "replace").strip().splitlines()
    if child.returncode != 0:
        last = words[-1] if words else f"exit code {child.returncode}"
        raise StudyError(f"ffmpeg could not make the film: {last}", "name a source with --source")
