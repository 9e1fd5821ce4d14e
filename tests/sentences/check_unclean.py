"""What is said of a study that was to be measured while its cluster is not clean, against its trials."""

from __future__ import annotations

import json
from collections import Counter

from kit import Said, checks, seconds

_KINDS = {
    "degraded": {"degraded"},
    "rebuilding data": {"rebuilding"},
    "clean": {"clean"},
    "unknown": set(),
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
    part = said.match(r"Of (?P<all>\d+) trials? with --degraded, the cluster was (?P<parts>.+)\.")
    seen: dict[str, set[str]] = {row.trial: set() for row in said.trials}
    for _, mood, _, trial in _moods(said):
        seen[trial].add(mood)
    expected = Counter(
        next((words for words, moods in _KINDS.items() if moods == found), "changing between these")
        for found in seen.values()
    )
    told = {words.partition(" ")[2]: int(words.partition(" ")[0]) for words in part["parts"].split(", ")}
    assert told == dict(expected), said.text
    assert int(part["all"]) == len(said.trials), said.text


@checks("cluster_clean_again")
def cluster_clean_again(said: Said) -> None:
    part = said.match(
        r"Under this load the cluster was clean again (?P<least>.+) to (?P<most>.+) after it was first seen not"
        r" clean(?:; at most (?P<lost>\d+) copies were missing)?\."
    )
    looks = _moods(said)
    unclean = [look for look in looks if look[1] != "clean"]
    clean_s = next(look[0] for look in looks if look[0] > unclean[-1][0])
    for key, at_s in (("least", unclean[-1][0]), ("most", clean_s)):
        assert abs(seconds(part[key]) - (at_s - unclean[0][0])) <= 0.51, said.text
    assert int(part.get("lost", "0")) == max(look[2] for look in unclean), said.text
