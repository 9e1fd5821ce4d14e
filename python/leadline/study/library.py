"""Where studies come from: those that leadline brings along, by name, and files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path

from leadline.errors import SpecError
from leadline.study.fio.document import is_job_file, read_job_file
from leadline.study.levels import with_cpus
from leadline.study.overrides import apply_application, apply_overrides
from leadline.study.study import Study, parse_study
from leadline.study.yaml_source import read_study, suggest
from leadline.yamlio.yaml_source import SOURCE_MAX_BYTES, shorten


def builtin_names() -> tuple[str, ...]:
    """The names of the built-in studies, sorted."""
    folder = resources.files("leadline") / "studies"
    return tuple(sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".yaml")))


def builtin_text(name: str) -> str:
    """The YAML of a built-in study. Raises SpecError with the nearest name."""
    if name not in builtin_names():
        raise SpecError(f"{name!r} is no built-in study", suggest(name, builtin_names()))
    return (resources.files("leadline") / "studies" / f"{name}.yaml").read_text(encoding="utf-8")


def load_study(
    name_or_path: str,
    environment: Mapping[str, str],
    sets: Iterable[str] = (),
    *,
    allow_file: bool = True,
    command: tuple[str, ...] = (),
    input_path: str | None = None,
    cpus: int = 1,
    ignored: tuple[str, ...] = (),
) -> Study:
    """A built-in study by name, or one from a file, with overrides applied. Raises SpecError.

    `command` and `input_path` go into the works that run a command; `cpus` are those of the host that is to
    run it, for factors that count them. A file may be a job file of fio, of which options may be `ignored`.
    """
    if name_or_path in builtin_names():
        text, source, name = builtin_text(name_or_path), f"{name_or_path} (built-in)", name_or_path
    elif allow_file:
        text, source, name = *_read_file(name_or_path), _name_of(Path(name_or_path))
    else:
        raise SpecError(f"{name_or_path!r} is no built-in study", suggest(name_or_path, builtin_names()))
    if is_job_file(source, text):
        read = read_job_file(text, source, environment, ignored, lambda path: _read_file(str(path))[0])
    elif ignored:
        raise SpecError("is for job files of fio, and this is a study", "leave it out", source="--ignore")
    else:
        read = read_study(text, source, environment)
    document = apply_overrides(read, sets, environment)
    document = apply_application(document, command, input_path)
    return parse_study(with_cpus(document, cpus), name)


def _name_of(path: Path) -> str:
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "-" for c in path.stem.lower())
    return plain.strip("-_")[:40] or "study"


def _read_file(text: str) -> tuple[str, str]:
    path = Path(text)
    names = builtin_names()
    looks_like_file = path.suffix in (".yaml", ".yml", ".fio", ".job") or "/" in text
    try:
        if path.is_dir():
            raise SpecError("is a directory, not a study", "give the file itself", source=text)
        with path.open("rb") as file:
            raw = file.read(SOURCE_MAX_BYTES + 1)
        return raw.decode("utf-8"), text
    except FileNotFoundError:
        if looks_like_file:
            raise SpecError("there is no such file", "check the path of the study", source=text) from None
        remedy = f"{suggest(text, names)}; or give the path of a YAML file or of fio's job file"
        raise SpecError(f"{shorten(repr(text))} is neither a built-in study nor a file", remedy) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SpecError(
            f"cannot be read: {reason}", "give a YAML file, or fio's job file", source=text
        ) from None
