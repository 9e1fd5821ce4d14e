"""The same facts are the same finding, by the same bound and with the same remedy, whoever is asked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from test_watch import seen as seen_by_watch
from trace_tables import file_row, files_table, process, tables

from leadline.check.judge import judge
from leadline.check.rows import ROLES as CHECKED_ROLES
from leadline.check.rows import Fact, rows
from leadline.check.view import findings
from leadline.knowledge.findings import Finding
from leadline.knowledge.pitfalls import first_kernel, pitfalls
from leadline.knowledge.tables import shared
from leadline.tracing.figures import shares, speeds, wall_seconds
from leadline.tracing.files import views
from leadline.tracing.rules import apply, finding_of
from leadline.tracing.rules import rules as trace_rules
from leadline.tuning.audit import AuditAsked, SettingSeen, audit
from leadline.tuning.settings import ROLES, SettingPlace, settings
from leadline.verdict.diagnosis.causes import FIGURES, causes
from leadline.verdict.diagnosis.judge import diagnose
from leadline.watch.causes import judge as judge_watch
from leadline.watch.causes import rules as watch_rules
from leadline.watch.figures import WatchFacts, watch_facts

Value = Any
Asked = Callable[[Value], Iterator[Finding]]
RECORDED = [
    Fact.from_json(one)
    for one in json.loads((Path(__file__).parents[1] / "data/knowledge/lab_facts.json").read_text())
]
WATCHED = watch_facts(seen_by_watch()).values
BOUND = {name: one for name, one in shared().items() if one.bound is not None or one.at_most is not None}
COMMITS = {"osds_seen": 4.0, "osd_looks": 9.0, "slowest_osd_share": 1.0, "slowest_osd": "osd.1"}
SLOW = {"slow_osd": "osd.1", "operation_s": 1.0}
IDLE = {"cpu_share": 0.1, "latency_s": 0.001}


def checked(values: Mapping[str, Value], facts: list[Fact]) -> Iterator[Finding]:
    """What `check` says of a host, or another part, of which these facts are otherwise than recorded."""
    (kind,) = {row.kind for row in rows() if row.fact in values}
    others = [one for one in facts if not (one.kind == kind and one.name in (*values, "virtual"))]
    own = [Fact(kind, "node1", name, value) for name, value in {**values, "virtual": False}.items()]
    yield from findings(judge([*others, *own], rows(), CHECKED_ROLES))


def by_check(fact: str, shown: Callable[[Value], Value] = lambda value: value) -> Asked:
    return lambda value: checked({fact: shown(value)}, RECORDED)


def by_audit(name: str, shown: Callable[[Value], str] = str) -> Asked:
    """What `tune audit` says of a setting, for all that it serves."""

    def ask(value: Value) -> Iterator[Finding]:
        setting = settings()[name]
        named = tuple(Finding(cause, "", "", "", share=0.5) for cause in setting.serves)
        versions = {"kernel": "6.1", "ceph": "18.2.4"}
        asked = AuditAsked(versions, ROLES, causes=named, holds=lambda _state, _place: False)
        found = audit({name: setting}, [SettingSeen(setting, SettingPlace(), shown(value), True)], asked)
        yield from (row.finding for row in found.rows if row.shared)

    return ask


def by_diagnose(figures: Callable[[Value], dict[str, Any]]) -> Asked:
    def ask(value: Value) -> Iterator[Finding]:
        found = diagnose([{**dict.fromkeys(FIGURES), **figures(value)}])
        yield from (one.finding for one in (*found.named, *found.behind))

    return ask


def by_watch(values: Callable[[Value], dict[str, Any]]) -> Asked:
    def ask(value: Value) -> Iterator[Finding]:
        facts = WatchFacts({**dict.fromkeys(WATCHED), **values(value)}, (), (), None, "", "")
        found = judge_watch(facts)
        yield from (*found.load, *found.limit)

    return ask


def by_trace(counters: Callable[[Value], dict[str, Any]]) -> Asked:
    def ask(value: Value) -> Iterator[Finding]:
        row = file_row(F_READ_TIME=0.4, F_WRITE_TIME=0.0, F_META_TIME=0.0, **counters(value))
        content = tables(processes=(process(),), files=files_table([row]))
        wall_s = wall_seconds(content)
        with views(content, shares(content, wall_s), speeds(content, wall_s)) as connection:
            yield from map(finding_of, apply(connection, trace_rules()))

    return ask


def small_reads(value: Value) -> dict[str, Any]:
    return {"READS": 2000, "BYTES_READ": 2000 * int(value), "CONSEC_READS": 1999, "SEQ_READS": 1999}


def on_or_off(value: Value) -> str:
    return "on" if value is True else "off"


# Who asks for each shared fact, by the table that names it: a value of the fact -> what is found.
SAME: dict[str, dict[str, Asked]] = {
    "port_full": {
        "watch": by_watch(lambda x: {"wire_used_share": x}),
        "diagnose": by_diagnose(lambda x: {"link_share": x}),
    },
    "cpus_full": {
        "watch": by_watch(lambda x: {"cpu_busy_share": x}),
        "diagnose": by_diagnose(lambda x: {"cpu_share": x}),
    },
    "client_thread_full": {
        "watch": by_watch(lambda x: {"client_thread_share": x}),
        "diagnose": by_diagnose(lambda x: {"client_thread_share": x}),
    },
    "slow_osd_s": {
        "watch": by_watch(lambda x: {**COMMITS, "slowest_osd_s": x, "median_osd_s": 0.001}),
        "diagnose": by_diagnose(lambda x: {**SLOW, "slow_osd_factor": 20.0, "slow_osd_commit_s": x}),
    },
    "slow_osd_times": {
        "watch": by_watch(lambda x: {**COMMITS, "slowest_osd_s": 0.05 * x, "median_osd_s": 0.05}),
        "diagnose": by_diagnose(lambda x: {**SLOW, "slow_osd_factor": x, "slow_osd_commit_s": 0.05 * x}),
    },
    "small_request": {
        "watch": by_watch(lambda x: {"reads_per_s": 100.0, "mean_read_bytes": x, "read_share": 0.9}),
        "trace": by_trace(small_reads),
    },
    "governor": {
        "check": by_check("cpu_governor"),
        "audit": by_audit("cpufreq-governor"),
        "diagnose": by_diagnose(lambda x: {"governor": x, **IDLE}),
    },
    "wake_us": {
        "check": by_check("cpu_wake_us"),
        "audit": by_audit("cpuidle-max-latency"),
        "diagnose": by_diagnose(lambda x: {"wake_s": x / 1e6, "cpu_share": 0.1, "latency_s": x / 5e6}),
    },
    "iommu": {
        "check": by_check("iommu", lambda x: x if x == "none" else "translated"),
        "audit": by_audit("iommu", lambda x: "pt" if x == "none" else "nopt"),
        "diagnose": by_diagnose(lambda x: {"addresses_translated": float(x != "none"), "bytes_per_s": 3e9}),
    },
    "pid_max": {"check": by_check("pid_max"), "audit": by_audit("kernel.pid_max")},
    "rmem_max": {"check": by_check("rmem_max"), "audit": by_audit("net.core.rmem_max")},
    "wmem_max": {"check": by_check("wmem_max"), "audit": by_audit("net.core.wmem_max")},
    "tcp_sack": {"check": by_check("tcp_sack"), "audit": by_audit("net.ipv4.tcp_sack")},
    "tcp_timestamps": {"check": by_check("tcp_timestamps"), "audit": by_audit("net.ipv4.tcp_timestamps")},
    "backlog": {"check": by_check("netdev_max_backlog"), "audit": by_audit("net.core.netdev_max_backlog")},
    "sent_again": {
        "check": by_check("tcp_sent_again_share"),
        "diagnose": by_diagnose(lambda x: {"resent_share": 3 * x, "resent_per_s": 100.0}),
    },
    "segmentation": {"check": by_check("segmentation_offload"), "audit": by_audit("tso", on_or_off)},
    "receive_offload": {"check": by_check("receive_offload"), "audit": by_audit("gro", on_or_off)},
    "duplex": {
        "check": by_check("duplex"),
        "diagnose": by_diagnose(lambda x: {"half_duplex": float(x != "full")}),
    },
    "nfs_request": {
        "audit": by_audit("nfs-rsize", lambda x: str(int(x))),
        "diagnose": by_diagnose(
            lambda x: {"behind_server": 1.0, "request_bytes": 1e9, "transfer_bytes": float(x)}
        ),
    },
    "pgs_per_osd": {
        "check": by_check("pgs_per_osd"),
        "diagnose": by_diagnose(
            lambda x: {"groups_per_osd": x, "loaded_osd_factor": 9.0, "chance_factor": 1.0}
        ),
    },
    "osd_memory": {"check": by_check("osd_memory_target"), "audit": by_audit("osd_memory_target")},
    "mds_cache": {"check": by_check("cache_limit_bytes"), "audit": by_audit("mds_cache_memory_limit")},
    "mclock_hdd": {
        "check": by_check("mclock_hdd_iops"),
        "audit": by_audit("osd_mclock_max_capacity_iops_hdd"),
    },
    "mclock_ssd": {
        "check": by_check("mclock_ssd_iops"),
        "audit": by_audit("osd_mclock_max_capacity_iops_ssd"),
    },
    "min_alloc_size": {"check": by_check("min_alloc_size"), "audit": by_audit("bluestore_min_alloc_size")},
}
# What a cause sees by its effect and not by the fact itself, so that only its remedy is the same.
BY_EFFECT = (
    *(("mds_cache", "diagnose"), ("min_alloc_size", "diagnose")),
    *(("nconnect", "diagnose"), ("nconnect", "audit")),
)


def named_by() -> dict[str, set[str]]:
    """The tables that name a shared fact, as an entry's or in a condition."""
    found: dict[str, set[str]] = {}
    texts: dict[str, list[tuple[tuple[str, ...], str]]] = {
        "check": [(row.shared, "") for row in rows()],
        "diagnose": [(one.shared, one.seen) for one in causes()],
        "watch": [(one.shared, one.seen) for one in watch_rules()],
        "trace": [(one.shared, one.seen) for one in trace_rules()],
        "audit": [((told.shared,), "") for one in settings().values() for told in (*one.advice, *one.danger)],
        "mounts": [(one.shared, "") for one in pitfalls()],
    }
    for table, entries in texts.items():
        for own, condition in entries:
            for name in (*own, *re.findall(r"\$(\w+)", condition)):
                found.setdefault(name, set()).add(table)
    return found


def test_every_bound_that_several_tables_name_is_asked_of_all_of_them_here() -> None:
    named = {name: tables for name, tables in named_by().items() if name in BOUND}
    asked = {name: set(askers) for name, askers in SAME.items()}
    for name, table in BY_EFFECT:
        asked.setdefault(name, set()).add(table)
    assert {name: tables for name, tables in named.items() if len(tables) > 1} == asked


def test_no_shared_fact_is_named_by_nobody() -> None:
    assert set(shared()) - set(named_by()) <= {"nearly_full"}


def sides(name: str) -> Iterator[tuple[Value, bool]]:
    """Values of a fact on both sides of each bound, and whether there is something to find."""
    fact = shared()[name]
    if fact.one_of is not None:
        yield fact.one_of[0], False
        yield {str: "powersave", bool: False, int: 0}[type(fact.one_of[0])], True
    for bound, below in ((fact.at_least, True), (fact.at_most, False)):
        if bound is not None:
            step = max(1, bound // 100) if isinstance(bound, int) else bound / 100
            yield from ((bound + step * x, (x < 0) == below) for x in (-1, 1))


CASES = [(name, value, out) for name in SAME for value, out in sides(name)]


@pytest.mark.parametrize(("name", "value", "out"), CASES)
def test_the_same_fact_is_the_same_finding_for_all_who_ask(name: str, value: Value, out: bool) -> None:
    said = {table: [one for one in ask(value) if names(one, name)] for table, ask in SAME[name].items()}
    assert {table: bool(found) for table, found in said.items()} == dict.fromkeys(SAME[name], out)
    remedies = {one.remedy for found in said.values() for one in found}
    assert len(remedies) <= 1
    settings_named = {one.setting for found in said.values() for one in found if one.setting}
    assert len(settings_named) <= 1


def names(one: Finding, name: str) -> bool:
    """A number alone is named in conditions only: its entries are known by the remedy that they share."""
    alone = {"slow_osd_s": "slow_osd_times", "small_request": "small_reads"}
    return alone.get(name, name) in one.shared


def test_the_recorded_facts_are_the_same_findings_in_check_and_in_audit() -> None:
    both = {name for name, askers in SAME.items() if {"check", "audit"} <= set(askers)}
    values = {
        (name, fact.value)
        for row in rows()
        for name in both.intersection(row.shared)
        for fact in RECORDED
        if (row.kind, row.fact) == (fact.kind, fact.name) and fact.value is not None
    }
    assert len(values) >= 10
    said = {
        table: {name for name, value in values if any(names(one, name) for one in SAME[name][table](value))}
        for table in ("check", "audit")
    }
    out = {"pid_max", "osd_memory"}
    assert said == {"check": out, "audit": out}


def test_kernels_from_which_on_something_holds_are_the_same_in_settings_and_pitfalls() -> None:
    known = settings()
    by_default = first_kernel("asynchronous-create-default")
    assert by_default == known["nowsync"].was[0].until == known["wsync"].was[0].until
    assert first_kernel("stays-blocklisted") == known["recover_session"].valid[0].since
    (protocol,) = (one for one in pitfalls() if one.name == "second-protocol-only")
    assert protocol.kernel_before == known["ms_mode"].valid[0].since
    assert first_kernel("asynchronous-create-in-a-namespace") == known["nowsync"].refused[0].since


def test_no_advice_that_holds_is_out_of_line_for_a_check() -> None:
    for row in rows():
        if row.setting and row.one_of is not None:
            told = [one.value for one in settings()[row.setting].advice if one.holds and not one.shared]
            assert set(told) <= set(row.one_of), row.name


def test_every_setting_that_a_finding_names_is_one() -> None:
    named = {
        one.setting
        for one in (*rows(), *causes(), *watch_rules(), *trace_rules(), *pitfalls(), *shared().values())
    }
    assert named - {""} <= set(settings())
