"""From `NAME=PATH` or `NAME=URL` to a Target. Whether it is there is found out by `observe`."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from leadline import _core
from leadline.errors import SpecError
from leadline.study import schemes
from leadline.study.problems import suggest
from leadline.study.target import Target

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_POOL = re.compile(r"[^\s/\0=]{1,128}")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_EXAMPLE = "write NAME=PATH, for example --target local=/var/tmp, or NAME=rados://POOL, or NAME=null://"


def parse_target(text: str) -> Target:
    """The target of one `--target NAME=PATH|URL`. Raises SpecError."""
    name, equals, url = text.partition("=")
    _check_text(text)
    source = f"--target {_shown(text)}"
    if not equals:
        raise SpecError("the name is missing", _EXAMPLE, source=source)
    try:
        return Target(check_name(name), check_url(url))
    except SpecError as error:
        raise SpecError(error.message, error.remedy, source=source) from None


def _check_text(text: str) -> None:
    """A path goes to the engine in UTF-8: there it must be the same name. Raises SpecError."""
    try:
        same = text.encode() == os.fsencode(text)
    except UnicodeEncodeError:
        same = False
    if not same:
        raise SpecError(
            "the engine takes paths in UTF-8, and this one is not",
            "Name the directory by a link in UTF-8 (ln -s), in a locale of UTF-8: LC_ALL=C.UTF-8",
            source=f"--target {text}",
        )


def _shown(text: str) -> str:
    """What was given, without a password; also where a slash of a URL is lacking."""
    meant = re.sub(r"(?<==)([A-Za-z][A-Za-z0-9+.-]*):/+", r"\1://", text, count=1)
    shown = _core.without_password(meant)
    return text if shown == meant else shown


def parse_targets(texts: Iterable[str]) -> dict[str, Target]:
    """Targets by name, in the order given. Raises SpecError where a name is given twice."""
    found: dict[str, Target] = {}
    for text in texts:
        target = parse_target(text)
        if target.name in found:
            raise SpecError(
                f"the name {target.name} is given twice",
                "give each target a name of its own",
                source=f"--target {_shown(text)}",
            )
        found[target.name] = target
    return found


def parse_layouts(texts: Iterable[str]) -> dict[str, str]:
    """The pool of each `--layout TARGET=POOL`, by target. Raises SpecError."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, pool = text.partition("=")
        source = f"--layout {text}"
        if not equals:
            raise SpecError("the pool is missing", "write TARGET=POOL, as in --layout ec=POOL", source=source)
        if name in found:
            raise SpecError(
                f"target {name} is given two pools",
                "give one of them to another target, which may have the same path",
                source=source,
            )
        try:
            found[check_name(name)] = check_pool(pool)
        except SpecError as error:
            raise SpecError(error.message, error.remedy, source=source) from None
    return found


def with_layouts(targets: Mapping[str, Target], pools: Mapping[str, str]) -> dict[str, Target]:
    """The targets, some with the pool that their files are to be kept in. Raises SpecError."""
    for name, pool in pools.items():
        if name not in targets:
            raise SpecError(
                f"{name!r} is no target of this run",
                suggest(name, targets),
                source=f"--layout {name}={pool}",
            )
    return {name: replace(one, pool=pools.get(name, one.pool)) for name, one in targets.items()}


def check_pool(pool: object) -> str:
    """The name itself, where a pool may be called so. Raises SpecError."""
    if not isinstance(pool, str) or not _POOL.fullmatch(pool):
        raise SpecError(f"{pool!r} is no name of a pool", "the names of a cluster's pools: ceph osd pool ls")
    return pool


def check_name(name: str) -> str:
    """The name itself, where it may name a target. Raises SpecError."""
    if not _NAME.fullmatch(name):
        raise SpecError(
            f"{name!r} is no name of a target",
            "names have up to 40 of a-z, 0-9, _ and -, and begin with a letter or digit",
        )
    return name


def check_url(url: object) -> str:
    """An absolute path, or a URL that an engine knows. Raises SpecError for any other."""
    if not isinstance(url, str) or not url.strip() or "\0" in url:
        raise SpecError(f"{url!r} is neither a path nor a URL", _EXAMPLE)
    match = _SCHEME.fullmatch(url)
    if match is None:
        _refuse_a_slash_too_few(url)
        return os.path.normpath(Path(url).expanduser().absolute())
    scheme, rest = match[1].lower(), match[2]
    nowhere = schemes.storageless()
    if scheme == nowhere.name:
        if rest:
            raise SpecError(f"{scheme}:// takes nothing after it, not {rest!r}", f"write {nowhere.example}")
        return nowhere.example
    known = [found.name for found in schemes.located()]
    if scheme in known:
        try:
            return str(_core.parse_location(f"{scheme}://{rest}")["url"])
        except ValueError as error:
            raise SpecError(str(error), f"its options: leadline engines {scheme}") from None
    if _core.without_password(url) != url:
        raise SpecError(
            "a password has no place in a URL", f"leave it out, and use one of: {', '.join(known)}"
        )
    near = difflib.get_close_matches(scheme, (nowhere.name, *known), n=1)
    hint = f"did you mean {near[0]}://? " if near else ""
    names = ", ".join(f"{name}://" for name in (*known, nowhere.name))
    raise SpecError(
        f"{scheme}:// is no scheme that leadline knows",
        f"{hint}give the path of a directory, or one of: {names}",
    )


def _refuse_a_slash_too_few(url: str) -> None:
    """What was meant as a URL is no path: it may hold a password, which messages about paths would repeat."""
    name, colon, rest = url.partition(":")
    if colon and rest.startswith("/") and name.lower() in [found.name for found in schemes.located()]:
        raise SpecError(f"{name}:/… is no URL", f"write {name.lower()}://, or ./{name}:… for a path")
