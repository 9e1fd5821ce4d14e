"""The parts of a guest without a guest: modules, archive, words, lines, mounts. tests/guest boots one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from ipaddress import IPv4Interface, ip_address
from pathlib import Path

import pytest

from leadline.cli.main import run_command_line
from leadline.errors import LabError, UsageError
from leadline.lab import bridge
from leadline.lab.cluster import process
from leadline.lab.guest import (
    agent as guest_agent,
)
from leadline.lab.guest import (
    guest,
    initrd,
    kernel,
)
from leadline.lab.guest import (
    machine as guest_machine,
)
from leadline.lab.guest import (
    mounts as guest_mounts,
)
from leadline.lab.guest.machine import (
    CONSOLE,
    CONTROL,
    STDERR,
    STDOUT,
    Console,
    Deadline,
    Hardware,
    Lines,
)
from leadline.lab.record import GatewayRecord, LabRecord
from leadline.lab.spec import LabSpec

BUSYBOX = shutil.which("busybox")
needs_busybox = pytest.mark.skipif(BUSYBOX is None, reason="busybox is not installed")


def module(*needs: str) -> bytes:
    """A file with the sections that a kernel module has, as far as it is read."""
    names = b"\0.modinfo\0.shstrtab\0"
    info = b"license=GPL\0depends=" + ",".join(needs).encode() + b"\0name=x\0"
    body = b"\x7fELF\x02\x01".ljust(16, b"\0")
    names_at, info_at = 64, 64 + len(names)
    sections_at = info_at + len(info)
    header = struct.pack("<16sHHIQQQIHHHHHH", body, 1, 62, 1, 0, 0, sections_at, 0, 64, 0, 0, 64, 3, 2)
    table = [(0, 0, 0, 0), (1, 1, info_at, len(info)), (10, 3, names_at, len(names))]
    rows = [
        struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, at, size, 0, 0, 1, 0) for name, kind, at, size in table
    ]
    return header + names + info + b"".join(rows)


def tree_of(
    modules: dict[str, bytes], built_in: frozenset[str] = frozenset()
) -> tuple[kernel.Tree, dict[Path, bytes]]:
    files = {Path(f"{name}.ko"): data for name, data in modules.items()}
    return kernel.Tree({kernel.canonical(path.name): path for path in files}, built_in), files


def every(**more: bytes) -> dict[str, bytes]:
    """What every guest needs, and more."""
    return {name: module() for name in kernel.ALWAYS} | more


def test_a_module_says_what_it_needs() -> None:
    assert kernel.needs(module("libceph", "net-fs")) == ("libceph", "net_fs")
    assert kernel.needs(module()) == ()


@pytest.mark.parametrize("data", [b"", b"\x7fELF", module("a")[:200], b"MZ" + bytes(100)])
def test_what_is_no_module_is_refused_not_misread(data: bytes) -> None:
    with pytest.raises(ValueError, match="ELF"):
        kernel.needs(data)


def test_a_module_is_loaded_after_all_that_it_needs_and_once() -> None:
    modules = every(
        ceph=module("libceph", "netfs"), libceph=module("libcrc32c"), netfs=module(), libcrc32c=module()
    )
    tree, files = tree_of(modules)
    order = [path.stem for path in kernel.choose_modules(tree, ("ceph",), files.__getitem__).files]
    assert order.index("libcrc32c") < order.index("libceph") < order.index("ceph")
    assert order.index("netfs") < order.index("ceph")
    assert len(order) == len(set(order))


def test_a_module_that_is_built_in_is_not_loaded() -> None:
    tree, files = tree_of(every(ceph=module("netfs")), frozenset({"netfs"}))
    found = kernel.choose_modules(tree, ("ceph",), files.__getitem__)
    assert found.lacking == {}
    assert "netfs" not in [path.stem for path in found.files]


def test_a_client_that_the_kernel_lacks_is_named_and_the_others_stay() -> None:
    tree, files = tree_of(every(ceph=module("libceph"), nfsv4=module()))
    found = kernel.choose_modules(tree, ("ceph", "nfs", "smb"), files.__getitem__)
    assert found.lacking == {
        "ceph": "the guest's kernel has no module libceph, which ceph needs",
        "smb": "the guest's kernel has no module cifs",
    }
    assert [path.stem for path in found.files][-1] == "nfsv4"


def test_a_kernel_that_cannot_be_a_guest_is_an_error() -> None:
    tree, files = tree_of({name: data for name, data in every().items() if name != "9p"})
    with pytest.raises(LabError, match="no module 9p"):
        kernel.choose_modules(tree, (), files.__getitem__)


def test_the_newest_kernel_whose_modules_are_there_is_taken(tmp_path: Path) -> None:
    modules = every(ceph=module(), nfsv4=module(), cifs=module())
    for version in ("6.1.0-9", "6.1.0-56", "6.12.0-1"):
        (tmp_path / "boot").mkdir(exist_ok=True)
        (tmp_path / f"boot/vmlinuz-{version}").touch()
        directory = tmp_path / "lib/modules" / version
        directory.mkdir(parents=True)
        for name, data in modules.items():
            if version != "6.12.0-1":  # a kernel whose modules were removed
                (directory / f"{name}.ko").write_bytes(data)
    found = kernel.installed(tmp_path)
    assert found is not None
    assert found.version == "6.1.0-56"
    assert kernel.installed(tmp_path / "nowhere") is None


def test_without_a_kernel_and_without_packages_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(LabError) as caught:
        kernel.find_kernel({"XDG_CACHE_HOME": str(tmp_path)}, lambda _: None, root=tmp_path)
    assert "no Debian" in caught.value.message
    assert "9p" in caught.value.remedy


@needs_busybox
def test_the_archive_is_read_by_another_programs_cpio(tmp_path: Path) -> None:
    entries = [
        initrd.Entry("bin", 0o040755),
        initrd.Entry("bin/tool", 0o100755, b"12345"),
        initrd.Entry("bin/other", 0o120777, b"tool"),
    ]
    subprocess.run(
        [str(BUSYBOX), "cpio", "-idm"],
        input=initrd.archive(entries),
        cwd=tmp_path,
        check=True,
        timeout=30,
    )
    assert (tmp_path / "bin/tool").read_bytes() == b"12345"
    assert (tmp_path / "bin/tool").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "bin/other").readlink() == Path("tool")


@needs_busybox
@pytest.mark.parametrize("network", [None, IPv4Interface("10.1.2.254/24")])
def test_the_scripts_of_a_guest_are_valid_for_its_shell(network: IPv4Interface | None) -> None:
    scripts = (
        initrd.first_script(["virtio", "9p"], network),
        initrd.second_script(["/path with 'quotes'/python", "agent.py"], "guest"),
    )
    for text in scripts:
        subprocess.run([str(BUSYBOX), "sh", "-n"], input=text.encode(), check=True, timeout=30)


def record(tmp_path: Path, auth: str = "cephx", gateways: tuple[GatewayRecord, ...] = ()) -> LabRecord:
    return LabRecord(
        name="x",
        fsid="f",
        spec=LabSpec(address="10.1.2.1", auth=auth),  # type: ignore[arg-type]
        directory=tmp_path,
        run_directory=tmp_path / "run",
        made_directory=True,
        owner_uid=0,
        created_unix_s=0.0,
        mon_port=4711,
        gateways=gateways,
    )


KEYRING = "[mon.]\n\tkey = bW9u\n[client.admin]\n\tkey = c2VjcmV0PT0=\n\tcaps mon = allow *\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="another user needs root")
def test_a_note_on_kvm_is_written_and_believed_where_no_other_account_could_have_put_it(
    tmp_path: Path,
) -> None:
    variables, precious = {"XDG_CACHE_HOME": str(tmp_path)}, tmp_path / "precious"
    home = tmp_path / "leadline" / "guest"
    home.mkdir(parents=True)
    precious.write_text("precious")
    guest._note_kvm_is_bad(variables)
    assert guest._kvm_is_known_bad(variables)
    (home / "kvm-does-not-start").unlink()
    (home / "kvm-does-not-start").symlink_to(precious)
    os.chown(home, 65534, 65534)
    guest._note_kvm_is_bad(variables)
    assert precious.read_text() == "precious"
    precious.write_text(process.boot_id())
    assert not guest._kvm_is_known_bad(variables)


def test_the_key_is_an_option_of_the_mount_and_in_no_representation(tmp_path: Path) -> None:
    (tmp_path / "keyring").write_text(KEYRING)
    mount = guest_mounts.ceph_mount(record(tmp_path))
    assert mount.source == "10.1.2.1:4711:/"
    assert "secret=c2VjcmV0PT0=" in mount.options.split(",")
    assert "c2VjcmV0" not in repr(mount)
    assert "secret" not in guest_mounts.ceph_mount(record(tmp_path, auth="none")).options


def test_a_keyring_without_the_key_is_an_error_without_any_key(tmp_path: Path) -> None:
    (tmp_path / "keyring").write_text(KEYRING.replace("client.admin", "client.other"))
    with pytest.raises(LabError) as caught:
        guest_mounts.ceph_mount(record(tmp_path))
    assert "c2VjcmV0" not in str(caught.value)


def test_a_gateway_that_is_not_there_leaves_its_mount_with_the_reason(tmp_path: Path) -> None:
    from leadline.lab.lab import Lab

    gateways = (GatewayRecord("nfs", port=2049), GatewayRecord("smb", reason="samba is not installed"))
    nfs, smb = guest_mounts.mounts_of(Lab(record(tmp_path, gateways=gateways)), ("nfs", "smb"))
    assert nfs.source == "10.1.2.1:/ceph"
    assert "port=2049" in nfs.options
    assert nfs.reason == ""
    assert "samba is not installed" in smb.reason
    (absent,) = guest_mounts.mounts_of(Lab(record(tmp_path)), ("smb",))
    assert "--gateways smb" in absent.reason


def test_an_unknown_client_is_refused_with_those_that_exist() -> None:
    assert guest_mounts.parse_clients("nfs, ceph,nfs") == ("nfs", "ceph")
    with pytest.raises(UsageError) as caught:
        guest_mounts.parse_clients("ceph,afs")
    assert "afs" in caught.value.message
    assert "ceph, nfs, smb" in caught.value.remedy


def test_the_guest_has_an_address_of_the_labs_network_that_is_not_the_labs() -> None:
    assert bridge.Bridge("b", "10.1.2.1", 24).guest() == IPv4Interface("10.1.2.254/24")
    assert bridge.Bridge("b", "10.1.2.254", 24).guest().ip == ip_address("10.1.2.253")
    with pytest.raises(LabError, match="no address left"):
        bridge.Bridge("b", "10.1.2.2", 30 + 1).guest()


def test_an_address_on_no_bridge_is_an_error_that_names_the_option() -> None:
    with pytest.raises(LabError) as caught:
        bridge.find_bridge("127.0.0.1", os.environ)
    assert "--bridge" in caught.value.remedy


def test_the_machines_words_hold_files_as_they_are_and_nothing_to_hide(tmp_path: Path) -> None:
    files = guest_machine.Files(Path("/k"), Path("/i"), Path("/with,comma"))
    words = guest_machine.command_line(Hardware("tcg", 1024, 3), files, {CONSOLE: 5, CONTROL: 6}, 7)
    assert any("path=/with,,comma,security_model=passthrough,readonly=off" in word for word in words)
    assert any("path=/,security_model=passthrough,readonly=on" in word for word in words)
    assert words[words.index("-serial") + 1] == f"chardev:{CONSOLE}"
    assert "tap,id=cable,fd=7" in words
    assert "secret" not in " ".join(words)


class FakeGuest:
    """The other end of a guest's lines."""

    def __init__(self, lines: Lines) -> None:
        self._lines = {name: line for name, line in lines._theirs.items()}

    def say(self, name: str, data: bytes) -> None:
        self._lines[name].sendall(data)

    def end(self) -> None:
        for line in self._lines.values():
            line.close()


@pytest.fixture
def lines() -> Iterator[Lines]:
    with Lines() as found:
        yield found


def session_of(
    lines: Lines, tmp_path: Path, stop: int = 0
) -> tuple[guest_machine.GuestSession, FakeGuest, list[tuple[str, bytes]]]:
    heard: list[tuple[str, bytes]] = []
    session = guest_machine.GuestSession(
        lines, Console(tmp_path / "console.log"), lambda name, data: heard.append((name, data)), lambda: stop
    )
    return session, FakeGuest(lines), heard


def test_the_commands_words_and_exit_code_reach_this_host(lines: Lines, tmp_path: Path) -> None:
    session, fake, heard = session_of(lines, tmp_path)
    fake.say(STDOUT, b"out")
    fake.say(STDERR, b"err")
    fake.say(CONTROL, b'{"mount": "nfs", "reason": "refused"}\n{"exit": 7, "why": "", ')
    fake.say(CONTROL, b'"left": []}\n')
    assert session.wait(lambda: session.told.exit_code is not None, Deadline.of("end", 10)) == 0
    assert session.told.exit_code == 7
    assert session.told.mounts == {"nfs": "refused"}
    assert sorted(heard) == [(STDERR, b"err"), (STDOUT, b"out")]


def test_a_panic_on_the_console_is_an_error_with_its_words_and_log(lines: Lines, tmp_path: Path) -> None:
    session, fake, _ = session_of(lines, tmp_path)
    fake.say(CONSOLE, b"[ 1.0] all is well\n[ 2.0] Kernel panic - not syncing: Fatal exception\n")
    with pytest.raises(LabError) as caught:
        session.wait(lambda: False, Deadline.of("boot", 10))
    assert "panicked" in caught.value.message
    assert "Fatal exception" in caught.value.message
    assert str(tmp_path / "console.log") in caught.value.remedy
    assert "all is well" in (tmp_path / "console.log").read_text()


def test_a_failed_start_says_which_step(lines: Lines, tmp_path: Path) -> None:
    session, fake, _ = session_of(lines, tmp_path)
    fake.say(CONSOLE, f"{initrd.FAILED} no network\n".encode())
    with pytest.raises(LabError, match="could not start: no network"):
        session.wait(lambda: False, Deadline.of("boot", 10))


def test_a_machine_that_ends_too_early_is_an_error(lines: Lines, tmp_path: Path) -> None:
    session, fake, _ = session_of(lines, tmp_path)
    fake.end()
    with pytest.raises(LabError, match="has ended before it was done"):
        session.wait(lambda: False, Deadline.of("boot", 10))


def test_a_deadline_that_is_over_says_of_what(lines: Lines, tmp_path: Path) -> None:
    session, _, _ = session_of(lines, tmp_path)
    with pytest.raises(TimeoutError, match="did not boot within 0 s"):
        session.wait(lambda: False, Deadline.of("boot", 0))


def test_a_signal_ends_the_wait_with_its_number(lines: Lines, tmp_path: Path) -> None:
    session, _, _ = session_of(lines, tmp_path, stop=signal.SIGINT)
    assert session.wait(lambda: False, Deadline.of("boot", 10)) == signal.SIGINT


def test_a_command_that_prints_without_end_is_cut_and_that_is_said(
    lines: Lines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest_machine, "OUTPUT_BYTES_MAX", 10)
    session, fake, heard = session_of(lines, tmp_path)
    for _ in range(4):
        fake.say(STDOUT, b"123456")
    fake.say(CONTROL, b'{"exit": 0, "why": "", "left": []}\n')
    fake.end()
    session.drain(Deadline.of("end", 10))
    assert sum(len(data) for name, data in heard if name == STDOUT) == 10
    assert any(b"cut" in data for name, data in heard if name == STDERR)


def test_the_consoles_log_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_machine, "_CONSOLE_BYTES_MAX", 100)
    console = Console(tmp_path / "log")
    for _ in range(10):
        console.take(b"x" * 60)
    console.take(b"\nKernel panic")
    text = (tmp_path / "log").read_text()
    assert text.count("x") == 100
    assert "first MiB" in text
    assert console.panicked


def agent_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *command: str
) -> tuple[int, str, bytes, bytes]:
    """The agent's handling of a command, with files in place of the machine's ports."""
    files = {name: tmp_path / name for name in ("stdout", "stderr")}
    monkeypatch.setattr(
        guest_agent, "open_port", lambda name: os.open(files[name], os.O_WRONLY | os.O_CREAT, 0o600)
    )
    reader, writer = os.pipe()
    try:
        job = {"command": list(command), "directory": str(tmp_path), "variables": dict(os.environ)}
        code, why = guest_agent.run_command(job, guest_agent.Control(reader))
    finally:
        os.set_blocking(writer, False)
        # The thread that listens for signals stays at its line, as it does in a guest until the power is off.
    return code, why, files["stdout"].read_bytes(), files["stderr"].read_bytes()


def test_the_agent_hands_on_words_and_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = agent_run(tmp_path, monkeypatch, "sh", "-c", "echo out; echo err >&2; exit 3")
    assert found == (3, "", b"out\n", b"err\n")


def test_a_death_by_signal_is_128_and_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert agent_run(tmp_path, monkeypatch, "sh", "-c", "kill -9 $$")[0] == 128 + 9


@pytest.mark.parametrize(("command", "code"), [("no-such-command-anywhere", 127), ("/etc/passwd", 126)])
def test_a_command_that_cannot_be_started_has_the_shells_exit_code_and_a_reason(
    command: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = agent_run(tmp_path, monkeypatch, command)
    assert found[0] == code
    assert command in found[1]


def test_a_mount_that_hangs_is_given_up() -> None:
    assert guest_agent.in_child(lambda: time.sleep(60), 0.2) == "no answer within 0.2 s"


def test_a_mount_that_fails_says_why() -> None:
    def refuse() -> None:
        raise OSError(111, "Connection refused")

    assert guest_agent.in_child(refuse, 10.0) == "Connection refused"
    assert guest_agent.in_child(lambda: None, 10.0) == ""


def test_the_agent_is_started_without_any_package() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", guest_agent.__file__],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    # This is no guest: the agent gets as far as looking for its line to the host.
    assert done.stderr.splitlines()[-1].startswith("FileNotFoundError")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("lab", "guest"), "no command"),
        (("lab", "guest", "--"), "no command"),
        (("lab", "guest", "--no-such-option", "--", "true"), "--no-such-option"),
        (("lab", "guest", "--kernel-mounts", "afs", "--", "true"), "afs"),
        (("lab", "guest", "--memory", "1M", "no-such-lab", "--", "true"), "no-such-lab"),
    ],
)
def test_what_cannot_be_done_is_no_exit_code_of_the_command(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(list(words)) == 125
    assert said in capsys.readouterr().err


def request(**changes: object) -> guest.GuestRequest:
    values: dict[str, object] = {
        "command": ("true",),
        "mounts": (),
        "share": Path("/tmp/x"),
        "directory": Path("/tmp/x"),
        "variables": {},
    }
    return guest.GuestRequest(**(values | changes))  # type: ignore[arg-type]


def test_a_host_without_qemu_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(LabError) as caught:
        guest.check(request())
    assert "qemu-system-x86" in caught.value.remedy


def test_the_whole_host_is_never_shared_for_writing() -> None:
    with pytest.raises(UsageError, match="may not write"):
        guest.check(request(share=Path("/")))


def test_an_ordinary_user_is_told_that_a_guest_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/qemu-system-x86_64")
    with pytest.raises(LabError, match="root"):
        guest.check(request())


def test_messages_to_the_guest_are_lines_of_json(lines: Lines, tmp_path: Path) -> None:
    session, _, _ = session_of(lines, tmp_path)
    session.tell({"signal": 2})
    assert json.loads(lines._theirs[CONTROL].recv(100)) == {"signal": 2}
