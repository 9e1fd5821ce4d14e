"""What is said of a study that was to be measured while its cluster is not clean, against its trials."""

from __future__ import annotations

import json
from collections import Counter

from kit import Said, checks, seconds

_KINDS = {
    "degraded": {"degraded"},
    "while data were rebuilt": {"rebuilding"},
    "clean": {"clean"},
    "of which it is not known": set(),
}


def _moods(said: Said) -> list[tuple[float, str, int, str]]:
    """(time, state, objects without all copies, trial) at each moment at which the cluster was looked at."""
    found = []
    for row in said.trials:
        end_s = (row.started_unix_ns + row.ramp_ns + row.measured_ns) / 1e9
        for at_s, text in ((row.started_unix_ns / 1e9, row.start_state), (end_s, row.end_state)):
            state = json.loads(text)
            if state:
                whole = state["osds_up"] == state["osds"] and all("clean" in name for name in state["pgs"])
                mood = "rebuilding" if state["recovering"] else "clean" if whole else "degraded"
                found.append((at_s, mood, state["degraded_objects"], row.trial))
    return sorted(found)


@checks("cluster_unclean_as_asked")
def cluster_unclean_as_asked(said: Said) -> None:
    part = said.match(
        r"To be measured while the cluster is not clean: (?P<parts>.+), of (?P<all>\d+) trials\."
    )
    seen: dict[str, set[str]] = {row.trial: set() for row in said.trials}
    for _, mood, _, trial in _moods(said):
        seen[trial].add(mood)
    expected = Counter(
        next((words for words, moods in _KINDS.items() if moods == found), "while that changed")
        for found in seen.values()
    )
    told = {words.partition(" ")[2]: int(words.partition(" ")[0]) for words in part["parts"].split(", ")}
    assert told == dict(expected), said.text
    assert int(part["all"]) == len(said.trials), said.text


@checks("cluster_clean_again")
def cluster_clean_again(said: Said) -> None:
    part = said.match(
        r"The cluster was clean again (?P<least>.+) to (?P<most>.+) after it was first seen otherwise, under this"
        r" load(?:; most copies missing at once: (?P<lost>\d+))?\."
    )
    looks = _moods(said)
    unclean = [look for look in looks if look[1] != "clean"]
    clean_s = next(look[0] for look in looks if look[0] > unclean[-1][0])
    for key, at_s in (("least", unclean[-1][0]), ("most", clean_s)):
        assert abs(seconds(part[key]) - (at_s - unclean[0][0])) <= 0.51, said.text
    assert int(part.get("lost", "0")) == max(look[2] for look in unclean), said.text
