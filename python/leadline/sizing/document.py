"""An answer as plain values, for programs: the format leadline.sizing/1, in base units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from leadline.sizing.degraded import DegradedDesign, required_states
from leadline.sizing.designs import Design, PerDeviceRate, decides, device_words, lacks
from leadline.sizing.gateways import PerGatewayRate, PerRankRate, busiest, gateways_counted, ranks_counted
from leadline.sizing.moved import Inputs, degraded_of, sensitivity

FORMAT = "leadline.sizing/1"


def document(
    inputs: Inputs,
    front: Sequence[Design],
    others: Sequence[Design],
    seen: Sequence[PerDeviceRate],
    ranks: Sequence[PerRankRate],
    gateways: Sequence[PerGatewayRate],
    refused: Sequence[str],
) -> dict[str, Any]:
    """Everything that is printed; what is not known is null, and so is a headroom where no rate is asked."""
    read, write, hour = inputs.asked.peak()
    best = inputs.best()
    return {
        "format": FORMAT,
        "asked": {
            "bytes": inputs.asked.bytes_in(inputs.asked.years),
            "year": inputs.asked.years,
            "read_bytes_s": read,
            "write_bytes_s": write,
            "hour": hour,
            "hosts_lost": inputs.asked.hosts_lost,
        },
        "metadata": {
            "operations_s": busiest(inputs.asked)[0],
            "hour": busiest(inputs.asked)[1],
            "ranks": [asdict(one) for one in ranks_counted(inputs.asked, ranks)],
        },
        "gateways": [asdict(one) for one in gateways_counted(inputs.asked, gateways)],
        "works": [
            asdict(one) | {"at_work": inputs.asked.clients[one.population].at_work(hour)}
            for one in inputs.works
        ],
        "currency": inputs.catalogue.currency,
        "designs": [
            design_json(inputs, one)
            | {
                "decided_by": decides(inputs.asked, inputs.catalogue, one),
                "devices": list(device_words(inputs.asked, one, inputs.catalogue.hosts[one.kind].bays, seen)),
            }
            for one in front
        ],
        "others": [design_json(inputs, one) for one in others],
        "sensitivity": [] if best is None else _moves(inputs, best),
        "not_used": list(refused),
    }


def _moves(inputs: Inputs, best: Design) -> list[dict[str, Any]]:
    return [
        {
            "input": one.name,
            "lower": _named(one.lower),
            "higher": _named(one.higher),
            "moves": _finite(one.by(best)),
        }
        for one in sensitivity(inputs)
    ]


def _named(one: Design | None) -> dict[str, Any] | None:
    return None if one is None else {"name": one.name, "hosts": one.hosts}


def design_json(inputs: Inputs, one: Design) -> dict[str, Any]:
    """One design with its name, where its hosts' figures are from, and what it lacks."""
    host = inputs.catalogue.hosts[one.kind]
    values = {name: _finite(value) for name, value in asdict(one).items()}
    return {
        "name": one.name,
        **values,
        "lacks": list(lacks(inputs.asked, one)),
        "states": [_state_json(inputs, left) for left in degraded_of(inputs, one)],
        "source": host.source,
        "date": host.date,
    }


def _state_json(inputs: Inputs, left: DegradedDesign) -> dict[str, Any]:
    """A state with whether all has to be carried in it; `carried` is null where no rate is asked."""
    values = {name: _finite(value) for name, value in asdict(left).items()}
    required = left.state in required_states(inputs.asked)
    return {**values, "required": required, "carries": left.carries}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
