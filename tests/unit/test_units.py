"""Sizes, times, rates: what is read comes back, what is printed is near, what is wrong is named."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline import units
from leadline.errors import SpecError


@given(st.integers(0, units.SIZE_MAX_BYTES))
def test_an_exact_size_is_read_back(size_bytes: int) -> None:
    assert units.parse_size(units.exact_size(size_bytes)) == size_bytes


@given(st.integers(0, units.DURATION_MAX_NS))
def test_an_exact_duration_is_read_back(duration_ns: int) -> None:
    assert units.parse_duration(units.exact_duration(duration_ns)) == duration_ns


@given(st.integers(1, 2**60))
def test_a_printed_size_is_within_half_a_percent(size_bytes: int) -> None:
    number, unit = units.format_size(size_bytes).split(" ")
    factor = 1024 ** ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB").index(unit)
    assert float(number.replace(",", "")) * factor == pytest.approx(size_bytes, rel=0.0051)


@given(st.floats(1, 1e12))
def test_a_printed_latency_is_within_half_a_percent(latency_ns: float) -> None:
    number, unit = units.format_latency(latency_ns).split(" ")
    factor = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert float(number.replace(",", "")) * factor == pytest.approx(latency_ns, rel=0.0051)


@given(st.text(max_size=20))
def test_any_text_is_a_size_or_a_spec_error(text: str) -> None:
    for parse in (units.parse_size, units.parse_duration, units.parse_rate, units.parse_iops):
        with contextlib.suppress(SpecError):
            assert parse(text) >= 0


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("4k", 4096),
        ("4K", 4096),
        ("4kb", 4096),
        ("4KiB", 4096),
        ("64 MiB", 64 * units.MIB),
        ("1.5G", 3 * units.GIB // 2),
        (4096, 4096),
        ("512b", 512),
        ("0", 0),
    ],
)
def test_sizes_are_read_as_fio_reads_them(text: object, size_bytes: int) -> None:
    assert units.parse_size(text) == size_bytes


@pytest.mark.parametrize(
    "text", ["4q", "", "k", "-4k", "1e3", "4 k k", "0.3k", "9999e", True, None, [4], "nan"]
)
def test_a_wrong_size_is_named_with_examples(text: object) -> None:
    with pytest.raises(SpecError) as caught:
        units.parse_size(text)
    assert str(text) in caught.value.message
    assert "64KiB" in caught.value.remedy


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2s", 2), ("500ms", 0.5), ("1m", 60), ("1h", 3600), (2, 2), (0.5, 0.5), ("1m30s", 90), ("10 min", 600)],
)
def test_times_are_read_with_seconds_as_the_bare_unit(text: object, seconds: float) -> None:
    assert units.parse_duration(text) == seconds * units.NS_PER_S


@pytest.mark.parametrize(
    "text", ["", "5 parsecs", "1:30", "s", "1m30", "30 1m", "-1s", "0.1ns", "400d", False]
)
def test_a_wrong_time_is_named_with_examples(text: object) -> None:
    with pytest.raises(SpecError) as caught:
        units.parse_duration(text)
    assert "500ms" in caught.value.remedy


def test_a_rate_takes_bytes_per_second() -> None:
    assert units.parse_rate("100MiB/s") == units.parse_rate("100M") == 100 * units.MIB


@pytest.mark.parametrize("text", ["0", "fast", "10M/h"])
def test_a_wrong_rate_is_named(text: str) -> None:
    with pytest.raises(SpecError):
        units.parse_rate(text)


def test_iops_with_a_unit_are_refused_because_k_has_two_meanings() -> None:
    assert units.parse_iops("2000") == 2000.0
    with pytest.raises(SpecError, match="10k"):
        units.parse_iops("10k")


def test_percentages() -> None:
    assert units.parse_percent("12.5 %") == 12.5
    with pytest.raises(SpecError, match="101"):
        units.parse_percent("101%")


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (123.4 * units.MIB, "B/s", "123 MiB/s"),
        (1023 * units.MIB, "B/s", "0.999 GiB/s"),
        (12345.6, "1/s", "12,300 IOPS"),
        (9.996, "1/s", "10.0 IOPS"),
        (850, "ns", "850 ns"),
        (12_345, "ns", "12.3 us"),
        (999_600, "ns", "1.00 ms"),
        (1.2e9, "ns", "1.20 s"),
        (4096, "B", "4 KiB"),
        (0, "B", "0 B"),
        (0.1234, "1", "12.3 %"),
        (125, "s", "2 minutes 5 seconds"),
        (3600, "s", "1 hour"),
        (3601, "s", "1 hour"),
        (0.5, "s", "500 milliseconds"),
        (59.96, "s", "1 minute"),
        (0, "s", "0 seconds"),
        (None, "ns", "not measured"),
        (3, "widgets", "3.00 widgets"),
    ],
)
def test_quantities_are_printed_for_people(value: float | None, unit: str, words: str) -> None:
    assert units.format_quantity(value, unit) == words
