"""Rates of a lab's ports, seen from the host, client or lower switch; and labs that cannot be read."""

from __future__ import annotations

from pathlib import Path

from leadline.observe.host.proc_parse import Interface
from leadline.observe.network.interfaces import LabPortReader, PortReading, port_rows
from leadline.wires import FILE, Wire, read_wires, write_wires

UP = Wire("switch1", "uplink", "u-switch1", "/net", 200_000_000)
CLIENT = Wire("client1", "client", "p-client1", "/net", None)


def reading(t_s: int, sent_bytes: int, received_bytes: int, *wires: Wire) -> PortReading:
    device = Interface(received_bytes, 0, 0, 0, sent_bytes, 0, 0, 0)
    return PortReading(t_s * 10**9, wires, {wire.device: device for wire in wires})


def test_an_uplink_is_read_at_its_lower_end_and_a_client_across_from_it() -> None:
    before, now = reading(1, 0, 0, UP, CLIENT), reading(3, 200, 20, UP, CLIENT)
    assert port_rows(before, now) == [
        ("wire", "switch1", "tx_bytes_per_s", 100.0, "B/s"),
        ("wire", "switch1", "rx_bytes_per_s", 10.0, "B/s"),
        ("wire", "switch1", "rate_bytes_per_s", 25e6, "B/s"),
        ("wire", "client1", "tx_bytes_per_s", 10.0, "B/s"),
        ("wire", "client1", "rx_bytes_per_s", 100.0, "B/s"),
        ("wire", "client1", "clients", 1.0, "count"),
    ]


def test_a_port_that_went_or_began_anew_has_no_row() -> None:
    assert port_rows(reading(1, 500, 500, UP), reading(2, 10, 10, UP)) == []
    assert port_rows(reading(1, 0, 0, CLIENT), reading(2, 10, 10, UP)) == []


def test_a_lab_that_is_not_there_or_not_believed_gives_no_rows(tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    write_wires(open_to_all, [UP])
    (open_to_all / FILE).chmod(0o666)
    gone = tmp_path / "gone"
    gone.mkdir()
    write_wires(gone, [UP])
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / FILE).write_text("[]")
    reader = LabPortReader([str(place) for place in (tmp_path / "none", open_to_all, gone, damaged)])
    assert [reader.sample(t * 10**9) for t in (1, 2)] == [[], []]


def test_what_a_lab_said_of_its_wires_is_read_again(tmp_path: Path) -> None:
    assert read_wires(tmp_path) == ()
    write_wires(tmp_path, [UP, CLIENT])
    assert read_wires(tmp_path) == (UP, CLIENT)
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
