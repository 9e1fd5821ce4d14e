"""What installs leadline without network: refusals leave nothing, and removing takes only what is its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

PACKAGING = Path(__file__).parents[2] / "tools" / "packaging"
sys.path.insert(0, str(PACKAGING))

from runtime_lock import needed, plain  # noqa: E402 - tools are no package

LOCK = """\
a==1 \\
    --hash=sha256:00
    # via leadline (pyproject.toml)
b==2 \\
    --hash=sha256:11
    # via
    #   a
    #   other
c.x==3 \\
    --hash=sha256:22
    # via b
other==4 \\
    --hash=sha256:33
    # via leadline (pyproject.toml)
"""
FILLED = {"@NAME@": "leadline-1", "@VERSION@": "1", "@PYTHON@": "python9", "@GLIBC@": "2.28"}


def test_what_is_needed_comes_with_all_that_it_needs() -> None:
    assert [line for line in needed(LOCK, {"a"}).splitlines() if "==" in line] == [
        "a==1 \\",
        "b==2 \\",
        "c.x==3 \\",
    ]


def test_spellings_of_a_name_are_one() -> None:
    assert "c.x==3" in needed(LOCK, {"c-x"})


def test_a_dependency_that_the_lock_lacks_is_an_error() -> None:
    with pytest.raises(ValueError, match="lacks d: run make lock"):
        needed(LOCK, {"a", "d"})


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A bundle as it is unpacked, with scripts instead of Python and leadline."""
    top = tmp_path / "bundle"
    for name in ("leadline-1/python/bin/python9", "leadline-1/bin/leadline"):
        script(top / name, "exit 0")
    text = (PACKAGING / "install.sh").read_text()
    for word, value in {**FILLED, "@MACHINE@": os.uname().machine}.items():
        text = text.replace(word, value)
    script(top / "install.sh", text)
    return top


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def install(bundle: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(bundle / "install.sh"), *words],
        env={**os.environ, **environment},
        check=False,
        capture_output=True,
        text=True,
    )


def test_it_is_installed_twice_and_removed_without_rest(bundle: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "a place"
    for _ in range(2):
        done = install(bundle, "--prefix", str(prefix))
        assert (done.returncode, done.stderr) == (0, "")
        assert (prefix / "bin" / "leadline").resolve() == prefix / "leadline-1" / "bin" / "leadline"
        assert names_in(prefix) == [".leadline-install", "bin", "leadline-1"]
    removed = install(prefix / "leadline-1", "--uninstall", "--prefix", str(prefix))
    assert (removed.returncode, removed.stderr) == (0, "")
    assert not prefix.exists()


def test_removing_leaves_what_others_put_there(bundle: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "p"
    assert install(bundle, "--prefix", str(prefix)).returncode == 0
    (prefix / "bin" / "other").touch()
    kept = tmp_path / "kept"
    kept.mkdir()
    with (prefix / ".leadline-install").open("a") as ours:
        ours.write("../kept\nleadline-1/../../kept\nbin/other\nleadline-* *\n")
    assert install(bundle, "--uninstall", "--prefix", str(prefix)).returncode == 0
    assert names_in(prefix) == ["bin"]
    assert names_in(prefix / "bin") == ["other"]
    assert kept.is_dir()


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("leadline-1/python/bin/python9", "cannot be started: the file system may be mounted noexec."),
        ("leadline-1/bin/leadline", "leadline does not start"),
    ],
)
def test_what_does_not_start_is_not_installed(bundle: Path, tmp_path: Path, broken: str, words: str) -> None:
    script(bundle / broken, "exit 1")
    (tmp_path / "there").mkdir()
    for prefix in ("a/new/p", "there"):
        done = install(bundle, "--prefix", str(tmp_path / prefix))
        assert done.returncode == 1
        assert words in done.stderr
    assert not (tmp_path / "a").exists()
    assert names_in(tmp_path / "there") == []


@pytest.mark.parametrize(
    ("says", "programs", "words"),
    [
        ("echo glibc 2.17", "getconf", "leadline needs glibc 2.28 or newer, and this system has 2.17"),
        ("echo 'ldd (GNU libc) 2.17'; exit $(expr $0 : '.*/getconf')", "getconf ldd", "this system has 2.17"),
        ("exit 1", "getconf ldd", "this system has another C library"),
        ("echo Linux riscv64", "uname", "and this is"),
        ("echo F 1 1 1 1; echo d 1 1 0 1", "df", "has 0 MB free"),
    ],
)
def test_a_system_that_it_does_not_run_on_is_refused_before_anything_is_written(
    bundle: Path, tmp_path: Path, says: str, programs: str, words: str
) -> None:
    for program in programs.split():
        script(tmp_path / "programs" / program, says)
    path = f"{tmp_path / 'programs'}{os.pathsep}{os.environ['PATH']}"
    done = install(bundle, "--prefix", str(tmp_path / "p"), PATH=path)
    assert done.returncode == 1
    assert words in done.stderr
    assert not (tmp_path / "p").exists()


def test_without_a_home_a_directory_is_asked_for(bundle: Path) -> None:
    done = install(bundle, HOME="")
    assert (done.returncode, done.stdout) == (1, "")
    assert "HOME is not set. Name one with --prefix" in done.stderr


def test_an_archive_that_is_not_whole_is_refused(bundle: Path, tmp_path: Path) -> None:
    shutil.rmtree(bundle / "leadline-1")
    done = install(bundle, "--prefix", str(tmp_path / "p"))
    assert done.returncode == 1
    assert "Unpack the whole archive again" in done.stderr
    assert not (tmp_path / "p").exists()


def test_a_leadline_of_another_origin_is_left_alone(bundle: Path, tmp_path: Path) -> None:
    other = tmp_path / "p" / "bin" / "leadline"
    script(other, "echo other")
    done = install(bundle, "--prefix", str(tmp_path / "p"))
    assert "did not install. Name another directory with --prefix" in done.stderr
    assert "echo other" in other.read_text()
    assert (
        "no leadline that this script installed"
        in install(bundle, "--uninstall", "--prefix", str(tmp_path / "p")).stderr
    )


# Names that conda-forge has for packages that PyPI calls otherwise.
CONDA = {"msgpack": "msgpack-python", "prometheus-client": "prometheus_client"}


def test_the_conda_package_needs_what_the_wheel_needs() -> None:
    project = tomllib.loads((PACKAGING.parents[1] / "pyproject.toml").read_text())["project"]
    asked = [re.fullmatch(r"([A-Za-z0-9._-]+)(.*)", one) for one in project["dependencies"]]
    wanted = {f"{CONDA.get(plain(one[1]), one[1].lower())} {one[2]}" for one in asked if one}
    recipe = yaml.safe_load((PACKAGING / "conda" / "recipe.yaml").read_text())
    needs = set(recipe["requirements"]["run"])
    assert needs == {*wanted, "__glibc >=2.17", f"python {project['requires-python']}"}
