"""The JSON Schema of a study, so that an editor helps while one is written (docs/study.schema.json)."""

from __future__ import annotations

import json
from typing import Any

from leadline.study.study import STUDY_FORMAT, Study

SCHEMA_ID = "leadline.study.schema/1"


def study_schema() -> dict[str, Any]:
    """JSON Schema, draft 2020-12, of `leadline.study/1`. A key that is not written has no null either."""
    schema = _tidy(Study.model_json_schema())
    schema["required"] = ["format", "workloads"]
    schema["properties"]["factors"]["propertyNames"] = {
        "enum": list(schema["$defs"]["JobOptions"]["properties"])
    }
    schema["properties"]["factors"]["additionalProperties"].update(minItems=1, uniqueItems=True)
    definitions = schema["$defs"]
    definitions["Compare"]["properties"]["margin"]["default"] = "5%"  # in the notation of a study
    definitions["Observe"]["properties"]["interval"]["default"] = "1s"
    steady = definitions["SteadyState"]["properties"]
    for key, words in (("window", "1s"), ("range", "20%"), ("slope", "10%")):
        steady[key]["default"] = words
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": f"Study of leadline ({STUDY_FORMAT})",
        **{key: value for key, value in schema.items() if key != "title"},
    }


def schema_text() -> str:
    """The schema as the file in docs/ holds it."""
    return json.dumps(study_schema(), indent=2, ensure_ascii=False) + "\n"


def _tidy(node: Any) -> Any:
    """Without pydantic's titles, and without null where None only means "not said"."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    tidied = {
        key: _tidy(value) for key, value in node.items() if not (key == "title" and isinstance(value, str))
    }
    if "default" in tidied and tidied["default"] in (None, ""):
        del tidied["default"]
    choices = tidied.get("anyOf")
    if isinstance(choices, list):
        left = [choice for choice in choices if choice != {"type": "null"}]
        del tidied["anyOf"]
        tidied = {**left[0], **tidied} if len(left) == 1 else {"anyOf": left, **tidied}
    return tidied
