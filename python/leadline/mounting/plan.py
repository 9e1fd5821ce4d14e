"""The new mount and the safe order of steps towards it, from facts about the present one, and its lines."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leadline.errors import UsageError
from leadline.escapes import without
from leadline.knowledge.findings import Finding
from leadline.knowledge.pitfalls import HOLDS, assess, kernel_version
from leadline.mounting.facts import MountFacts
from leadline.observe.ceph.client import cluster_name
from leadline.observe.mounts.users import outside_words, unseen_words
from leadline.units import format_count


def plan_lines(plan: MountPlan) -> Iterable[str]:
    """The whole plan, without the configuration itself."""
    facts = plan.facts
    yield f"{facts.mount_point} is {facts.words}, as client.{facts.user}; this plan changes nothing by itself"
    yield ""
    yield "the new mount"
    yield f"  what     {plan.mount.device}"
    yield f"  where    {plan.mount.mount_point}"
    yield "  options"
    width = max(len(option.text) for option in plan.mount.options)
    for option in plan.mount.options:
        yield f"    {option.text:<{width}}  {option.why}"
    yield ""
    yield f"known pitfalls of the kernel client, for kernel {facts.kernel}"
    yield from finding_lines(plan.findings)
    suffered = [finding for finding in plan.present if finding.holds]
    if suffered:
        yield ""
        yield "what the present mount suffers from"
        yield from finding_lines(suffered)
    yield ""
    yield "the safe order"
    for number, step in enumerate(plan.steps, 1):
        yield from _step_lines(f"{number:>3}. ", step)
    for step in plan.back:
        yield ""
        yield from _step_lines("", step)


def finding_lines(findings: Sequence[Finding]) -> Iterable[str]:
    """Those that hold first, then those that cannot be told, then the rest in one line each."""
    order = (True, None, False)
    for finding in sorted(findings, key=lambda item: order.index(item.holds)):
        yield f"  {HOLDS[finding.holds]}: {finding.name} ({finding.evidence})"
        if finding.holds is not False:
            yield f"      {finding.means}"
            yield f"      check: {finding.verify}"
            yield f"      -> {finding.remedy}"
            yield f"      source: {finding.source}"


def _step_lines(label: str, step: Step) -> Iterable[str]:
    indent = " " * len(label) if label else "  "
    yield f"{label}{step.title}"
    if step.words:
        yield f"{indent}{step.words}"
    for command in step.commands:
        yield f"{indent}  {command}"


_MSGR2_KERNEL = (5, 11)
_RANGE = re.compile(r"(.*)\[(\d+)-(\d+)\](.*)")
_HOSTS_MAX = 4096
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:-]*")


@dataclass(frozen=True)
class Option:
    """An option of the new mount, and why it is there."""

    text: str
    why: str


@dataclass(frozen=True)
class NewMount:
    """The kernel client's mount: what, where, and with which options. Holds no key."""

    device: str
    mount_point: str
    options: tuple[Option, ...]

    @property
    def option_text(self) -> str:
        """As `mount -o` takes them."""
        return ",".join(option.text for option in self.options)


@dataclass(frozen=True)
class Role:
    """Hosts that run one service, which is stopped while their mount is changed; "" where none is."""

    name: str
    hosts: tuple[str, ...]
    service: str = ""


@dataclass(frozen=True)
class Step:
    """One thing to do, in words and as commands for a shell on that host."""

    title: str
    commands: tuple[str, ...] = ()
    words: str = ""


@dataclass(frozen=True)
class MountPlan:
    """Everything that `leadline mount plan` prints."""

    facts: MountFacts
    mount: NewMount
    findings: tuple[Finding, ...]
    present: tuple[Finding, ...]
    roles: tuple[Role, ...]
    steps: tuple[Step, ...]
    back: tuple[Step, ...]


def make_plan(facts: MountFacts, roles: Sequence[Role], *, wsync: bool | None = None) -> MountPlan:
    """The plan from ceph-fuse to the kernel client.

    Raises UsageError where the kernel client cannot reach the monitors, or they are not known.
    """
    if facts.client != "fuse":
        raise UsageError(f"{facts.mount_point} is mounted by the kernel client already", "Name a FUSE mount.")
    findings = assess("kernel", facts.kernel, facts.answers, facts.reasons)
    mount = new_mount(facts, findings, wsync=wsync)
    everyone = tuple(roles) or (Role("this host", ("localhost",)),)
    return MountPlan(
        facts=facts,
        mount=mount,
        findings=findings,
        present=assess("fuse", facts.kernel, facts.answers, facts.reasons),
        roles=everyone,
        steps=steps(facts, everyone),
        back=way_back(facts, everyone),
    )


def new_mount(facts: MountFacts, findings: Sequence[Finding], *, wsync: bool | None) -> NewMount:
    """Device and options of the kernel client's mount."""
    second = [address for kind, address in facts.monitors if kind == "v2"]
    first = [address for kind, address in facts.monitors if kind == "v1"]
    speaks_second = kernel_version(facts.kernel) >= _MSGR2_KERNEL
    addresses = second if second and speaks_second else first
    if not addresses:
        if second:
            raise UsageError(
                f"kernel {facts.kernel} does not speak to these monitors, which offer msgr2 only",
                "Boot kernel 5.11 or later, or let the monitors listen on version 1 too (ms_bind_msgr1).",
            )
        why = facts.reasons.get("msgr2_only", "the cluster did not say")
        raise UsageError(f"the monitors' addresses are not known: {why}", "Run it where the cluster answers.")
    options = [Option(_one_option("name", facts.user), "the Ceph user that the present mount has, too")]
    if facts.conf is not None and facts.conf != "/etc/ceph/ceph.conf":
        options.append(
            Option(_one_option("conf", facts.conf), "where mount.ceph looks for the keyring's place")
        )
    if facts.file_system:
        options.append(
            Option(
                _one_option("mds_namespace", facts.file_system),
                "the file system by name, should there ever be a second",
            )
        )
    if addresses is second:
        options.append(
            Option("ms_mode=prefer-crc", "msgr2 with checksums; secure would encrypt, and costs CPU")
        )
    options += _judged_options(facts, findings, wsync)
    options += [
        Option("noatime", "harmless: CephFS keeps no times of reads"),
        Option("_netdev", "mounted after the network is up, unmounted before it goes"),
        Option("nofail", "a cluster that is away does not keep the host from booting"),
    ]
    return NewMount(f"{','.join(addresses)}:{facts.root}", facts.mount_point, tuple(options))


def _one_option(name: str, value: str) -> str:
    """One option: a comma would begin another. Raises UsageError."""
    sound = without(value, ',"', f"the option {name}")
    return f"{name}={sound}"


def _judged_options(facts: MountFacts, findings: Sequence[Finding], wsync: bool | None) -> list[Option]:
    held = {finding.name: finding for finding in findings if finding.holds is not False}
    options = []
    broken = held.get("asynchronous-create-in-a-namespace")
    if wsync or (wsync is None and broken is not None):
        why = "asked for" if broken is None else f"{broken.source}: {HOLDS[broken.holds]} ({broken.evidence})"
        options.append(Option("wsync", f"files are created synchronously; {why}"))
    if facts.answers.get("selinux"):
        options.append(
            Option(
                'context="system_u:object_r:cephfs_t:s0"',
                "one label for all files instead of one question each; take the one of your policy",
            )
        )
    return options


def steps(facts: MountFacts, roles: Sequence[Role]) -> tuple[Step, ...]:
    """The order for every host: one first, verified, then the rest, one at a time."""
    place = shlex.quote(facts.mount_point)
    first = roles[0].hosts[0]
    found = [
        Step(
            "look before anything is touched",
            (
                "modprobe ceph",
                "command -v mount.ceph   # package ceph-common",
                *_keyring_commands(facts),
                f"leadline watch {place} --for 1m   # who uses it",
            ),
            _open_words(facts),
        ),
        *_keyring_steps(facts),
        *_host_steps(facts, first, roles[0]),
        Step(
            f"let {first} work for a day before the next host",
            (f"leadline watch {place} --for 5m", "dmesg | grep -i ceph | tail"),
            "Errors, slow requests or complaints of users: take the way back on this host, and stop here.",
        ),
    ]
    rest = [(host, role) for role in roles for host in role.hosts if (host, role) != (first, roles[0])]
    if rest:
        names = ", ".join(host for host, _ in rest)
        found.append(Step("the rest, one at a time", (), f"The steps of {first}, for each of: {names}."))
        services = {role.service for _, role in rest if role.service and role.service != roles[0].service}
        if services:
            words = "; ".join(f"{role.name}: {role.service}" for role in roles if role.service)
            found[-1] = Step(found[-1].title, (), f"{found[-1].words} Their services: {words}.")
    return tuple(found)


def _keyring_commands(facts: MountFacts) -> list[str]:
    if facts.keyring is None:
        return []
    return [f"ls -l {shlex.quote(facts.keyring)}   # the keyring in force; mode 0600, owned by root"]


def _keyring_steps(facts: MountFacts) -> list[Step]:
    """What mount.ceph needs where it does not find the key by itself, as the present client did."""
    if facts.keyring is not None and facts.keyring == facts.mount_keyring:
        return []
    user, conf = f"client.{facts.user}", facts.conf or "/etc/ceph/ceph.conf"
    takes = f"{facts.mount_keyring}" if facts.mount_keyring else "none"
    words = f"The present client: {facts.keyring_words}. By {conf} mount.ceph takes {takes}."
    if facts.keyring is None:
        file = f"/etc/ceph/{cluster_name(facts.conf)}.{user}.keyring"
        # The file is its owner's alone before the key is in it.
        commands: tuple[str, ...] = (
            shlex.join(("install", "-m", "600", "/dev/null", file)),
            shlex.join(("ceph", "auth", "get", user, "-o", file)),
        )
    else:
        commands = (f"# in {conf}, section [{user}]: keyring = {facts.keyring}",)
    return [Step("let mount.ceph find the key, on every host", commands, words)]


def _host_steps(facts: MountFacts, host: str, role: Role) -> list[Step]:
    place = shlex.quote(facts.mount_point)
    service = shlex.quote(role.service)
    found = []
    if role.service:
        found.append(Step(f"{host}: stop {role.service}", (f"systemctl stop {service}",)))
    found += [
        Step(
            f"{host}: see that nobody is left on the mount",
            (f"fuser -vm {place}",),
            "End what is listed in its own way. No lazy unmount (-l): files would stay on the old mount.",
        ),
        Step(
            f"{host}: unmount ceph-fuse and keep its configuration",
            ("cp -p /etc/fstab /etc/fstab.before-kernel-mount", f"umount {place}"),
            "The umount waits until everything is written. If it says busy, somebody is left.",
        ),
        Step(
            f"{host}: write the new mount's configuration and mount",
            ("# the configuration printed with this plan replaces the line of ceph-fuse", f"mount {place}"),
        ),
        Step(
            f"{host}: verify",
            (
                f"findmnt -t ceph {place}",
                f"leadline mount check {place} --probe",
                f"leadline run quick --target kernel={place} --out after",
            ),
            "The type is ceph, the options are those asked for, new files can be written, and the same "
            "study as before gives no worse values.",
        ),
    ]
    if role.service:
        found.append(Step(f"{host}: start {role.service}", (f"systemctl start {service}",)))
    return found


def way_back(facts: MountFacts, roles: Sequence[Role]) -> tuple[Step, ...]:
    """From the kernel client back to the mount as it is now."""
    place = shlex.quote(facts.mount_point)
    words = ["ceph-fuse", "-n", f"client.{facts.user}"]
    words += ["-c", facts.conf] if facts.conf else []
    words += ["-k", facts.keyring] if facts.keyring else []
    words += [f"--client_fs={facts.file_system}"] if facts.file_system else []
    words += [f"--client_mountpoint={facts.root}", facts.mount_point]
    services = [role.service for role in roles if role.service]
    stop = tuple(f"systemctl stop {shlex.quote(name)}" for name in dict.fromkeys(services))
    start = tuple(command.replace(" stop ", " start ", 1) for command in stop)
    return (
        Step(
            "the way back, on a host that was changed",
            (
                *stop,
                f"umount {place}",
                "mv /etc/fstab.before-kernel-mount /etc/fstab",
                f"{shlex.join(words)}   # or: mount {place}, where fstab had it",
                *start,
            ),
        ),
    )


def _open_words(facts: MountFacts) -> str:
    users = facts.users.users
    if not users:
        seen = "Nobody was seen with anything open on it."
    else:
        shown = [
            f"{user.name} (process {user.pid}, {user.account}: {format_count(len(user.files), 'file')}"
            + "".join(f", {words}" for words in dict.fromkeys(words for words, _ in user.uses))
            + ")"
            for user in users[:20]
        ]
        more = f", and {len(users) - 20} more" if len(users) > 20 else ""
        seen = f"Open on it now: {'; '.join(shown)}{more}."
    doubts = [words for words in (unseen_words(facts.users.unseen), outside_words()) if words]
    return " ".join([seen, *(f"{words[0].upper()}{words[1:]}." for words in doubts)])


def parse_role(text: str) -> Role:
    """`worker=node[1-3],extra:opencast` as a role. Raises UsageError."""
    name, equals, rest = text.partition("=")
    hosts_text, _, service = rest.partition(":")
    if not equals or not name.strip() or not hosts_text:
        raise UsageError(
            f"--role {text!r} is no role", "Write NAME=HOST,HOST[:SERVICE], with ranges as node[1-8]."
        )
    hosts = tuple(host for part in _split(hosts_text) for host in _expand(part, text))
    for word in (*hosts, *([service] if service else [])):
        if not _NAME.fullmatch(word):
            raise UsageError(
                f"--role {text!r}: {word!r} is no name of a host or service",
                "Use letters, digits, . _ - only.",
            )
    return Role(name.strip(), hosts, service)


def _split(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def _expand(part: str, text: str) -> list[str]:
    """`node[08-10]` as node08, node09, node10: as many digits as were written."""
    match = _RANGE.fullmatch(part)
    if match is None:
        return [part]
    low, high = int(match[2]), int(match[3])
    if high < low or high - low >= _HOSTS_MAX:
        raise UsageError(f"--role {text!r}: {part} is no range of hosts", "Write the smaller number first.")
    return [f"{match[1]}{number:0{len(match[2])}d}{match[4]}" for number in range(low, high + 1)]
