"""What `--redact` promises: no token of a path, host, user or argument is left, in any format."""

from __future__ import annotations

import html
import io
import json
import re
import shlex
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console
from trace_tables import SECOND, file_row, files_table, process, tables

from findings_examples import small
from leadline.errors import UsageError
from leadline.report import FORMATS, render
from leadline.report.redact import redacted
from leadline.report.renderers.terminal import show
from leadline.store.reader import open_result
from leadline.tracing.store import create_trace_result
from leadline.verdict.findings import build_findings
from leadline.verdict.model import Findings, Statement
from leadline.verdict.private import private_texts

# Words that nobody has by chance; what joins them is what quoting and encoding are about.
WORDS = st.text("bcdfghjkmpqvwxzöéж", min_size=6, max_size=9).map(lambda text: f"zq{text}")
MARKS = (" ", "'", '"', " & ", "<", ">", "%", "$", ";", ", ", ": ", "(", "\\", "=", "@", ".")
JOINED = st.tuples(WORDS, st.sampled_from(MARKS), WORDS).map("".join)
PATHS = st.lists(JOINED | WORDS, min_size=1, max_size=3).map("/".join)
FORMS: tuple[Callable[[str], str], ...] = (
    str,
    repr,
    json.dumps,
    shlex.quote,
    html.escape,
    quote,
    str.capitalize,
    lambda text: quote(text, safe=""),
    lambda text: text.replace(" ", "\\ "),
    lambda text: text.rpartition("/")[2],
    lambda text: text.partition("/")[0],
    lambda text: " ".join(shlex.split(text)) if text.count('"') + text.count("'") == 0 else text,
    lambda text: f"open of {text}/leadline-0badcafe/a-fresh.0: No such file or directory ({text})",
)


def tokens(texts: Iterable[str]) -> set[str]:
    return {word.lower() for text in texts for word in re.findall(r"zq[bcdfghjkmpqvwxzöéж]+", text)}


def renderings(findings: Findings) -> Iterable[tuple[str, str]]:
    for form in FORMATS:
        try:
            yield form, render(findings, form)
        except UsageError:
            assert findings.frame.no_jobs
    stream = io.StringIO()
    show(findings, Console(file=stream, width=400))
    yield "terminal", stream.getvalue()


WAYS: tuple[Callable[[str], str], ...] = (
    str,
    quote,
    lambda word: json.dumps(word)[1:-1],
    lambda word: word.encode("ascii", "xmlcharrefreplace").decode(),
)


def left_in(findings: Findings, wanted: set[str]) -> list[tuple[str, str]]:
    found = []
    for form, text in renderings(findings):
        plain = text.lower()
        found += [(form, word) for word in sorted(wanted) if any(way(word).lower() in plain for way in WAYS)]
    return found


@settings(max_examples=8)
@given(path=PATHS, host=WORDS, user=WORDS, argument=JOINED, source=PATHS)
@example(
    path="zqvermögen/zqplan zqbébé.db",
    host="zqnodej",
    user="zqfrankk",
    argument="--password=zqhunterq zqtwo",
    source="zqexport/zqalpha's",
)
def test_no_token_of_a_study_is_left_however_it_is_written(
    path: str, host: str, user: str, argument: str, source: str
) -> None:
    manifest: dict[str, Any] = {
        "command": ["leadline", "run", "s.yaml", argument, f"--target=a=/{path}"],
        "targets": {
            "a": {
                "mount_point": f"/{path}",
                "source": f"10.1.2.3:/{source}",
                "ceph": {"name": "client.x", "conf": f"/{source}.conf", "pool": user},
            }
        },
        "plan": {"cells": [{"job": {"command": ["prog", argument], "input": path}}]},
        "study": {"works": {"w": {"url": f"smb://{user}@{host}.example.org/{path}"}}},
    }
    said = [form(text) for text in (f"/{path}", path, argument, source, user, host) for form in FORMS]
    found = small()
    cell = replace(found.cells[0], job={**found.cells[0].job, "command": ["prog", argument], "input": path})
    trials = tuple(replace(one, error=said[number % len(said)]) for number, one in enumerate(cell.trials))
    findings = replace(
        found,
        cells=(replace(cell, trials=trials), *found.cells[1:]),
        statements=(
            *found.statements,
            *(Statement("finding", f"at {text}", (text,), says="example") for text in said),
        ),
        about=" ".join(said),
        host={**found.host, "host": f"{host}.example.org", "kernel": "6.1"},
        private=private_texts(manifest),
    )
    assert left_in(redacted(findings), tokens([path, host, user, argument, source])) == []


@settings(max_examples=5)
@given(program=PATHS, argument=JOINED, file=PATHS, tool=PATHS)
@example(
    program="zqacmes/zqsolver one", argument="--token=zqhidden zqword", file="zqfilm one.mp4", tool="zqjail x"
)
def test_no_token_of_a_trace_is_left(program: str, argument: str, file: str, tool: str) -> None:
    words = [f"/{program}", argument, file]
    content = tables(
        processes=(
            process(command=json.dumps(words), executable=f"/{program}", notes=[f"static child /{tool}"]),
            process(1, parent=0, command=shlex.join(words), executable=f"/{program}"),
        ),
        files=files_table(
            [file_row(path=file, OPENS=500, F_META_TIME=0.5), file_row(1, path=f"/{tool}/{file}")]
        ),
        extra={"wall_s": 1.0},
    )
    details = {"program": words, "command": ["leadline", "trace", *words], "host": {"host": "zqnodej"}}
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory, "r")
        title = Path(program).name
        create_trace_result(place, {"t0001": content}, title=title, details=details, now_ns=lambda: SECOND)
        findings = redacted(build_findings(open_result(place)))
    assert left_in(findings, tokens([program, argument, file, tool, "zqnodej"])) == []


def about(text: str, **private: str) -> str:
    return redacted(replace(small(), about=text, private=private)).about


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("cannot open /srv/my films/Plan B.mp4: Permission denied", "cannot open <path>: Permission denied"),
        ("No such file or directory (/srv/my films/a.mp4)", "No such file or directory (<path>)"),
        ("see fe80::1%eth0 and 2001:db8::7", "see <address>%eth0 and <address>"),
        ("from smb://ann@nas.corp/share it came", "from <address> it came"),
        ("/proc/PID/stack has 5 MiB/s, read/write, 1/s", "/proc/PID/stack has 5 MiB/s, read/write, 1/s"),
    ],
)
def test_what_nobody_told_of_goes_by_its_look(text: str, left: str) -> None:
    assert about(text) == left


def test_names_of_targets_and_works_stay_though_a_path_has_them_in_it() -> None:
    found = small()
    target = replace(found.targets[0], url=f"/srv/{found.targets[0].name}/x")
    shown = redacted(replace(found, targets=(target, *found.targets[1:])))
    assert [cell.id for cell in shown.cells] == [cell.id for cell in found.cells]
    assert shown.targets[0].name == found.targets[0].name
    assert shown.targets[0].url == f"<path of {target.name}>"


def test_a_target_that_is_called_as_its_scheme_is_stays_before_a_colon() -> None:
    found = small()
    (first, *rest) = found.targets
    named = replace(first, name="nfs", url="nfs://server.example/zqexport")
    said = Statement(
        "finding", "nfs to nfs: a rename at once, on nfs://server.example/zqexport", (), says="example"
    )
    told = redacted(replace(found, targets=(named, *rest), statements=(said,))).statements[0].text
    assert told.startswith("nfs to nfs: a rename at once")
    assert "zqexport" not in told


def test_what_a_program_printed_goes_whatever_it_is() -> None:
    text = "copy 1 of 2: exit code 7: cannot do (program)\nthat, ann (program)"
    assert about(text) == "copy 1 of 2: exit code 7 (program)"


@pytest.mark.parametrize(
    "command",
    [
        ["leadline", "run", "--blocks", "1", "--set", "size=4M", "--set", "runtime=10s", "-o", "zqxkvbd"],
        ["leadline", "run", "--set", "workloads.seqread_1m.bs=1M", "--set", "runtime=10s", "zqxkvbd"],
    ],
)
def test_advice_stays_though_a_command_line_had_the_same_options(command: list[str]) -> None:
    found = small()
    advice = "Measure longer: --set runtime=10s, or a larger --set size. Run more blocks: --blocks 6."
    said = Statement("finding", f"{advice} It is in zqxkvbd.", (), says="example")
    private = private_texts({"command": command})
    shown = redacted(replace(found, statements=(said,), private=private)).statements[0].text
    assert shown == f"{advice} It is in <argument>."
