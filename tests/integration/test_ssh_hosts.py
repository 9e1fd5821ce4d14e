"""Studies on hosts reached by SSH: a real server, real keys, connections that are refused or break."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from leadline.hosts.agent.copying import carried
from leadline.hosts.worker_rpc import remote
from leadline.hosts.workers.calls import Crew
from leadline.hosts.workers.request import HostAsked
from leadline.hosts.workers.ssh import CopiedPackage, SshTransport, ssh_command
from leadline.store.reader import open_result
from ssh_server import SSHD, ssh_server
from support import command_line, wait_for_event

LONG_S = 240  # of waits that take seconds where the machine is not busy
pytestmark = pytest.mark.skipif(
    not Path(SSHD).exists() or os.geteuid() != 0, reason="needs OpenSSH's server, as root"
)
STUDY = """\
format: leadline.study/1
blocks: 2
limits: {reserve: 1M}
defaults: {size: 4M, runtime: 500ms, time_based: true, engine: psync, direct: false}
works:
  seqwrite_64k: {rw: write, bs: 64k}
"""


@dataclass(frozen=True)
class Site:
    """A server of SSH, the directory of its keys, and a study."""

    directory: Path
    port: int
    study: Path

    def hosts(self, *lines: str, **ssh: object) -> Path:
        """A hosts file of `lines`, each a host; `ssh` takes the place of what works."""
        words = {
            "port": self.port,
            "username": "root",
            "client_keys": f"[{self.directory}/id]",
            "known_hosts": f"{self.directory}/known",
        } | ssh
        file = self.directory / "hosts.yaml"
        options = ", ".join(f"{name}: {value}" for name, value in words.items())
        hosts = "".join(f"  {line}\n" for line in lines)
        file.write_text(f"same_machine: true\nwait: 30s\nssh: {{{options}}}\nhosts:\n{hosts}")
        return file


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    study = tmp_path / "study.yaml"
    study.write_text(STUDY)
    with ssh_server(tmp_path) as port:
        yield Site(tmp_path, port, study)


def run(*arguments: object, path: str | None = None) -> subprocess.CompletedProcess[str]:
    words = command_line("run", *map(str, arguments))
    environment = {**os.environ} | ({} if path is None else {"PATH": path})
    return subprocess.run(words, capture_output=True, text=True, timeout=LONG_S, check=False, env=environment)


def servers(directory: Path) -> list[int]:
    """The processes on hosts that keep their state below `directory`."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("XDG_STATE_HOME", "").startswith(str(directory)):
                found.append(process.pid)
    return found


def wait_until_none_is_left(directory: Path) -> None:
    end = time.monotonic() + LONG_S
    while servers(directory):
        assert time.monotonic() < end, servers(directory)
        time.sleep(0.05)


ALPHA, BETA = "alpha: {address: 127.0.0.1}", "beta: {address: 127.0.0.1}"


def begun(site: Site, target: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    """A study on both hosts, with what it says on standard error."""
    hosts = site.hosts(ALPHA, BETA)
    words = command_line("run", str(site.study), "--target", f"here={target}", "-o", str(out))
    words += ["--hosts", str(hosts), *more]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def test_a_command_that_is_killed_leaves_nothing_and_its_study_goes_on(site: Site, target: Path) -> None:
    out = site.directory / "out"
    with begun(site, target, out) as process:
        wait_for_event(out, "trial_finished", LONG_S)
        process.kill()
    wait_until_none_is_left(site.directory)
    assert list(target.iterdir()) == []
    resumed = run("--resume", out)
    assert resumed.returncode == 0, resumed.stderr
    assert "2 of 2 hosts are ready: alpha, beta" in resumed.stderr
    assert [row.hosts for row in open_result(out).trials()] == [2, 2]
    wait_until_none_is_left(site.directory)
    assert list(target.iterdir()) == []


def test_a_host_whose_connection_breaks_is_taken_back(site: Site, target: Path) -> None:
    out = site.directory / "out"
    with begun(site, target, out, "--lost", "retry", "--set", "defaults.runtime=3s") as process:
        wait_for_event(out, "trial_started", LONG_S)
        links = [one for one in psutil.Process(process.pid).children() if one.name() == "ssh"]
        assert len(links) == 2
        links[0].send_signal(signal.SIGKILL)
        _, errors = process.communicate(timeout=LONG_S)
    assert process.returncode == 0, errors
    assert "host_back" in (out / "events.jsonl").read_text()
    assert [row.hosts for row in open_result(out).trials()] == [2, 2]
    wait_until_none_is_left(site.directory)
    assert list(target.iterdir()) == []


def test_an_interrupt_ends_all_hosts(site: Site, target: Path) -> None:
    out = site.directory / "out"
    with begun(site, target, out, "--set", "defaults.runtime=60s") as process:
        wait_for_event(out, "trial_started", LONG_S)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LONG_S)
    assert process.returncode == 130, errors
    wait_until_none_is_left(site.directory)
    assert list(target.iterdir()) == []


def noisy(directory: Path) -> Path:
    """A Python that prints before it runs, as a shell's start-up file does."""
    script = directory / "python"
    script.write_text(f'#!/bin/sh\necho "Welcome to the cluster"\nexec {sys.executable} "$@"\n')
    script.chmod(0o755)
    return script


def test_what_a_login_prints_is_passed_over(site: Site, target: Path) -> None:
    hosts = site.hosts(f"alpha: {{address: 127.0.0.1, python: {noisy(site.directory)}}}")
    done = run(site.study, "--target", f"here={target}", "-o", site.directory / "out", "--hosts", hosts)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("host", "ssh", "words"),
    [
        (ALPHA, {"known_hosts": "/dev/null"}, "Host key verification failed"),
        (ALPHA, {"client_keys": "[/nonexistent]"}, "Permission denied"),
        (
            ALPHA,
            {"port": 1},
            "cannot be reached by SSH: connect to host 127.0.0.1 port 1: Connection refused",
        ),
        ("alpha: {address: 127.0.0.1, python: /usr/bin/python3}", {}, "starts no agent: it runs Linux on"),
        ("alpha: {address: 127.0.0.1, python: /nonexistent}", {}, "starts no agent: it runs Linux on"),
    ],
    ids=["unknown key", "refused key", "no server", "no leadline", "no Python"],
)
def test_a_host_that_cannot_be_asked_is_named_and_nothing_starts(
    site: Site,
    target: Path,
    host: str,
    ssh: dict[str, object],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = site.directory / "leadline-agent-aarch64"  # the only agent there is, for another machine
    others.write_bytes(struct.pack("<4s12x2xH", b"\x7fELF", 183))
    monkeypatch.setenv("LEADLINE_AGENT", str(others))
    if "python3" in host:  # one that finds this package by its environment has leadline
        script = site.directory / "bare"
        script.write_text('#!/bin/sh\nexec /usr/bin/python3 -I "$@"\n')
        script.chmod(0o755)
        host = host.replace("/usr/bin/python3", str(script))
    out = site.directory / "out"
    done = run(site.study, "--target", f"here={target}", "-o", out, "--hosts", site.hosts(host, **ssh))
    assert done.returncode == 2, done.stderr
    assert "1 of 1 hosts cannot be asked by SSH. alpha: " in done.stderr
    assert words in done.stderr
    assert not out.exists()
    assert list(target.iterdir()) == []


def test_a_host_without_ssh_here(site: Site, target: Path) -> None:
    bare = site.directory / "bin"
    bare.mkdir()
    for program in ("sh", "env"):
        (bare / program).symlink_to(str(shutil.which(program)))
    done = run(
        site.study,
        "--target",
        f"here={target}",
        "-o",
        site.directory / "out",
        "--hosts",
        "node[1-2]",
        path=str(bare),
    )
    assert done.returncode == 2
    assert (
        "2 of 2 hosts cannot be asked by SSH. node1, node2: cannot be reached by SSH: there is no `ssh` here"
        in done.stderr
    )


@dataclass(frozen=True)
class Bare:
    """A host without leadline, and a small installation that can be copied there."""

    host: HostAsked
    top: Path
    temporary: Path


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Bare]:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    top = tmp_path / "leadline-9"
    for program in (top / "bin" / "leadline", top / "python" / "bin" / Path(sys.executable).resolve().name):
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nshift\n{sys.executable} -P "$@"\n')
        program.chmod(0o755)
    with ssh_server(tmp_path, variables=f"TMPDIR={temporary}") as port:
        keys = {"client_keys": [f"{tmp_path}/id"], "known_hosts": f"{tmp_path}/known"}
        ssh = {"port": port, "username": "root", **keys}
        yield Bare(HostAsked("bare", "127.0.0.1", python="/nonexistent", ssh=ssh), top, temporary)


def wait_until_empty(directory: Path) -> None:
    end = time.monotonic() + LONG_S
    while list(directory.iterdir()):
        assert time.monotonic() < end, list(directory.iterdir())
        time.sleep(0.05)


def copied(bare: Bare, package: CopiedPackage) -> str:
    """Why the host cannot be asked, "" where it can; then all is ended, and what was copied is gone."""
    transport = SshTransport([bare.host], package)
    try:
        why = transport.connect(60.0).get("bare", "")
        if not why:
            crew = Crew(transport)
            crew.assign({one.name: one.address for one in crew.workers()})
            assert [one.name[:9] for one in bare.temporary.iterdir()] == ["leadline-"]
            assert crew.tell(remote().clock)["bare"].value > 0
    finally:
        transport.close()
    wait_until_empty(bare.temporary)
    return why


def test_leadline_is_copied_to_a_host_that_has_none_and_removed(bare: Bare) -> None:
    told: list[str] = []
    package = CopiedPackage(bare.top, told.append)
    assert copied(bare, package) == ""
    assert told[0] == "a host has no leadline: packing this installation for it"
    place = package.package().archive
    package.close()
    assert not place.exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"digest": "0" * 64}, "the copy of leadline did not arrive whole"),
        ({"unpacked": 1 << 60}, "no temporary directory has "),
        ({"name": "other"}, "not found"),
    ],
    ids=["damaged", "no space", "no Python in it"],
)
def test_a_copy_that_cannot_be_used_says_why_and_leaves_nothing(
    bare: Bare, changes: dict[str, Any], words: str
) -> None:
    package = CopiedPackage(bare.top, lambda _: None)
    package._package = replace(package.package(), **changes)
    why = copied(bare, package)
    package.close()
    assert why.startswith("starts no leadline: ")
    assert words in why


def test_a_copy_that_is_broken_off_leaves_nothing(bare: Bare) -> None:
    """The command is gone in the middle of the transfer."""
    package = CopiedPackage(bare.top, lambda _: None)
    line = replace(package.package(), size=1 << 30).start_line("leadline.hosts.stdio")
    words = ssh_command(bare.host, line)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        process.stdin.write(b"x" * 100_000)
        process.stdin.flush()
        end = time.monotonic() + LONG_S
        while not any(bare.temporary.glob("leadline-*/a")):
            assert time.monotonic() < end
            time.sleep(0.02)
        process.kill()
    package.close()
    wait_until_empty(bare.temporary)


# -- hosts that have an SSH server, and nothing else -----------------------------------------------------

without_agent = pytest.mark.skipif(not carried(), reason="needs an agent: make setup, or LEADLINE_AGENT")


@dataclass(frozen=True)
class AgentSite:
    """Two hosts without leadline, where the agent is copied, and where their tables are kept here."""

    site: Site
    temporary: Path
    state: Path

    def words(self, *arguments: object) -> list[str]:
        return command_line("run", *map(str, arguments))

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "XDG_STATE_HOME": str(self.state), "TMPDIR": str(self.site.directory)}

    def hosts(self) -> Path:
        bare = "{address: 127.0.0.1, python: /nonexistent}"
        return self.site.hosts(f"alpha: {bare}", f"beta: {bare}")

    def begin(self, out: Path, target: Path, *more: str) -> subprocess.Popen[str]:
        words = self.words(self.site.study, "--target", f"here={target}", "-o", out, "--hosts", self.hosts())
        return subprocess.Popen(
            [*words, *more],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
        )

    def leadline(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        words = command_line(*map(str, arguments))
        return subprocess.run(
            words, capture_output=True, text=True, timeout=LONG_S, check=False, env=self.environment
        )

    def processes(self, name: str) -> list[psutil.Process]:
        """Agents there (`leadline-agent`), or what stands for a host here (`leadline.hosts.agent.proxy`)."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                places = (process.environ().get("XDG_STATE_HOME", ""), process.environ().get("TMPDIR", ""))
                ours = any(one.startswith(str(self.site.directory)) for one in places)
                if ours and any(name in word for word in process.cmdline()[:5]):
                    found.append(process)
        return found

    def require_nothing_left(self, target: Path) -> None:
        wait_until_empty(self.temporary)
        wait_until_empty(target)
        assert not list(self.site.directory.glob("leadline-host-*"))
        assert not list(self.state.glob("leadline/hosts/*"))


@pytest.fixture
def agent_site(tmp_path: Path) -> Iterator[AgentSite]:
    study, temporary = tmp_path / "study.yaml", tmp_path / "there"
    study.write_text(STUDY)
    temporary.mkdir()
    with ssh_server(tmp_path, variables=f"TMPDIR={temporary}") as port:
        yield AgentSite(Site(tmp_path, port, study), temporary, tmp_path / "kept")


@without_agent
def test_a_study_on_hosts_without_leadline(agent_site: AgentSite, target: Path) -> None:
    out = agent_site.site.directory / "out"
    with agent_site.begin(out, target) as process:
        _, errors = process.communicate(timeout=LONG_S)
    assert process.returncode in (0, 3), errors
    assert errors.count("no leadline on alpha, beta: its agent runs there") == 1
    rows = list(open_result(out).trials())
    assert [(row.hosts, row.state) for row in rows] == [(2, "complete")] * 2
    assert {host["agent"] for host in open_result(out).manifest["hosts"]} == {"yes"}
    agent_site.require_nothing_left(target)


@without_agent
def test_a_command_that_is_killed_leaves_nothing_on_hosts_without_leadline(
    agent_site: AgentSite, target: Path
) -> None:
    out = agent_site.site.directory / "out"
    with agent_site.begin(out, target) as process:
        wait_for_event(out, "trial_finished", LONG_S)
        process.kill()
    wait_until_empty(agent_site.temporary)
    wait_until_empty(target)
    resumed = agent_site.leadline("run", "--resume", out)
    assert resumed.returncode in (0, 3), resumed.stderr
    assert [row.hosts for row in open_result(out).trials()] == [2, 2]
    agent_site.require_nothing_left(target)


@without_agent
def test_an_agent_that_is_killed_is_copied_again_and_its_files_go(
    agent_site: AgentSite, target: Path
) -> None:
    out = agent_site.site.directory / "out"
    with agent_site.begin(out, target, "--lost", "retry", "--set", "defaults.runtime=3s") as process:
        wait_for_event(out, "trial_started", LONG_S)
        agents = [one for one in agent_site.processes("leadline-agent") if "serve" in one.cmdline()]
        agents[0].send_signal(signal.SIGKILL)
        _, errors = process.communicate(timeout=LONG_S)
    assert process.returncode in (0, 3), errors
    assert "is lost: its SSH connection ended with exit code 137" in errors
    assert "host_back" in (out / "events.jsonl").read_text()
    assert [(row.hosts, row.state) for row in open_result(out).trials()] == [(2, "complete")] * 2
    agent_site.require_nothing_left(target)


@without_agent
def test_what_a_host_that_was_lost_left_is_undone_by_another_agent(
    agent_site: AgentSite, target: Path
) -> None:
    out = agent_site.site.directory / "out"
    with agent_site.begin(out, target, "--set", "defaults.runtime=60s") as process:
        wait_for_event(out, "trial_started", LONG_S)
        process.kill()
        for one in agent_site.processes("leadline.hosts.agent.proxy"):
            one.kill()
    wait_until_empty(agent_site.temporary)
    assert len(list(target.iterdir())) == 2
    undone = agent_site.leadline("undo", out)
    assert undone.returncode == 0, undone.stderr
    for place in agent_site.site.directory.glob("leadline-host-*"):
        shutil.rmtree(place)  # of those that were killed, as what /tmp keeps of any program
    agent_site.require_nothing_left(target)


@without_agent
def test_a_workload_that_needs_python_there_is_refused_before_anything_starts(
    agent_site: AgentSite, target: Path
) -> None:
    out = agent_site.site.directory / "out"
    study = agent_site.site.directory / "programs.yaml"
    study.write_text("format: leadline.study/1\nworkloads:\n  program: {command: ['true']}\n")
    asked = ("--target", f"here={target}", "--hosts", agent_site.hosts())
    done = agent_site.leadline("run", study, *asked, "-o", out)
    assert done.returncode == 2, done.stderr
    assert "2 of 2 hosts cannot be asked by SSH. alpha, beta: starts no leadline" in done.stderr
    assert "hosts need leadline for workload program, the command that it starts" in done.stderr
    assert not out.exists()


@without_agent
def test_a_directory_that_starts_no_programs_is_passed_over(agent_site: AgentSite, target: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec", "tmpfs", str(agent_site.temporary)], check=True)
    try:
        out = agent_site.site.directory / "out"
        with agent_site.begin(out, target) as process:
            _, errors = process.communicate(timeout=LONG_S)
        assert process.returncode in (0, 3), errors
        assert list(agent_site.temporary.iterdir()) == []
    finally:
        subprocess.run(["umount", str(agent_site.temporary)], check=True)
