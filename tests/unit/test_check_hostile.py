"""What a host answers to a check, whatever that is: facts of its own, or the reason why there are none."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from leadline.check.measured.streams import HostAnswer, Words, stream_facts
from leadline.cli.explain.check_members import echoes, facts_of_members

WRONG = [
    b"",
    b"7",
    b"[]",
    b"null",
    b'{"x":' * 100_000,
    b"[" * 100_000,
    b"\xff\xfe",
    b"1" * 10_000,
    json.dumps({"facts": 7}).encode(),
    json.dumps({"facts": [7]}).encode(),
    json.dumps({"facts": [{"kind": "device", "subject": "alpha", "name": "x", "value": {}}]}).encode(),
    json.dumps({"127.0.0.1": 7}).encode(),
    json.dumps({"127.0.0.1": {"small_us": ["x"], "sent": 0, "large": None}}).encode(),
    json.dumps({"sent": 7, "busy": "x"}).encode(),
    json.dumps({"sent": [7, 8], "busy": [None, None]}).encode(),
    json.dumps({"sent": [{"alpha": {}, "beta": {}}] * 2, "busy": [0, 0]}).encode(),
    json.dumps({"sent": [{"alpha": {"end": 7}, "beta": []}] * 2, "busy": [0, 0]}).encode(),
    json.dumps({"sent": [], "busy": [], "listening": [7]}).encode(),
    json.dumps({"error": ["x" * 100_000]}).encode(),
]


class Answering:
    """Members that answer everything so."""

    addresses: Mapping[str, str] = {"alpha": "127.0.0.1", "beta": "127.0.0.2", "gamma": "127.0.0.3"}

    def __init__(self, answer: Callable[[str], bytes]) -> None:
        self.answer = answer

    def ask(self, words: Mapping[str, Words], _limit_s: float) -> Mapping[str, HostAnswer]:
        return {host: HostAnswer(self.answer(host)) for host in words}


@pytest.mark.parametrize("output", WRONG, ids=lambda output: repr(output[:40]))
def test_an_answer_of_no_form_is_a_gap_with_its_reason(output: bytes) -> None:
    members = Answering(lambda _: output)
    found = facts_of_members(members, (), named=True, streams=False)
    found += echoes("alpha", {"127.0.0.1": "beta"}, members)
    found += stream_facts(members.addresses, members.ask)
    assert found
    assert all(fact.value is None and 0 < len(fact.missing) < 500 for fact in found)


def test_a_host_says_facts_of_nobody_else() -> None:
    def fact(subject: str) -> dict[str, Any]:
        return {"kind": "device", "subject": subject, "name": "x", "value": 1, "missing": ""}

    told = {
        "alpha": ["alpha", "alpha/vda", "alpha:/data"],
        "beta": ["beta", "alpha/vda"],
        "gamma": ["gammas"],
    }
    members = Answering(lambda host: json.dumps({"facts": [*map(fact, told[host])]}).encode())
    found = facts_of_members(members, (), named=True, streams=False)
    assert [one.subject for one in found if one.name == "x"] == told["alpha"]
    gaps = {one.subject: one.missing for one in found if one.name == "mtu"}
    assert set(gaps) == {"beta/all", "gamma/all"}
    assert all("it names another host" in why for why in gaps.values())
