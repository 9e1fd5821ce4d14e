"""`leadline tune search`: proposals are measured beside the default, and the best is proved."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from leadline.cli.change.tune_reach import settings_option, state_option, way_option
from leadline.cli.measure.study_options import KnownServers, StudyRequest, unbounded_study_options
from leadline.cli.options import (
    AskedPath,
    AskedUnlessValues,
    complete_study,
    grace_option,
    out_option,
    place_for,
    quiet_option,
    require_trust,
    trust_option,
)
from leadline.errors import UsageError
from leadline.tuning.settings import PriceKind
from leadline.units import quoted


@click.command(short_help="Search values of settings for a study, and prove the best")
@click.argument("study", required=False, default="", shell_complete=complete_study)
@click.option(
    "--space",
    "spaces",
    multiple=True,
    type=AskedUnlessValues("audit"),
    metavar="NAME=lo..hi|NAME=a|b|FILE|audit",
    help="Values to try: a range (sizes by factors), a list, a YAML file of such lines, or "
    "`audit`: what `leadline tune audit --for` recommends. Repeat for several settings.",
)
@click.option(
    "--budget", metavar="TIME", help="Time limit of the whole. At least 30 % is kept for the proof."
)
@click.option(
    "--bound",
    "bounds",
    multiple=True,
    metavar="LATENCY=TIME",
    help="Latency limit of every trial, for example p99=20ms: p50, p95, p99, p99.9, p100 or mean.",
)
@click.option("--proposals", type=click.IntRange(1, 500), help="Highest number of proposals.")
@click.option(
    "--tries",
    type=click.IntRange(1, 20),
    default=2,
    show_default=True,
    help="Blocks of a proposal that is not clearly worse.",
)
@click.option(
    "--compare-random",
    is_flag=True,
    help="Also run a random search of as many proposals, in turns. That doubles the time, or "
    "halves the proposals.",
)
@click.option(
    "--for", "work", metavar="RESULT", help="With --space audit: the result whose bottleneck to remedy."
)
@unbounded_study_options
@way_option
@settings_option
@click.option(
    "--allow",
    "allowed",
    multiple=True,
    type=click.Choice(get_args(PriceKind)),
    help="Also try settings with a risk to integrity, durability or security.",
)
@out_option()
@state_option
@click.option("--resume", type=AskedPath(), metavar="DIR", help="Continue this search, or its proof.")
@trust_option
@grace_option
@quiet_option
def command(
    study: str,
    spaces: tuple[str, ...],
    budget: str | None,
    bounds: tuple[str, ...],
    proposals: int | None,
    tries: int,
    compare_random: bool,
    work: str | None,
    targets: tuple[str, ...],
    sets: tuple[str, ...],
    blocks: int | None,
    seed: int | None,
    lab: str | None,
    servers: KnownServers,
    ignored: tuple[str, ...],
    way: str | None,
    own: Path | None,
    allowed: tuple[str, ...],
    out: Path | None,
    state: Path | None,
    resume: Path | None,
    trusted: bool,
    grace: str,
    quiet: bool,
) -> int:
    """Search settings that make the workloads of STUDY fastest on one target, and prove the best.

    Each proposal is measured in blocks next to the default; clearly worse ones stop after the first block.
    The best is measured again (A B B A), and only that proof counts. Everything is reverted at the end; after
    a crash: leadline undo DIR.

    \b
    leadline tune search streaming --lab --space client_readahead_max_bytes=128k..64M --budget 20m
    leadline tune search quick --target 'a=cephfs:///dir' --space space.yaml --budget 2h --bound p99=20ms
    leadline tune search --resume leadline-search-quick-20260131-120000
    """
    from leadline.cli.change.searching.conduct import SearchWords, conclude, go_on, start

    if resume is not None:
        others = (study, spaces, budget, bounds, proposals, compare_random, work, targets, sets, blocks, lab)
        _refuse_beside_resume(resume, (*others, seed is not None, servers, way, own, allowed, out, state))
        seen = require_trust(resume, "change the settings that it names", trusted=trusted)
        return conclude(resume, lambda stop: go_on(resume, seen, stop, quiet=quiet))
    if not study or not spaces or budget is None:
        raise UsageError(
            "a search needs a study, a space and a budget",
            "try: leadline tune search quick --lab --space client_oc_size=16M..1G --budget 20m",
        )
    path = place_for(out, f"search-{Path(study).stem}")
    if path.exists():
        raise UsageError(
            f"{path} exists already", f"go on with: leadline tune search --resume {quoted(path)}"
        )
    limits = (proposals, tries, compare_random, blocks)
    words = SearchWords(spaces, budget, bounds, *limits, work or study, way, allowed, grace, own, state)
    changed = (*sets, "compare.base=without")
    plan_of = StudyRequest(study, targets, changed, 1, seed, lab=lab, servers=servers, ignored=ignored)
    asked = words.checked()
    return conclude(path, lambda stop: start(plan_of, asked, path, stop, quiet=quiet))


def _refuse_beside_resume(resume: Path, others: tuple[object, ...]) -> None:
    if any(others):
        raise UsageError(
            "--resume goes on with a search as it was asked for: it takes no study, space or target",
            f"write: leadline tune search --resume {quoted(resume)}",
        )
