"""`leadline studies`: the built-in studies, one of them as YAML, and the schema for editors."""

from __future__ import annotations

import json

import click

from leadline.cli.console import echo, echo_text
from leadline.cli.options import complete_study


@click.command(name="studies")
@click.argument("name", required=False, shell_complete=complete_study)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of a study, for editors.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(name: str | None, schema: bool, as_json: bool) -> None:
    """List the built-in studies, or print the YAML of the one called NAME.

    The output is a complete study: change it, save it, and pass the file to `run`.
    """
    from leadline.errors import UsageError
    from leadline.observe.host.host import cpu_list
    from leadline.study.library import builtin_text, load_study

    if schema:
        from leadline.study.schema import schema_text

        if name is not None:
            raise UsageError("--schema and the name of a study were both given", "give one of them")
        echo_text(schema_text(), nl=False)
    elif name is None:
        _list(as_json)
    elif as_json:
        builtin_text(name)
        echo_text(json.dumps(load_study(name, {}, cpus=len(cpu_list())).as_json(), indent=2))
    else:
        echo_text(builtin_text(name), nl=False)


def _list(as_json: bool) -> None:
    from leadline.study.library import builtin_names, load_study

    studies = [load_study(name, {}) for name in builtin_names()]
    if as_json:
        rows = [{"name": s.name, "title": s.title, "about": s.about} for s in studies]
        echo_text(json.dumps({"format": "leadline.studies/1", "studies": rows}, indent=2))
        return
    width = max(len(study.name) for study in studies)
    for study in studies:
        echo(f"{study.name:<{width}}  {study.title}: {study.about}")
