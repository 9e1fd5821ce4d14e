"""What all verbs have in common: where what they make goes, and how things are named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from leadline.cli.main import leadline
from leadline.cli.options import RenamedOption, one_name
from leadline.errors import UsageError

_OUT = {"-o", "--out", "--output", "--into", "--to-file", "--save", "--dest", "--write"}
_NAME = {"--name", "--called"}
_NAMED = ("lab up", "lab down", "lab status", "lab env", "lab targets", "lab guest", "studies", "engines")


def verbs(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every verb with its name."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for one in command.list_commands(context):
            found = command.get_command(context, one)
            assert found is not None
            yield from verbs(found, f"{name} {one}".strip())
    else:
        yield name, command


EVERY = dict(verbs(leadline))


def options(command: click.Command, wanted: set[str]) -> list[click.Option]:
    return [one for one in command.params if isinstance(one, click.Option) and wanted & {*one.opts}]


def parsed(verb: str, *words: str) -> dict[str, Any]:
    """The parameters of a command line; nothing runs."""
    return EVERY[verb].make_context(verb, list(words), resilient_parsing=True).params


@pytest.mark.parametrize("verb", EVERY)
def test_what_a_verb_makes_goes_where_o_says(verb: str) -> None:
    for option in options(EVERY[verb], _OUT):
        assert isinstance(option, RenamedOption), f"{verb}: use out_option of cli/options.py"
        assert option.shown == ["-o", "--out"]
        assert option.name == "out"


def test_every_verb_that_makes_a_result_or_a_report_has_it() -> None:
    having = {verb for verb, command in EVERY.items() if options(command, {"-o"})}
    kinds = ("agent", "darshan", "elbencho", "fio", "io500", "opencast", "published", "result", "strace")
    assert having == {
        "run",
        "trace",
        "replay",
        "profile",
        "size",
        "simulate",
        "report",
        "diagnose",
        "check",
        "tune prove",
        "tune search",
        "deploy emit",
        "tune emit",
        *(f"import {kind}" for kind in kinds),
    }


@pytest.mark.parametrize("verb", EVERY)
def test_a_name_is_a_word_of_its_own(verb: str) -> None:
    command = EVERY[verb]
    assert all(option.hidden for option in options(command, _NAME))
    if verb in _NAMED:
        (name,) = (one for one in command.params if one.name == "name")
        assert isinstance(name, click.Argument)


@pytest.mark.parametrize(
    ("verb", "words", "values"),
    [
        ("report", ("r", "--output", "x"), {"out": Path("x")}),
        ("report", ("r", "-o", "x"), {"out": Path("x")}),
        ("import result", (".", "--into", "x"), {"out": Path("x")}),
        ("import result", (".", "-o", "x"), {"out": Path("x")}),
        ("run", ("quick", "--out", "x"), {"out": Path("x"), "study": "quick"}),
        ("run", ("quick", "-o", "x"), {"out": Path("x")}),
        ("replay", ("t", "-o", "x"), {"out": Path("x")}),
        ("profile", ("-o", "x", "--", "true"), {"out": Path("x"), "words": ("true",)}),
        ("simulate", (__file__, "--work", "rw=read"), {"works": ("rw=read",)}),
        ("simulate", (__file__, "--workload", "rw=read"), {"works": ("rw=read",)}),
        ("list", ("--figures",), {"figures": True}),
        ("list", ("--metrics",), {"figures": True}),
        ("diagnose", ("r", "--figures", "--beside", "a=/b"), {"figures": True, "beside": "a=/b"}),
        ("diagnose", ("r", "--values", "--alternative", "a=/b"), {"figures": True, "beside": "a=/b"}),
        ("gate", (".", ".", "--allow-undecided"), {"allow_undecided": True}),
        ("gate", (".", ".", "--allow-inconclusive"), {"allow_undecided": True}),
        ("lab up", ("mine",), {"name": "mine", "former_name": ""}),
        ("lab up", ("--name", "mine"), {"name": "", "former_name": "mine"}),
    ],
)
def test_old_spellings_go_on_working_beside_the_new_ones(
    verb: str, words: tuple[str, ...], values: dict[str, Any]
) -> None:
    found = parsed(verb, *words)
    assert {key: found[key] for key in values} == values


@pytest.mark.parametrize(
    ("verb", "former"),
    [
        ("report", "--output"),
        ("import result", "--into"),
        ("lab up", "--name"),
        ("simulate", "--work "),
        ("list", "--figures"),
        ("diagnose", "--figures"),
        ("diagnose", "--beside"),
        ("tune search", "--way"),
        ("gate", "--allow-undecided"),
    ],
)
def test_old_spellings_are_shown_nowhere(verb: str, former: str) -> None:
    command = EVERY[verb]
    assert former not in command.get_help(click.Context(command))


def test_two_names_that_differ_are_refused() -> None:
    assert (one_name("a", ""), one_name("", "b"), one_name("c", "c")) == ("a", "b", "c")
    with pytest.raises(UsageError, match="two names"):
        one_name("a", "b")
