"""A regression check as JUnit XML, for continuous integration: one test case a cell and metric.

Dialect: testsuites, testsuite, testcase, failure, error, skipped, as Jenkins' and GitLab's readers take them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as Tree

from leadline.report import format as fmt
from leadline.verdict.model import Passed, Regression, RegressionCheck

# What XML 1.0 cannot hold even escaped; `printable` shows the rest of the controls as escapes.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


_FAILURES: tuple[Passed, ...] = ("lost", "missing", "undecided")


def to_junit(found: Regression, *, allow_undecided: bool) -> str:
    """The document: INVALID is an error, a loss a failure, undecided one of its own type, or skipped."""
    failures = tuple(kind for kind in _FAILURES if not (allow_undecided and kind == "undecided"))
    counts = {
        "tests": len(found.checks),
        "failures": found.count(*failures),
        "errors": found.count("invalid"),
        "skipped": found.count("undecided") if allow_undecided else 0,
    }
    numbers = {name: str(count) for name, count in counts.items()}
    suites = Tree.Element("testsuites", {"name": "leadline", **numbers})
    suite = Tree.SubElement(
        suites, "testsuite", {"name": _clean(f"{found.new} against {found.baseline}"), **numbers}
    )
    if found.notes:
        properties = Tree.SubElement(suite, "properties")
        for note in found.notes:
            Tree.SubElement(properties, "property", {"name": "note", "value": _clean(note)})
    for check in found.checks:
        _case(suite, check, failures)
    Tree.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Tree.tostring(suites, encoding="unicode") + "\n"


def _case(suite: Tree.Element, check: RegressionCheck, failures: Sequence[Passed]) -> None:
    case = Tree.SubElement(
        suite, "testcase", {"classname": _clean(check.name), "name": _clean(check.metric), "time": "0"}
    )
    words = _clean(check.words)
    if check.passed == "invalid":
        Tree.SubElement(case, "error", {"message": words, "type": "INVALID"})
    elif check.passed in failures:
        Tree.SubElement(case, "failure", {"message": words, "type": check.passed})
    elif check.passed == "undecided":
        Tree.SubElement(case, "skipped", {"message": words})
    else:
        Tree.SubElement(case, "system-out").text = words


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("?", fmt.printable(text))
