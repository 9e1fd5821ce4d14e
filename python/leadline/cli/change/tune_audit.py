"""`leadline tune audit`: what is dangerous, obsolete or worth trying, and what to prove first."""

from __future__ import annotations

import functools
import json
import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leadline.cli.change.audit_view import AuditedWork, work_of
from leadline.cli.change.tune_reach import named_lab, settings_option, system_of
from leadline.cli.console import echo_text
from leadline.cli.machine.lab_targets import lab_option
from leadline.cli.measure.hosts_options import reach_options
from leadline.cli.options import AskedPath
from leadline.errors import TuningError, UsageError
from leadline.tuning.settings import ROLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from leadline.cli.change.audit_view import AuditShown
    from leadline.cli.measure.hosts_options import HostsOptions
    from leadline.hosts.workers.request import HostsAsked
    from leadline.tuning.audit import AuditAsked
    from leadline.tuning.settings import Role, Setting
    from leadline.tuning.system import TuningSystem
    from leadline.tuning.validity import Versions

_EXIT_DANGEROUS = 3


@click.command(short_help="Show settings that are dangerous, obsolete or worth trying here")
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice(ROLES),
    help="Role of this host, or of hosts whose --hosts file names none. Repeat for several.  [default: all]",
)
@lab_option("The cluster and hosts of a lab. NAME is the lab; without it, the only one.")
@reach_options
@click.option(
    "--conf",
    type=AskedPath(dir_okay=False),
    help="ceph.conf of the cluster.  [default: $CEPH_CONF, or /etc/ceph/ceph.conf]",
)
@click.option("--no-ceph", is_flag=True, help="Do not connect to a cluster.")
@click.option(
    "--for",
    "work",
    metavar="STUDY|RESULT",
    help="For this workload. For a result, remedies of its bottleneck come first.",
)
@settings_option
@click.option("--all", "everything", is_flag=True, help="Show every row, also settings that cannot be read.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON of the format leadline.audit/1.")
def command(
    roles: tuple[Role, ...],
    lab: str | None,
    hosts: HostsOptions,
    conf: Path | None,
    no_ceph: bool,
    work: str | None,
    own: Path | None,
    everything: bool,
    as_json: bool,
) -> int:
    """Read every setting of this host and its cluster. Show what is dangerous, obsolete, or worth trying.

    Nothing is changed. A setting is worth trying if it can remedy the bottleneck of the RESULT of --for, or
    if advice with a valid source says so. With --hosts, those hosts are read instead of this one, and
    differences among them are shown; the cluster is read once, from here. The exit code is 3 if a dangerous
    setting is in force anywhere.

    \b
    leadline tune audit --role client
    leadline tune audit --hosts hosts.yaml
    leadline tune audit --lab --for leadline-media-20260131-120000
    """
    from leadline.cli.change.audit_view import asked_of, print_audit
    from leadline.tuning.fleet import audit_json
    from leadline.tuning.settings import settings_with

    if no_ceph and (lab is not None or conf is not None):
        raise UsageError("--no-ceph and a cluster are two answers", "leave one of them out")
    if hosts and lab is not None:
        raise UsageError("--lab and --hosts are two questions", "ask one after the other")
    asked_hosts = asked_of(hosts) if hosts else None
    known = settings_with(own)
    asked_work = work_of(work)
    named = named_lab(lab)
    name = None if named is None else named.record.name
    options, target = _same(name, conf, own), f" --lab {shlex.quote(name)}" if name else " --target NAME=PATH"
    with system_of(_conf(conf, no_ceph=no_ceph), known=known, lab=named) as system:
        no_cluster = "" if no_ceph else _no_cluster(system)
        ask = _Ask(known, system, roles, asked_work, not no_ceph)
        shown = ask.of_here() if asked_hosts is None else ask.of_hosts(asked_hosts, own)
    if as_json:
        causes = [one.name for one in asked_work.causes]
        details = {"causes": causes, "for": work, "cluster_problem": no_cluster or None}
        echo_text(json.dumps({**audit_json(shown.found, shown.versions, shown.hosts), **details}, indent=1))
    else:
        shown = replace(shown, no_cluster=no_cluster, options=options, target=target)
        print_audit(shown, everything=everything)
    return _EXIT_DANGEROUS if shown.found.dangerous else 0


def _same(lab: str | None, conf: Path | None, own: Path | None) -> str:
    """The options by which `leadline tune apply` means the same system and settings."""
    files = {"--conf": conf if lab is None else None, "--settings": own}
    given = {"--lab": lab, **{option: file and file.absolute() for option, file in files.items()}}
    return "".join(f" {option} {shlex.quote(str(value))}" for option, value in given.items() if value)


def _conf(conf: Path | None, *, no_ceph: bool) -> Path | None:
    """As `check` has it; a file that is not there is a cluster that cannot be asked."""
    if no_ceph or conf is not None:
        return conf
    named = os.environ.get("CEPH_CONF")
    return Path(named) if named else None


def _no_cluster(system: TuningSystem) -> str:
    """Why there is no cluster to ask; "" where there is one."""
    try:
        system.around.cluster()
    except TuningError as error:
        return error.message
    return ""


@dataclass(frozen=True)
class _Ask:
    """Who is asked for what: `with_ceph` the cluster, too. One that does not answer has its defaults."""

    known: Mapping[str, Setting]
    system: TuningSystem
    roles: tuple[Role, ...]
    work: AuditedWork
    with_ceph: bool

    def of_here(self) -> AuditShown:
        """This host, or a lab's, and the cluster."""
        from leadline.cli.change.audit_view import AuditShown
        from leadline.tuning.audit import audit
        from leadline.tuning.system import read_settings_here

        versions = self._versions()
        wanted = [one for one in self._meant() if self.with_ceph or not one.of_cluster]
        seen = read_settings_here(self.system, wanted, versions)
        found = audit({one.name: one for one in wanted}, seen, self._asked(versions))
        return AuditShown(found, self.work, versions)

    def of_hosts(self, hosts: HostsAsked, own: Path | None) -> AuditShown:
        """Other hosts, each by itself, and the cluster once, from here."""
        from leadline.cli.change.audit_view import AuditShown, read_hosts
        from leadline.tuning.fleet import audit_hosts
        from leadline.tuning.remote_audit import question
        from leadline.tuning.settings import own_text
        from leadline.tuning.system import read_settings_here

        versions = self._versions()
        del versions["kernel"]  # this host's, which is none of those that are meant
        wanted = [one for one in self._meant() if self.with_ceph and one.of_cluster]
        cluster = read_settings_here(self.system, wanted, versions)
        text = "" if own is None else own_text(own)
        asking = question(text, versions.get("ceph", ""))
        read = read_hosts(hosts, asking, self.roles or ROLES, self.known)
        of_hosts = [one for one in self.known.values() if not one.of_cluster]
        known = {one.name: one for one in (*of_hosts, *wanted)}
        found = audit_hosts(known, read, cluster, self._asked(versions))
        kernels = {one.versions["kernel"] for one in read if not one.problem}
        if len(kernels) == 1:
            versions["kernel"] = kernels.pop()
        return AuditShown(found, self.work, versions, read)

    def _versions(self) -> dict[str, str]:
        return dict(self.system.versions()) if self.with_ceph else {"kernel": self.system.kernel()}

    def _meant(self) -> list[Setting]:
        return [one for one in self.known.values() if set(one.roles) & set(self.roles or ROLES)]

    def _asked(self, versions: Versions) -> AuditAsked:
        from leadline.tuning.audit import AuditAsked
        from leadline.tuning.surroundings import holds

        state = functools.cache(lambda name, place: holds(name, self.system.around, place))
        return AuditAsked(versions, self.roles or ROLES, self.work.directions, self.work.causes, state)
