"""An analysis of collision events in columnar files, as high-energy physics does it; and such files.

    python -m leadline.demo.events make DIR --size 64M --files 4 --seed 1
    python -m leadline.demo.events analyse INPUT OUTPUT

It knows nothing of leadline's measuring and nothing of leadline needs it. What it reads and writes are ROOT
files, through uproot and awkward (`pip install leadline[analysis]`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from leadline import units
from leadline.errors import LeadlineError, UsageError

TREE = "Events"
_MUON_MASS_GEV = 0.1056583755  # Particle Data Group, 2022
_BATCH_EVENTS = 20_000
_EVENT_BYTES = 110  # of one event in a file, about: what --size is divided by
_READ = ("Muon_pt", "Muon_eta", "Muon_phi", "Muon_charge")  # of all the branches that the files have
_BINS, _LOW_GEV, _HIGH_GEV = 120, 60.0, 120.0


def make_events(directory: Path, size_bytes: int, files: int, seed: int) -> int:
    """Write `files` files of events, about `size_bytes` together; returns the number of events."""
    import uproot

    directory.mkdir(parents=True, exist_ok=True)
    events = max(size_bytes // files // _EVENT_BYTES, 1)
    for number in range(files):
        with uproot.recreate(directory / f"events-{number:03d}.root", compression=uproot.ZLIB(1)) as file:
            for start in range(0, events, _BATCH_EVENTS):
                batch = _batch(min(_BATCH_EVENTS, events - start), (seed, number, start))
                if start == 0:
                    file.mktree(TREE, {name: column.type for name, column in batch.items()})
                file[TREE].extend(batch)
    return events * files


def _batch(count: int, seed: Sequence[int]) -> dict[str, Any]:
    """Events with a varying number of muons and jets: in a tenth of them two muons come from one Z boson."""
    import awkward as ak
    import numpy as np

    chance = np.random.default_rng(list(seed))
    columns: dict[str, Any] = {
        "event": ak.Array(np.arange(count, dtype=np.int64) + seed[-1]),
        "MET_pt": ak.Array(chance.exponential(25.0, count).astype(np.float32)),
        "MET_phi": ak.Array(chance.uniform(-np.pi, np.pi, count).astype(np.float32)),
    }
    for name, mean in (("Muon", 1.2), ("Jet", 4.0)):
        counts = chance.poisson(mean, count)
        columns |= _particles(name, counts, chance)
    columns["Muon_pt"] = _with_pairs(columns, chance)
    return columns


def _particles(name: str, counts: Any, chance: Any) -> dict[str, Any]:
    import awkward as ak
    import numpy as np

    total = int(counts.sum())
    values = {
        "pt": chance.exponential(20.0, total) + 5.0,
        "eta": chance.normal(0.0, 1.5, total),
        "phi": chance.uniform(-np.pi, np.pi, total),
        "quality": chance.uniform(0.0, 1.0, total),
    }
    columns = {
        f"{name}_{field}": ak.unflatten(array.astype(np.float32), counts) for field, array in values.items()
    }
    charge = chance.choice(np.array([-1, 1], dtype=np.int32), total)
    return {**columns, f"{name}_charge": ak.unflatten(charge, counts)}


def _with_pairs(columns: dict[str, Any], chance: Any) -> Any:
    """Momenta of muons such that some events' first two have the mass of the Z boson, smeared."""
    import awkward as ak
    import numpy as np

    momenta = columns["Muon_pt"]
    counts = ak.to_numpy(ak.num(momenta))
    chosen = np.flatnonzero((counts >= 2) & (chance.uniform(0, 1, len(counts)) < 0.3))
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])[chosen]
    flat = {
        name: ak.to_numpy(ak.flatten(columns[f"Muon_{name}"])).astype(float) for name in ("pt", "eta", "phi")
    }
    eta, phi = (flat[name][first] - flat[name][first + 1] for name in ("eta", "phi"))
    mass = chance.normal(91.2, 3.0, len(chosen))
    spread = np.maximum(np.cosh(eta) - np.cos(phi), 0.05)
    flat["pt"][first + 1] = np.maximum(mass**2 / (2 * flat["pt"][first] * spread), 1.0)
    return ak.unflatten(flat["pt"].astype(np.float32), counts)


def analyse(source: Path, output: Path) -> dict[str, int]:
    """Select events with two muons of opposite charge, histogram their mass, and write a skim of them.

    Reads some branches of each file, chunk by chunk; returns how many events were read and kept.
    """
    import numpy as np
    import uproot

    output.mkdir(parents=True, exist_ok=True)
    bins = np.linspace(_LOW_GEV, _HIGH_GEV, _BINS + 1)
    histogram = np.zeros(_BINS, dtype=np.int64)
    read = kept = 0
    with uproot.recreate(output / "skim.root", compression=uproot.ZLIB(1)) as skim:
        for chunk in _chunks(source):
            masses, selected = _select(chunk)
            read, kept = read + len(chunk), kept + len(selected)
            histogram += np.histogram(masses, bins=bins)[0]
            columns = {name: selected[name] for name in _READ} | {"mass": masses}
            if TREE not in skim:
                skim.mktree(TREE, {name: _type_of(column) for name, column in columns.items()})
            skim[TREE].extend(columns)
        skim["mass"] = (histogram, bins)
    table = "\n".join(f"{low:.1f} {count}" for low, count in zip(bins[:-1], histogram, strict=True))
    (output / "mass.txt").write_text(f"# events by dimuon mass, GeV\n{table}\n")
    return {"read": read, "kept": kept}


def _chunks(source: Path) -> Iterator[Any]:
    """The chosen branches of every file, some megabytes at a time."""
    import uproot

    paths = sorted(source.glob("*.root")) if source.is_dir() else [source]
    if not paths:
        raise UsageError(f"{source} has no file *.root", "make some: python -m leadline.demo.events make DIR")
    for path in paths:
        with uproot.open(path) as file:
            yield from file[TREE].iterate(list(_READ), step_size="4 MB")


def _select(chunk: Any) -> tuple[Any, Any]:
    """The dimuon masses of the selected events, and these events."""
    import awkward as ak
    import numpy as np

    two = (ak.num(chunk["Muon_pt"]) >= 2) & (ak.max(chunk["Muon_pt"], axis=1) > 15.0)
    chosen = chunk[ak.fill_none(two, False)]
    chosen = chosen[chosen["Muon_charge"][:, 0] * chosen["Muon_charge"][:, 1] < 0]
    one, other = (
        {name: ak.to_numpy(chosen[f"Muon_{name}"][:, place]).astype(float) for name in ("pt", "eta", "phi")}
        for place in (0, 1)
    )
    energy, momentum = _pair(one, other)
    masses = np.sqrt(np.maximum(energy**2 - momentum, 0.0))
    return masses, chosen


def _pair(one: dict[str, Any], other: dict[str, Any]) -> tuple[Any, Any]:
    """Energy and squared momentum of two muons together, GeV."""
    import numpy as np

    parts = []
    for muon in (one, other):
        x, y = muon["pt"] * np.cos(muon["phi"]), muon["pt"] * np.sin(muon["phi"])
        z = muon["pt"] * np.sinh(muon["eta"])
        parts.append((np.sqrt(x**2 + y**2 + z**2 + _MUON_MASS_GEV**2), x, y, z))
    energy, x, y, z = (first + second for first, second in zip(*parts, strict=True))
    return energy, x**2 + y**2 + z**2


def _type_of(column: Any) -> Any:
    return column.type if hasattr(column, "type") else column.dtype


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0, or 1 with a word on standard error."""
    parser = argparse.ArgumentParser(prog="leadline.demo.events", description="An analysis of events.")
    actions = parser.add_subparsers(dest="action", required=True)
    make = actions.add_parser("make", help="write files of events")
    make.add_argument("directory", type=Path)
    make.add_argument("--size", default="64M", help="of all files together, about; 64M")
    make.add_argument("--files", type=int, default=4)
    make.add_argument("--seed", type=int, default=1)
    run = actions.add_parser("analyse", help="select, histogram and skim")
    run.add_argument("source", type=Path)
    run.add_argument("output", type=Path)
    chosen = parser.parse_args(arguments)
    try:
        if chosen.action == "make":
            size = units.parse_size(chosen.size)
            count = make_events(chosen.directory, size, max(chosen.files, 1), chosen.seed)
            sys.stdout.write(f"{count} events\n")
        else:
            found = analyse(chosen.source, chosen.output)
            sys.stdout.write(f"{found['read']} events read, {found['kept']} kept\n")
    except ImportError as error:
        sys.stderr.write(f"{error}: pip install 'leadline[analysis]'\n")
        return 1
    except (LeadlineError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
