"""What `leadline run` shows while it runs: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from leadline import units
from leadline.cli.console import make_console

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from leadline.plan.model import Plan, PlannedCell, Trial
    from leadline.run.model import Display
    from leadline.store.tables import TrialRow


@contextmanager
def make_display(quiet: bool) -> Iterator[Display]:
    """The display for standard error: progress is for people, results go to standard output."""
    console = make_console(stderr=True)
    if quiet:
        yield Quiet(console)
    elif console.is_terminal:
        with Live(console) as live:
            yield live
    else:
        yield Plain(console)


class Quiet:
    """Errors only."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._kinds: dict[str, str] = {}

    def begin(self, plan: Plan, remaining: int) -> None:
        """Nothing."""

    def trial(self, trial: Trial, cell: PlannedCell) -> None:
        """Nothing."""

    def grown(self, trials: Sequence[Trial]) -> None:
        """Nothing."""

    def progress(self, message: Mapping[str, Any]) -> None:
        """Nothing."""

    def finished(self, row: TrialRow) -> None:
        """What failed; every display says so once, with all else that it says of the trial."""
        if row.state != "complete":
            self.say(f"{row.trial} {row.cell}: {row.state}: {row.error}")

    def say(self, text: str) -> None:
        """One line."""
        self._console.print(text, markup=False)


class TimeLeft:
    """How long what is left takes: a cell's trials as long as those of it that ended took, on average; those
    of a cell that has none as planned, corrected by how long all that ended took against their plan.
    """

    def __init__(self, plan: Plan, remaining: int, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s, self._began_s = now_s, now_s()
        own = {cell.id: max(cell.seconds, 0.1) for cell in plan.cells}
        scale = plan.seconds / max(sum(own[trial.cell] for trial in plan.trials), 0.1)
        self._seconds = {
            cell: seconds * scale for cell, seconds in own.items()
        }  # with what surrounds a trial
        self._left = Counter(trial.cell for trial in plan.trials[len(plan.trials) - remaining :])
        self._took_s: dict[str, list[float]] = {}

    def grown(self, trials: Sequence[Trial]) -> None:
        """So many more."""
        self._left.update(trial.cell for trial in trials)

    def finished(self, cell: str) -> None:
        """One less, of this cell; what went by since the one before it is its own."""
        now_s = self._now_s()
        self._took_s.setdefault(cell, []).append(now_s - self._began_s)
        self._began_s = now_s
        self._left -= Counter([cell])

    @property
    def words(self) -> str:
        """`about 12 minutes left`."""
        took_s = sum(sum(own) for own in self._took_s.values())
        planned_s = sum(self._seconds[cell] * len(own) for cell, own in self._took_s.items())
        pace = took_s / planned_s if planned_s > 0 else 1.0
        means = {cell: sum(own) / len(own) for cell, own in self._took_s.items()}
        left_s = sum(
            count * means.get(cell, pace * self._seconds[cell]) for cell, count in self._left.items()
        )
        return f"about {units.format_duration(float(round(left_s, -1 if left_s >= 60 else 0)))} left"


class Plain(Quiet):
    """One line a trial, for logs."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._total = 0
        self._done = 0
        self._left: TimeLeft | None = None

    def begin(self, plan: Plan, remaining: int) -> None:
        """Say how much there is to do."""
        self._kinds = {cell.id: cell.kind for cell in plan.cells}
        self._total, self._done = len(plan.trials), len(plan.trials) - remaining
        self._left = TimeLeft(plan, remaining)
        self.say(f"{plan.study}: {units.format_count(remaining, 'trial')}, {self._left.words}")

    def grown(self, trials: Sequence[Trial]) -> None:
        """Say which cells are run once more."""
        self._total += len(trials)
        if self._left is not None:
            self._left.grown(trials)
        self.say(f"block {trials[0].block} added: {', '.join(trial.cell for trial in trials)}")

    def finished(self, row: TrialRow) -> None:
        """The trial's figures."""
        self._done += 1
        figures, left = row_words(row, self._kinds[row.cell]), ""
        if self._left is not None:
            self._left.finished(row.cell)
            left = f" ({self._left.words})" if self._done < self._total else ""
        self.say(f"[{self._done}/{self._total}] block {row.block} {row.cell}: {figures}{left}")


class Live(Quiet):
    """Two bars: the study with the time left, and the trial with its throughput."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        super().__init__(console)
        self._bars: Progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.fields[figure]}"),
            console=console,
            transient=True,
        )
        self._study: TaskID | None = None
        self._trial: TaskID | None = None
        self._seconds_of: dict[str, float] = {}
        self._left: TimeLeft | None = None
        self._last: tuple[str, int, int] = ("", 0, 0)

    def __enter__(self) -> Live:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def begin(self, plan: Plan, remaining: int) -> None:
        """Start the bar of the study; its unit is planned seconds, since trials differ in length."""
        self._kinds = {cell.id: cell.kind for cell in plan.cells}
        seconds = {cell.id: max(cell.seconds, 0.1) for cell in plan.cells}
        self._seconds_of = {trial.id: seconds[trial.cell] for trial in plan.trials}
        total = sum(self._seconds_of.values())
        done = total * (len(plan.trials) - remaining) / max(len(plan.trials), 1)
        self._study = self._bars.add_task(plan.study, total=total, completed=int(done), figure="")
        self._left = TimeLeft(plan, remaining)
        self._show_left()
        self._trial = self._bars.add_task("", total=1.0, figure="")

    def grown(self, trials: Sequence[Trial]) -> None:
        """Lengthen the bar of the study."""
        if self._study is not None:
            mean = sum(self._seconds_of.values()) / max(len(self._seconds_of), 1)
            self._seconds_of |= {trial.id: mean for trial in trials}
            self._bars.update(self._study, total=sum(self._seconds_of.values()))
        if self._left is not None:
            self._left.grown(trials)

    def _show_left(self) -> None:
        if self._study is not None and self._left is not None:
            self._bars.update(self._study, figure=self._left.words)

    def trial(self, trial: Trial, cell: PlannedCell) -> None:
        """Reset the trial's bar."""
        if self._trial is not None:
            self._last = ("", 0, 0)
            self._bars.reset(self._trial, description=f"{cell.id} block {trial.block}", figure="")

    def progress(self, message: Mapping[str, Any]) -> None:
        """Phase, share done and the throughput since the last line."""
        if self._trial is None:
            return
        if "words" in message:
            share, words = float(message["share"]), str(message["words"])
            self._bars.update(self._trial, completed=share, figure=words)
            return
        phase, now_ns, count = str(message["phase"]), int(message["elapsed_ns"]), int(message["bytes"])
        show = units.format_rate if count else units.format_iops  # operations on metadata move nothing
        count = count or int(message["operations"])
        last_phase, last_ns, last_bytes = self._last
        if phase != last_phase:
            last_ns, last_bytes = 0, 0
        rate = (count - last_bytes) * 1e9 / max(now_ns - last_ns, 1)
        self._last = (phase, now_ns, count)
        figure = f"{phase} {show(rate)}" if count else f"{phase}, no operation finished yet"
        self._bars.update(self._trial, completed=float(message["share"]), figure=figure)

    def finished(self, row: TrialRow) -> None:
        """Advance the study and leave the trial's figures above the bars."""
        if self._study is not None:
            self._bars.advance(self._study, self._seconds_of.get(row.trial, 0.0))
        if self._left is not None:
            self._left.finished(row.cell)
        self._show_left()
        self.say(f"{row.trial} block {row.block} {row.cell}: {row_words(row, self._kinds[row.cell])}")


def row_words(row: TrialRow, kind: str) -> str:
    """A trial of some kind of work in one line."""
    from leadline.verdict.kinds import judged

    if row.state != "complete":
        return f"{row.state}: {row.error}"
    seconds = row.measured_ns / 1e9
    if seconds <= 0:
        return "nothing was measured"
    figures = judged(kind).progress(row)
    if figures is not None:
        return figures
    count = row.read_bytes + row.write_bytes
    operations = row.read_operations + row.write_operations
    if not operations:
        return f"no operation finished in {units.format_number(seconds)} s"
    return f"{units.format_rate(count / seconds)}, {units.format_iops(operations / seconds)}"
