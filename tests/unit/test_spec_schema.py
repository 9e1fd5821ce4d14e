"""The published schema is the one that the code makes, and accepts what the code accepts."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from leadline.study.library import builtin_names, builtin_text
from leadline.study.schema import schema_text, study_schema

PUBLISHED = Path(__file__).parents[2] / "docs" / "study.schema.json"


def test_the_published_schema_is_the_generated_one() -> None:
    assert PUBLISHED.read_text(encoding="utf-8") == schema_text(), (
        "leadline studies --schema > docs/study.schema.json"
    )


@pytest.mark.parametrize("name", builtin_names())
def test_built_in_studies_hold_to_the_schema(name: str) -> None:
    jsonschema.validate(YAML(typ="safe").load(builtin_text(name)), study_schema())


@pytest.mark.parametrize(
    "change",
    [
        {"workloads": {"one": {"rw": "raed"}}},
        {"workloads": {"one": {"rw": "read", "bs": "4q"}}},
        {"workloads": {"one": {"rw": "read", "bz": "4k"}}},
        {"workloads": {}},
        {"factors": {"bss": ["4k"]}},
        {"factors": {"bs": []}},
        {"blocks": 0},
        {"compare": {"margin": 5}},
        {"format": "leadline.study/2"},
    ],
)
def test_the_schema_refuses_what_the_code_refuses(change: dict[str, object]) -> None:
    study = {"format": "leadline.study/1", "workloads": {"one": {"rw": "read", "bs": "4k"}}}
    jsonschema.validate(study, study_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**study, **change}, study_schema())


def test_the_examples_of_the_reference_are_valid() -> None:
    from leadline.study.study import parse_study
    from leadline.study.yaml_source import read_study

    text = (PUBLISHED.parent / "study.md").read_text(encoding="utf-8")
    blocks = [part.split("```")[0] for part in text.split("```yaml\n")[1:]]
    whole = [block for block in blocks if block.startswith("format:")]
    assert len(whole) >= 3
    for block in whole:
        document = read_study(block, "docs/study.md", {"SCRATCH": "/mnt/scratch"})
        assert parse_study(document)
        jsonschema.validate(document.value, json.loads(schema_text()))
