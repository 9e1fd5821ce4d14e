"""`leadline engines`: the ways to do I/O, whether each works here, and its options."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from leadline.cli.console import echo, echo_text

if TYPE_CHECKING:
    from leadline.study.schemes import Scheme


@click.command(name="engines")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(name: str | None, as_json: bool) -> None:
    """List the I/O engines, or describe the one called NAME (or the scheme of a URL) with its options."""
    from leadline import _core
    from leadline.errors import UsageError
    from leadline.study import schemes

    table = {engine.name: scheme for scheme in schemes.table() for engine in scheme.engines}
    engines = [_described(engine, table[engine["name"]]) for engine in _core.engines()]
    if name is not None:
        known = [engine for engine in engines if name in (engine["name"], *engine["schemes"])]
        if not known or name == "file":
            names = ", ".join(engine["name"] for engine in engines)
            raise UsageError(f"there is no engine {name!r}", f"name one of: {names}")
        engines = known
    if as_json:
        echo_text(json.dumps({"format": "leadline.engines/1", "engines": engines}, indent=2))
    elif name is None:
        _list(engines)
    else:
        _describe(engines[0])


def _described(engine: dict[str, Any], scheme: Scheme) -> dict[str, Any]:
    """One engine as JSON prints it; `target` is an example of what it is given to."""
    return {
        **engine,
        "target": scheme.example,
        "package": scheme.package if scheme.url else None,
        "options": [asdict(choice) for choice in scheme.choices],
        "operations": list(scheme.operations) if scheme.url else None,
    }


def _list(engines: list[dict[str, Any]]) -> None:
    width = max(len(engine["name"]) for engine in engines)
    for engine in engines:
        echo(f"{engine['name']:<{width}}  {engine['words']}")
        if not engine["available"]:
            echo(f"{'':<{width}}  does not work here: {engine['reason']}")


def _describe(engine: dict[str, Any]) -> None:
    echo(f"{engine['name']}: {engine['words']}")
    echo(f"target: {engine['target']}")
    echo(f"works here: {'yes' if engine['available'] else 'no: ' + str(engine['reason'])}")
    if engine["operations"] is not None:
        echo(f"metadata operations: {', '.join(engine['operations']) or 'none'}")
    if not engine["options"]:
        echo("options of its own: none")
        return
    echo("options, behind a ? and joined by &:")
    width = max(len(option["name"]) for option in engine["options"])
    for option in engine["options"]:
        default = option["default"] or "empty"
        echo(f"  {option['name']:<{width}}  {option['words']} [{option['kind']}, default {default}]")
