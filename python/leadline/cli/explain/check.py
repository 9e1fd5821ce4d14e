"""`leadline check`: is every part of this host, of a lab's hosts and of a cluster what it should be?"""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leadline.cli.console import echo, echo_text
from leadline.cli.explain.check_storage import measure_storage, print_storage, storage_options
from leadline.cli.explain.paragraphs import say
from leadline.cli.machine.lab_targets import check_lab_places, lab_option
from leadline.cli.options import out_option
from leadline.cli.paths import AskedPath
from leadline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from leadline.check.document import FactChange
    from leadline.check.facts import Fact
    from leadline.check.judged import Checked
    from leadline.check.rows import Row
    from leadline.lab import Lab

_ROLES = ("mon", "osd", "mds", "gateway", "client")
_EXIT_OUT_OF_LINE = 3
_MEMBER_S = 30.0
_SHOWN = 6  # parts of one line
_HOST = "LEADLINE_LAB_HOST"  # set by `leadline lab exec`


@click.command(short_help="Say which part of host, network and cluster is not what it should be")
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice(_ROLES),
    help="What this host is; again for more.  [default: all of them]",
)
@lab_option("Each host and client of a lab, and its cluster: of the only lab, or of NAME.")
@click.option(
    "--conf",
    type=AskedPath(dir_okay=False),
    help="Ceph's configuration of the cluster to ask.  [default: $CEPH_CONF, or /etc/ceph/ceph.conf]",
)
@click.option("--no-ceph", is_flag=True, help="Ask no cluster.")
@click.option(
    "--with",
    "others",
    multiple=True,
    type=AskedPath(exists=True, dir_okay=False),
    metavar="FILE",
    help="Facts of another host, which it wrote with -o: hosts are compared; again for more.",
)
@click.option(
    "--baseline",
    type=AskedPath(exists=True, dir_okay=False),
    metavar="FILE",
    help="Say what is otherwise than when this was written with -o.",
)
@click.option(
    "--peer",
    "peers",
    multiple=True,
    metavar="HOST",
    help="Send echoes to another host: loss, round trip, whether packets of full size pass; again for more.",
)
@storage_options
@click.option("--no-streams", is_flag=True, help="With --lab: no iperf3 between its members.")
@click.option("--all", "everything", is_flag=True, help="Print what is as it should be, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON of the format leadline.check/1.")
@out_option("A file to keep it in, for --with and --baseline.", path=AskedPath(dir_okay=False))
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
    no_streams: bool,
    everything: bool,
    as_json: bool,
    out: Path | None,
) -> int:
    """Say which part of this host and of a Ceph cluster is not what it should be, why, and what to do.

    It changes nothing but what --destroy names. The exit code is 3 where something serious, or a warning,
    was found; notes alone leave it 0. Each line names the command that shows the same.

    \b
    leadline check
    leadline check --lab
    leadline check --on /dev/sdb --on /dev/sdc --on /var/lib/data
    ssh node2 leadline check --no-ceph --json > node2.json; leadline check --with node2.json
    leadline check -o before.json; leadline check --baseline before.json
    """
    from leadline.check.document import as_document, changes, read_facts
    from leadline.check.judged import judge
    from leadline.check.rows import rows

    measured = measure_storage(_host_name(), on, destroy)
    found = _facts_of_lab(lab, streams=not no_streams) if lab is not None else _facts_here()
    found += measured
    found += _echoes(platform.node() or "this host", {peer: peer for peer in peers}, [])
    for path in others:
        found = _joined(found, read_facts(path), path)
    found += [] if no_ceph else _facts_of_cluster(lab, conf)
    checked = judge(found, rows(), roles or _ROLES)
    moved = changes(read_facts(baseline), found) if baseline is not None else None
    details = {"created": datetime.now(UTC).isoformat(timespec="seconds"), "roles": list(roles or _ROLES)}
    document = as_document(found, checked, details)
    if out is not None:
        from leadline.cli.files import write_file

        write_file(out, (json.dumps(document, indent=1) + "\n").encode(), "-o")
    if as_json:
        echo_text(json.dumps(document, indent=1))
    else:
        _print(found, checked, moved, everything=everything)
        print_storage(measured)
    bad = any(one.state == "out_of_line" and one.row.severity != "note" for one in checked)
    return _EXIT_OUT_OF_LINE if bad else 0


def _host_name() -> str:
    """A lab's member by its name in it, other hosts by their own."""
    return os.environ.get(_HOST, "") or platform.node() or "this host"


def _facts_here() -> list[Fact]:
    from leadline.check.reading.devices import device_facts
    from leadline.check.reading.host import host_facts
    from leadline.check.reading.interfaces import interface_facts

    member, name = os.environ.get(_HOST, ""), _host_name()
    # The members of a lab are one machine: each has its own interfaces, and nothing else of its own.
    own = [] if member else [*host_facts(name), *device_facts(name)]
    return [*own, *interface_facts(name)]


def _joined(found: list[Fact], more: Sequence[Fact], path: Path) -> list[Fact]:
    """With the facts of another host; a cluster's are asked now, and not taken from a file."""
    hosts = {fact.subject for fact in found if fact.kind == "host"}
    more = [fact for fact in more if fact.kind in ("host", "device", "interface")]
    twice = hosts & {fact.subject for fact in more if fact.kind == "host"}
    if twice:
        raise UsageError(f"--with {path}: {', '.join(sorted(twice))} is there already", "give each host once")
    return [*found, *more]


def _facts_of_cluster(lab: str | None, conf: Path | None) -> list[Fact]:
    from leadline.check.facts import Fact
    from leadline.check.reading.cluster import cluster_facts
    from leadline.observe.answering import check_answers
    from leadline.observe.ceph.client import NotObservableError, connect

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
        return cluster_facts(cluster)
    finally:
        cluster.close()


def _lab(name: str) -> Lab:
    from leadline import lab

    check_lab_places()
    return lab.open(name)


def _facts_of_lab(name: str, *, streams: bool) -> list[Fact]:
    """This machine's facts, and each member's interfaces of a lab with hosts, read in its own network."""
    from leadline.check.facts import Fact

    found, record = _facts_here(), _lab(name).record
    if record.network is None:
        return found
    for member in record.network.topology.members:
        words = ["lab", "exec", member.name, "--lab", record.name, "--", *_ourselves()]
        asked = [*_ourselves(), *words, "check", "--no-ceph", "--json"]
        try:
            done = subprocess.run(asked, capture_output=True, check=False, timeout=_MEMBER_S)
            facts = json.loads(done.stdout)["facts"]
        except (OSError, ValueError, KeyError, subprocess.SubprocessError):
            why = f"it does not answer: {shlex.join(asked[-6:])}"
            found.append(Fact("interface", f"{member.name}/all", "mtu", None, why))
            continue
        found += [Fact.from_json(fact) for fact in facts]
    addresses = {
        member.name: record.network.address(member.name) for member in record.network.topology.members
    }
    for host in addresses:
        peers = {address: peer for peer, address in addresses.items() if peer != host}
        entered = [*_ourselves(), "lab", "exec", host, "--lab", record.name, "--"]
        found += _echoes(host, peers, entered)
    return found + (_streams(record.name, addresses) if streams else [])


def _streams(lab: str, addresses: Mapping[str, str]) -> list[Fact]:
    """Along every way between members, one after the other, so that none takes another's rate."""
    from leadline.check.measured.streams import SECONDS, stream_facts

    ways = [(host, peer) for host in addresses for peer in addresses if peer != host]
    seconds = len(ways) * (2 * SECONDS + 2)
    echo(f"streams along {len(ways)} ways, about {seconds} s; --no-streams leaves them out", err=True)

    def on(host: str, words: Sequence[str]) -> list[str]:
        return [*_ourselves(), "lab", "exec", host, "--lab", lab, "--", *words]

    return [fact for way in ways for fact in stream_facts(way, addresses[way[1]], on)]


def _echoes(host: str, peers: Mapping[str, str], entered: list[str]) -> list[Fact]:
    """From a host, or from here, to peers (name by address). Nobody waits for long for one that is silent."""
    from leadline.check.measured.echoes import path_facts

    if not peers:
        return []
    asked = [*entered, sys.executable, "-m", "leadline.check.measured.echoes", *peers]
    try:
        done = subprocess.run(asked, capture_output=True, check=True, timeout=_MEMBER_S * len(peers))
        answers = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        answers = {peer: {"error": f"echoes could not be sent: {type(error).__name__}"} for peer in peers}
    return path_facts(host, peers, answers)


def _ourselves() -> list[str]:
    return [sys.executable, "-m", "leadline"]


def _print(
    facts: Sequence[Fact], checked: Sequence[Checked], moved: list[FactChange] | None, *, everything: bool
) -> None:
    from leadline.check.rows import words_of

    bad = [one for one in checked if one.state == "out_of_line"]
    unknown = [one for one in checked if one.state == "unknown"]
    fine = len(checked) - len(bad) - len(unknown)
    parts = len({(fact.kind, fact.subject) for fact in facts})
    echo(_answer(bad, len(checked), parts))
    for row, ones in _by_row(bad).items():
        echo()
        say(f"{row.severity.upper()}  {row.title}: {_of_whom(ones)}")
        say(f"  {row.why}")
        say(f"  Do: {row.remedy}")
        say(f"  See: {row.verify}   [{row.source}]")
    if moved is not None:
        echo()
        echo(f"Otherwise than before: {len(moved)}" if moved else "Nothing is otherwise than before.")
        for change in moved:
            before, after = (words_of(value, change.name) for value in (change.before, change.after))
            say(f"  {change.subject}  {change.name}: {before} -> {after}")
    if unknown:
        echo()
        echo(f"Could not be read ({len(unknown)}):")
        for reason, parts_of in _by_reason(unknown).items():
            say(f"  {', '.join(parts_of)}: {reason}")
    if everything:
        echo()
        echo(f"As it should be ({fine}):")
        for one in checked:
            if one.state == "fine":
                say(f"  {one.subject}  {one.row.title}: {words_of(one.seen, one.row.fact)}")
    elif fine:
        echo()
        echo(f"{fine} are as they should be; --all lists them.")


def _answer(bad: Sequence[Checked], count: int, parts: int) -> str:
    if not bad:
        return f"Nothing of {count} things that were looked at on {parts} parts is out of line."
    words: dict[str, int] = {}
    for one in bad:
        words[one.row.severity] = words.get(one.row.severity, 0) + 1
    kinds = ", ".join(f"{number} {severity}" for severity, number in words.items())
    return f"{len(bad)} of {count} things that were looked at on {parts} parts are out of line: {kinds}."


def _by_row(bad: Sequence[Checked]) -> dict[Row, list[Checked]]:
    found: dict[Row, list[Checked]] = {}
    for one in bad:
        found.setdefault(one.row, []).append(one)
    return found


def _of_whom(ones: Sequence[Checked]) -> str:
    """Each part with what was seen of it; of many the first, and the host that all ways of them share."""
    from leadline.check.rows import words_of

    shown = [f"{one.subject} {words_of(one.seen, one.row.fact)}" for one in ones[:_SHOWN]]
    more = f" and {len(ones) - _SHOWN} more" if len(ones) > _SHOWN else ""
    ends = [set(one.subject.split(" > ")) for one in ones]
    shared = set.intersection(*ends) if len(ones) > 1 and ones[0].row.kind == "path" else set()
    common = f"; all of them begin or end at {', '.join(sorted(shared))}" if shared else ""
    return f"{', '.join(shown)}{more}; expected {ones[0].expected}{common}"


def _by_reason(unknown: Sequence[Checked]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in unknown:
        found.setdefault(one.reason, []).append(f"{one.row.title} of {one.subject}")
    return found
