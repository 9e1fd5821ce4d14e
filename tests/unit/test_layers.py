"""Packages import each other one way only."""

from __future__ import annotations

from collections import defaultdict

import grimp


def test_no_two_packages_import_each_other() -> None:
    graph = grimp.build_graph("leadline")
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            packages = module.split(".")[1:2], imported.split(".")[1:2]
            if all(packages) and packages[0] != packages[1]:
                found[packages[0][0], packages[1][0]].append(f"{module} -> {imported}")
    assert len(found) > 100  # else the graph is not read
    both = {pair: lines for pair, lines in found.items() if pair[::-1] in found}
    assert both == {}
