"""The rule on words finds each of its list in every kind of text that users read, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2] / "tools" / "house"
sys.path.insert(0, str(HOUSE))
import words  # noqa: E402

WORDS = words.words()
TEXTS = [(word, text) for word in WORDS for text in word.found]
GOOD = [text for word in WORDS for text in word.passes]


def rule(root: Path, area: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(HOUSE / "words.py"), str(root), area],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("word", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_each_word_is_found_in_its_examples(word: words.Word, text: str) -> None:
    assert list(word.in_text(text))
    assert list(word.in_text(text.replace(" ", "\n")))


@pytest.mark.parametrize("text", GOOD)
def test_no_word_is_found_in_what_may_be_written(text: str) -> None:
    assert [word.instead for word in WORDS if list(word.in_text(text))] == []


BAD = "this one is not told apart here"
FILES = {
    "literal.py": f'print("{BAD}")\n',
    "joined.py": 'n = 1\nprint(f"{n} of these are not told {n} apart")\n',
    "help.py": f'@group.command()\ndef list_them():\n    """{BAD}"""\n',
    "table.yaml": f"entry:\n  title: {BAD}\n",
    "table.toml": f'[entry]\ntitle = "{BAD}"\n',
    "page.html.j2": f"<p>\n{BAD.replace(' apart', ' {{ n }} apart')}</p>\n",
    "page.md": f"# A page\n\n{BAD.replace(' apart', chr(10) + 'apart')}\n",
    "scheme.rs": f'const WORDS: &str = "{BAD}";\n',
}
FREE = {
    "docstring.py": f'"""{BAD}"""\n\n\ndef f():\n    """{BAD}"""\n    # {BAD}\n    return "undecided"\n',
    "table.yaml": f"# {BAD}\ntold apart: what is written\n",
    "page.html.j2": f"{{# {BAD} #}}<script>// {BAD}\n</script>\n",
    "page.md": f"<!-- {BAD} -->\n\n```text\n{BAD}\n```\n\nThen:\n\n    {BAD}\n\nIn a line: `undecided`.\n",
    "scheme.rs": f'// {BAD}\nconst A: &str = "b";\n#[cfg(test)]\nconst B: &str = "{BAD}";\n',
}


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    found = rule(tmp_path, name)
    assert found.returncode == 1
    assert found.stdout.startswith(f"{name}:")
    assert "significantly different" in found.stdout


@pytest.mark.parametrize("name", FREE)
def test_what_no_user_reads_is_free(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(FREE[name], encoding="utf-8")
    found = rule(tmp_path, name)
    assert (found.returncode, found.stdout) == (0, "")


def test_built_in_studies_are_read_with_their_comments(tmp_path: Path) -> None:
    studies = tmp_path / "python" / "leadline" / "studies"
    studies.mkdir(parents=True)
    (studies / "one.yaml").write_text(f"# {BAD}\nformat: leadline.study/1\n", encoding="utf-8")
    assert rule(tmp_path, "python").stdout.startswith("python/leadline/studies/one.yaml:1:")


def test_the_page_of_commands_is_read_with_its_blocks(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "cli.md").write_text(f"# Commands\n\n```text\n{BAD}\n```\n", encoding="utf-8")
    assert rule(tmp_path, "docs").stdout.startswith("docs/cli.md:4:")


def listed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, exception: str) -> None:
    """Let the rule read a list with this exception."""
    source = tmp_path / "words.toml"
    source.write_text(f"{words.LIST.read_text(encoding='utf-8')}\n{exception}", encoding="utf-8")
    monkeypatch.setattr(words, "LIST", source)


def test_an_exception_holds_for_its_file_and_text_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "one.md").write_text(f"{BAD}\n", encoding="utf-8")
    (tmp_path / "two.md").write_text(f"{BAD}\n", encoding="utf-8")
    exception = '[[exception]]\nin = "one.md"\ntext = "told apart"\nreason = "a quotation"\n'
    listed(monkeypatch, tmp_path, exception)
    assert [line.split(":")[0] for line in words.breaches(tmp_path, ["one.md", "two.md"])] == ["two.md"] * 2


def test_an_exception_that_nothing_needs_is_a_breach(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "one.md").write_text("All is well.\n", encoding="utf-8")
    listed(
        monkeypatch, tmp_path, '[[exception]]\nin = "one.md"\ntext = "told apart"\nreason = "a quotation"\n'
    )
    assert words.breaches(tmp_path, ["one.md"]) == ["one.md: 'told apart' needs no exception"]


@pytest.mark.parametrize("name", ["README.md", "docs/cli.md", "python/leadline/cli/main.py"])
def test_readme_help_and_screens_have_no_exceptions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    (tmp_path / "one.md").write_text("All is well.\n", encoding="utf-8")
    listed(monkeypatch, tmp_path, f'[[exception]]\nin = "{name}"\ntext = "told"\nreason = "none"\n')
    assert words.breaches(tmp_path, ["one.md"]) == [f"{name}: README, help and screens have no exceptions"]
