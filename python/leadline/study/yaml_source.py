"""A study's YAML: what its errors say, and the engine whose name is YAML's word for nothing."""

from __future__ import annotations

from collections.abc import Mapping

from leadline.study.schemes import storageless
from leadline.yamlio.yaml_source import Document, DocumentKind, read_yaml


def read_study(text: str, source: str, environment: Mapping[str, str]) -> Document:
    """A study, or a value of one. Raises SpecError with file and line for whatever is wrong in it."""
    kind = DocumentKind(
        noun="study",
        manual="see docs/study.md",
        example="see `leadline studies quick` for an example",
        instead_of_merge="put shared options under `defaults`",
        nulls={"engine": storageless().name},
    )
    return read_yaml(text, source, environment, kind)
