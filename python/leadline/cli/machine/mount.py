"""`leadline mount`: plans the way from ceph-fuse to the kernel client, and checks for known pitfalls."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from leadline.cli.console import echo, echo_text
from leadline.cli.main import EXIT_GATE, EXIT_GOOD
from leadline.cli.options import UntouchedPath
from leadline.errors import TargetError

if TYPE_CHECKING:
    from leadline.knowledge.findings import Finding

_DEADLINE_S = 30.0


@click.group(name="mount")
def command() -> None:
    """Plan the move of a CephFS mount from ceph-fuse to the kernel client, and check mounts for known
    pitfalls. Nothing is mounted."""


@command.command("plan")
@click.argument("path", type=UntouchedPath(), required=False)
@click.option("--from", "present", type=click.Choice(["fuse"]), default="fuse", show_default=True)
@click.option("--to", "wanted", type=click.Choice(["kernel"]), default="kernel", show_default=True)
@click.option(
    "--emit",
    type=click.Choice(["fstab", "systemd", "puppet", "ansible", "salt"]),
    help="Print only the configuration of the new mount, in this format.",
)
@click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="NAME=HOSTS[:SERVICE]",
    help="Hosts of a role, in the order of the change.",
)
@click.option(
    "--kernel", default="", metavar="RELEASE", help="Plan for this kernel instead of the running one."
)
@click.option("--wsync/--nowsync", "wsync", default=None, help="Mount with wsync or nowsync.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plan(
    path: str | None,
    present: str,
    wanted: str,
    emit: str | None,
    roles: tuple[str, ...],
    kernel: str,
    wsync: bool | None,
    as_json: bool,
) -> None:
    """Show how to move the CephFS mount at PATH from ceph-fuse to the kernel client.

    The present mount and its cluster are read; nothing is changed. Without PATH: the only such mount.
    """
    from leadline.mounting.emit import FORMS
    from leadline.mounting.facts import find_mount, read_facts
    from leadline.mounting.plan import make_plan, parse_role, plan_lines

    parsed = [parse_role(text) for text in roles]
    made = make_plan(read_facts(path or find_mount(present), kernel), parsed, wsync=wsync)
    if as_json:
        echo_text(json.dumps({"format": "leadline.mount-plan/1", "to": wanted, **_plain(made)}, indent=1))
    elif emit is not None:
        echo_text(FORMS[emit](made.mount), nl=False)
    else:
        for line in plan_lines(made):
            echo(line)
        echo_text("\nits configuration for /etc/fstab (other forms: --emit)\n")
        echo_text(FORMS["fstab"](made.mount), nl=False)


def _plain(made: Any) -> dict[str, Any]:
    """A plan as plain values; the mount's options also as one text."""
    from leadline.knowledge.pitfalls import plain

    found = asdict(made)
    for name in ("findings", "present"):
        found[name] = [plain(one) for one in getattr(made, name)]
    found["mount"]["option_text"] = made.mount.option_text
    return found


@command.command("check")
@click.argument("path", type=UntouchedPath())
@click.option("--probe", is_flag=True, help="Test with a few files: create, write, read and remove them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(path: str, probe: bool, as_json: bool) -> int:
    """Check the CephFS mount at PATH for known pitfalls.

    The exit code is 4 if a pitfall was measured to fail here.
    """
    from leadline.knowledge.pitfalls import assess, cleared
    from leadline.mounting.facts import read_facts
    from leadline.mounting.plan import finding_lines

    facts = read_facts(path)
    findings = assess(facts.client, facts.kernel, facts.answers, facts.reasons)
    measured = _probe(path) if probe else None
    failed = measured is not None and "why" in measured
    if measured is not None and not failed:
        findings = cleared(findings, "create", f"measured: {measured['files']} files were made and written")
    if as_json:
        document = {
            "format": "leadline.mount-check/1",
            "path": path,
            "words": facts.words,
            "kernel": facts.kernel,
            "findings": [_finding(finding) for finding in findings],
            "probe": measured,
        }
        echo_text(json.dumps(document, indent=1))
    else:
        echo(f"{path}: {facts.words}, kernel {facts.kernel}")
        for line in finding_lines(findings):
            echo(line)
        if measured is not None:
            echo(_probe_words(measured))
    return EXIT_GATE if failed else EXIT_GOOD


def _finding(finding: Finding) -> dict[str, str]:
    from leadline.knowledge.pitfalls import HOLDS

    return {
        "name": finding.name,
        "holds": HOLDS[finding.holds],
        "why": finding.evidence,
        "symptom": finding.means,
        "remedy": finding.remedy,
        "source": finding.source,
    }


def _probe(path: str) -> dict[str, Any]:
    """What `run.create_probe` saw, in a process that may hang. Raises TargetError where it did."""
    from leadline.observe.hang_guard import ask_child

    study_id = secrets.token_hex(6)
    answer = ask_child("leadline.run.create_probe", [path, study_id], _DEADLINE_S)
    if answer.stuck_pid is not None or not answer.lines:
        last = answer.stderr.splitlines()[-1] if answer.stderr else "no answer"
        raise TargetError(
            f"{path}: making files there did not end within {_DEADLINE_S:g} s ({last})",
            f"See whether the mount answers; leadline-{study_id} below it may be left and is safe to remove.",
        )
    return answer.lines[-1]


def _probe_words(found: dict[str, Any]) -> str:
    if "why" not in found:
        return f"  measured: {found['files']} files made, written, synced, read back and removed"
    hint = " (this is what tracker 54013 looks like)" if found.get("errno") == 1 and found["files"] else ""
    return f"  measured: FAILED: {found['why']}{hint}; {found['files']} files went well before"
