"""`leadline check`: is every part of this host, of a lab's hosts and of a cluster what it should be?

What `leadline check` prints on a terminal.

What `check --on` and `--destroy` ask for: devices and directories of this host, measured.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leadline.cli.console import echo, echo_text
from leadline.cli.explain.check_members import LabMembers, echoes, facts_of_members, members_of, no_facts
from leadline.cli.machine.lab_targets import check_lab_places, lab_option
from leadline.cli.measure.hosts_options import reach_options
from leadline.cli.options import AskedPath, WrittenPath, out_option
from leadline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from leadline.check.rows import Fact
    from leadline.check.view import ShownCheck
    from leadline.cli.measure.hosts_options import HostsOptions
    from leadline.lab import Lab
    from leadline.verdict.model import Findings


def storage_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--on and --destroy."""
    on = click.option(
        "--on",
        multiple=True,
        type=AskedPath(exists=True),
        metavar="PLACE",
        help="Measure a block device by reads, or a directory by an unnamed file. Repeat for several: "
        "each alone, then all at once.",
    )
    destroy = click.option(
        "--destroy",
        multiple=True,
        type=AskedPath(exists=True, file_okay=True, dir_okay=False),
        metavar="DEVICE",
        help="Also measure a block device by writes: its contents are LOST. Refused if it has a "
        "partition, a file system, a label or a user. Repeat for several.",
    )
    return on(destroy(command))


def measure_storage(host: str, on: Sequence[Path], destroy: Sequence[Path]) -> list[Fact]:
    """Facts of them; none where none was named."""
    from leadline.check.storage.places import places_of
    from leadline.check.storage.rounds import seconds_for, storage_facts

    if not on and not destroy:
        return []
    places = places_of(on, destroy)
    what = "1 place is" if len(places) == 1 else f"{len(places)} places are"
    echo(f"{what} measured, about {seconds_for(places):.0f} s", err=True)
    return storage_facts(host, places)


def check_findings(shown: ShownCheck, created: str, *, everything: bool) -> Findings:
    """What a check says, as a report has it; `everything`: also what is as it should be."""
    from leadline.cli.answer import answered
    from leadline.verdict.sections.section import StudyAnswer

    question, looked = "Is every part as expected?", ("facts of hosts, network and cluster",)
    sections = shown.on_screen(everything=everything)
    left = () if everything else (f"{shown.fine} are as expected; --all lists them.",)
    answer = StudyAnswer(question, shown.headline, said=left)
    meant = shown.meaning
    return answered(
        "check", question, answer, sections, looked, created=created, state=shown.state, meaning=meant
    )


_ROLES = ("mon", "osd", "mds", "gateway", "client")
_EXIT_OUT_OF_LINE = 3
_PLACE_S = 90.0  # for one place of --on, reads and writes
_HOST = "LEADLINE_LAB_HOST"  # set by `leadline lab exec`


@click.command(short_help="Check host, network and cluster for faults and wrong settings")
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice(_ROLES),
    help="Role of this host. Repeat for several.  [default: all]",
)
@lab_option(
    "Check each host and client of a lab, and its cluster. NAME is the lab; without it, the only one."
)
@click.option(
    "--conf",
    type=AskedPath(dir_okay=False),
    help="ceph.conf of the cluster.  [default: $CEPH_CONF, or /etc/ceph/ceph.conf]",
)
@click.option("--no-ceph", is_flag=True, help="Do not connect to a cluster.")
@click.option(
    "--with",
    "others",
    multiple=True,
    type=AskedPath(exists=True, dir_okay=False),
    metavar="FILE",
    help="Compare with another host, whose `check -o` wrote FILE. Repeat for several.",
)
@click.option(
    "--baseline",
    type=AskedPath(exists=True, dir_okay=False),
    metavar="FILE",
    help="Show what changed since `check -o` wrote FILE.",
)
@click.option(
    "--peer",
    "peers",
    multiple=True,
    metavar="HOST",
    help="Ping another host: loss, round trip, and whether full-size packets pass. Repeat for several.",
)
@storage_options
@reach_options
@click.option("--no-streams", is_flag=True, help="With --lab and --hosts: do not run iperf3 between them.")
@click.option("--as", "name", metavar="NAME", help="Name for this host.  [default: its host name]")
@click.option("--all", "everything", is_flag=True, help="Also show checks that passed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON of the format leadline.check/1.")
@click.option("--page", type=WrittenPath(dir_okay=False), metavar="FILE", help="Also write an HTML page.")
@out_option("Write the facts to FILE, for --with and --baseline.", path=WrittenPath(dir_okay=False))
def command(
    roles: tuple[str, ...],
    lab: str | None,
    conf: Path | None,
    no_ceph: bool,
    others: tuple[Path, ...],
    baseline: Path | None,
    peers: tuple[str, ...],
    on: tuple[Path, ...],
    destroy: tuple[Path, ...],
    hosts: HostsOptions,
    no_streams: bool,
    name: str | None,
    everything: bool,
    as_json: bool,
    page: Path | None,
    out: Path | None,
) -> int:
    """Check this host and a Ceph cluster for faults and wrong settings, with reasons and remedies.

    Nothing is changed, except a device that --destroy names. The exit code is 3 if an error or a warning was
    found; notes alone leave it 0. Each line names the command that shows the same.

    \b
    leadline check
    leadline check --lab
    leadline check --hosts hosts.yaml -o before.json
    leadline check --on /dev/sdb --on /dev/sdc --on /var/lib/data
    ssh node2 leadline check --no-ceph --json > node2.json; leadline check --with node2.json
    leadline check -o before.json; leadline check --baseline before.json
    """
    from leadline.check.document import as_document, changes, read_facts
    from leadline.check.judge import judge
    from leadline.check.rows import rows
    from leadline.check.view import shown
    from leadline.cli.answer import give
    from leadline.cli.files import write_file

    found, roles_of = _facts_of_all(name, lab, hosts, on, destroy, streams=not no_streams)
    found += echoes(_host_name(name), {peer: peer for peer in peers})
    for path in others:
        found = _joined(found, read_facts(path), path)
    found += [] if no_ceph else _facts_of_cluster(lab, conf)
    checked = judge(found, rows(), roles or _ROLES, roles_of)
    moved = changes(read_facts(baseline), found) if baseline is not None else None
    created = datetime.now(UTC).isoformat(timespec="seconds")
    details = {
        "created": created,
        "roles": list(roles or _ROLES),
        "roles_of": {host: list(own) for host, own in roles_of.items()},
    }
    document, view = as_document(found, checked, details), shown(found, checked, moved)
    if out is not None:
        write_file(out, (json.dumps(document, indent=1) + "\n").encode(), "-o")
    give(check_findings(view, created, everything=True), page, quiet=True)
    if as_json:
        echo_text(json.dumps(document, indent=1))
    else:
        give(check_findings(view, created, everything=everything))
    bad = any(one.state == "out_of_line" and one.row.severity != "note" for one in checked)
    return _EXIT_OUT_OF_LINE if bad else 0


def _facts_of_all(
    name: str | None,
    lab: str | None,
    hosts: HostsOptions,
    on: tuple[Path, ...],
    destroy: tuple[Path, ...],
    *,
    streams: bool,
) -> tuple[list[Fact], Mapping[str, Sequence[str]]]:
    """Of the hosts that were named; else of this one, and of a lab's members. With roles that a host has."""
    if not hosts:
        measured = measure_storage(_host_name(name), on, destroy)
        found = _facts_here(name)
        if lab is not None:
            found += facts_of_members(LabMembers(_lab(lab)), (), named=False, streams=streams)
        return found + measured, {}
    if lab is not None or name is not None or destroy:
        given = "--lab" if lab is not None else "--as" if name is not None else "--destroy"
        raise UsageError(f"{given} and hosts are two questions", "ask one after the other")
    with members_of(hosts) as members:
        own = [word for place in on for word in ("--on", str(place))]
        found = facts_of_members(members, own, named=True, streams=streams, limit_s=_PLACE_S * len(on))
        return found + [no_facts(host, f"it {why}") for host, why in members.gaps.items()], members.roles


def _host_name(name: str | None) -> str:
    """As it is to be called; a lab's member by its name in it, other hosts by their own."""
    return name or os.environ.get(_HOST, "") or platform.node() or "this host"


def _facts_here(name: str | None) -> list[Fact]:
    from leadline.check.reading.devices import device_facts
    from leadline.check.reading.host import host_facts
    from leadline.check.reading.interfaces import interface_facts
    from leadline.mounting.facts import mount_facts

    member, called = os.environ.get(_HOST, ""), _host_name(name)
    # The members of a lab are one machine: each has its own interfaces, and nothing else of its own.
    own = [] if member else [*host_facts(called), *device_facts(called), *mount_facts(called)]
    return [*own, *interface_facts(called)]


def _joined(found: list[Fact], more: Sequence[Fact], path: Path) -> list[Fact]:
    """With the facts of another host; a cluster's are asked now, and not taken from a file."""
    hosts = {fact.subject for fact in found if fact.kind == "host"}
    more = [fact for fact in more if fact.kind in ("host", "device", "interface", "mount")]
    twice = hosts & {fact.subject for fact in more if fact.kind == "host"}
    if twice:
        raise UsageError(f"--with {path}: {', '.join(sorted(twice))} is there already", "give each host once")
    return [*found, *more]


def _facts_of_cluster(lab: str | None, conf: Path | None) -> list[Fact]:
    from leadline.check.reading.cluster import cluster_facts, facts_of_cluster
    from leadline.check.rows import Fact
    from leadline.observe.ceph.client import NotObservableError, connect
    from leadline.observe.hang_guard import check_answers

    keyring = None
    if lab is not None:
        found = _lab(lab)
        conf, keyring = found.record.paths.conf, str(found.record.paths.keyring)
    if os.environ.get("CEPH_CONF"):
        check_answers([os.environ["CEPH_CONF"]])
    named = conf or next(
        (
            place
            for place in (os.environ.get("CEPH_CONF"), "/etc/ceph/ceph.conf")
            if place and Path(place).exists()
        ),
        None,
    )
    if named is None:
        why = "no configuration of a cluster here: name one with --conf, or --no-ceph"
        return [Fact("cluster", "cluster", "health", None, why)]
    try:
        cluster = connect(str(named), None, keyring, deadline_s=5.0)
    except NotObservableError as error:
        return [Fact("cluster", "cluster", "health", None, str(error))]
    try:
        facts = cluster_facts(cluster)
        releases = [str(fact.value) for fact in facts if fact.name == "release" and fact.value]
        one = releases[0] if releases and "," not in releases[0] else None
        return facts + facts_of_cluster(cluster, one)
    finally:
        cluster.close()


def _lab(name: str) -> Lab:
    from leadline import lab

    check_lab_places()
    return lab.open(name)
