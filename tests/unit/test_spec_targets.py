"""Targets: names, paths and URLs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from leadline.errors import SpecError
from leadline.study.target import Target, parse_target, parse_targets


def test_paths_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_target("a=x/../y") == Target("a", str(tmp_path / "y"))
    assert parse_target("a=/x=y").url == "/x=y"
    monkeypatch.setenv("HOME", "/home/me")
    assert parse_target("a=~/data").url == "/home/me/data"


def test_null_is_a_target() -> None:
    assert not parse_target("n=null://").is_path


def test_a_url_of_a_library_is_a_target_with_a_location() -> None:
    target = parse_target("r=rados://pool/space?object_size=1M")
    assert not target.is_path
    assert target.location == "rados://pool/space?object_size=1M"
    assert parse_target("n=null://").location is None
    assert parse_target("p=/tmp").location is None


def test_targets_keep_their_order() -> None:
    assert list(parse_targets(["b=/1", "a=/2"])) == ["b", "a"]


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("/x", "name is missing", "NAME=PATH"),
        ("=/x", "no name of a target", "a-z"),
        ("A=/x", "no name of a target", "a-z"),
        ("a.b=/x", "no name of a target", "a-z"),
        ("a=", "neither a path nor a URL", "NAME=PATH"),
        ("a=cephfs://pool/x", "three slashes", "leadline engines cephfs"),
        ("a=rados://", "the pool is missing", "leadline engines rados"),
        ("a=rados://pool?sice=4M", "no option", "leadline engines rados"),
        ("a=nfs://h:x/e", "the port is no number", "leadline engines nfs"),
        ("a=cefs://x", "no scheme", "did you mean"),
        ("a=http://x", "no scheme", "null://"),
        ("a=null://x", "nothing after it", "null://"),
    ],
)
def test_a_wrong_target_is_named(text: str, message: str, remedy: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_target(text)
    assert caught.value.source == f"--target {text}"
    assert message in caught.value.message
    assert remedy in caught.value.remedy


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(SpecError, match="given twice"):
        parse_targets(["a=/x", "a=/y"])


SECRETS = st.text("qxzQXZ09/@:?#%&=+;,. ~!$'()*-[]{}\\\"<>|^`é", max_size=12).map(lambda text: f"q9{text}X")


@settings(max_examples=150)
@given(word=SECRETS)
@example(word="sec/ret")
@example(word="q9?a=b&c@d/e#f%zzX")
def test_no_error_repeats_a_password_whatever_is_in_it(word: str) -> None:
    for url in (
        f"smb://ann:{word}@host/share",
        f"a=root://ann:{word}@host:1094//x?timeout=5",
        f"a=smb:/ann:{word}@host/share",
        f"a=nfs://ann%3a{word}@host/export",
        f"a=s3://bucket?endpoint=http://key:{word}@host",
        f"a=s3://bucket?endpoint=http%3A%2F%2Fkey:{word}@host&region=x",
        f"a=HTTP://ann:{word}@host/x",
    ):
        with pytest.raises(SpecError) as caught:
            parse_target(url)
        assert word not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["smb://ann:secret@host/share", "root://ann:sec@ret@host//x", "smb://a:\ts@h/x"]
)
def test_a_password_in_a_url_is_refused_and_shown_nowhere(url: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_target(f"a={url}")
    said = f"{caught.value.message} {caught.value.remedy} {caught.value.source}"
    assert "no place in a URL" in said
    assert not any(part in said for part in ("sec", "\ts", "ret@"))
