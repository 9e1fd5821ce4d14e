"""Clusters of published documents in small: topology files that leadline brings along."""

from __future__ import annotations

from dataclasses import replace
from importlib import resources

from leadline.errors import UsageError
from leadline.lab.network.topology_file import AskedLab, read_topology
from leadline.yamlio.problems import suggest


def reference_names() -> tuple[str, ...]:
    """What `--reference` takes, sorted."""
    folder = resources.files("leadline") / "lab" / "references"
    return tuple(sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".yaml")))


def reference_text(name: str) -> str:
    """The YAML of one. Raises UsageError with the nearest name."""
    if name not in reference_names():
        raise UsageError(f"{name!r} is no cluster that leadline knows", suggest(name, reference_names()))
    return (resources.files("leadline") / "lab" / "references" / f"{name}.yaml").read_text(encoding="utf-8")


def reference_lab(name: str, erasure: str = "") -> AskedLab:
    """One of them, checked against this machine. Raises UsageError where it has not the memory."""
    asked = read_topology(reference_text(name), f"{name} (built-in)", {}, erasure)
    return replace(asked, topology=replace(asked.topology, reference=name))
