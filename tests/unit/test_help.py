"""What `--help` prints, of every command: the field's words, and sentences that say what the command does."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from leadline.cli import main
from leadline.cli.main import leadline

# Words of our own, for which the field has others.
_OURS = re.compile(
    r"\b(said|told|figures?|beside|in flight|again for more|not so|way to|ways to|whoever|lay out|bound by)\b"
    r"|\bSay\b|\bwhat goes on\b|\bcomes out\b|\bmends?\b",
)


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Every command that help lists, with the words that start it."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for verb in command.list_commands(context):
            found = command.get_command(context, verb)
            if found is not None and not found.hidden:
                yield from commands(found, f"{name} {verb}")


EVERY = dict(commands(leadline, "leadline"))


@pytest.mark.parametrize("name", EVERY)
def test_help_has_the_words_of_the_field(name: str) -> None:
    command = EVERY[name]
    texts = [command.help or "", command.short_help or ""]
    texts += [option.help or "" for option in command.params if isinstance(option, click.Option)]
    found = [f"{word[0]!r} in {text[:80]!r}" for text in texts for word in _OURS.finditer(text)]
    assert found == []


@pytest.mark.parametrize("name", EVERY)
def test_every_option_is_explained_in_a_sentence(name: str) -> None:
    for option in EVERY[name].params:
        if isinstance(option, click.Option) and not option.hidden and option.help:
            text = option.help.split("  [")[0]
            assert text.endswith("."), option.help


def test_the_list_of_verbs_and_the_verbs_own_help_agree() -> None:
    context = click.Context(leadline)
    listed = {name: words for _, _, verbs in main._SECTIONS for name, words in verbs}
    for name in leadline.list_commands(context):
        command = leadline.get_command(context, name)
        assert command is not None
        if command.short_help:
            assert command.short_help == listed[name]


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_of_help_ends_within_a_name(name: str, width: int) -> None:
    text = EVERY[name].get_help(click.Context(EVERY[name], info_name=name, terminal_width=width))
    assert [line for line in text.splitlines() if re.search(r"[\w/]-$", line)] == []
    assert "\u2011" not in text
