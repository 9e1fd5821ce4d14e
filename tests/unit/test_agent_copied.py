"""How the agent comes to a host, by shells of this one: where it goes, how it is checked, what is left."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import agents
from leadline.hosts.agent.copying import LINE, VARIABLE, AgentFile, CopyError, bring, carried

MACHINE = subprocess.run(["uname", "-m"], capture_output=True, text=True, check=True).stdout.strip()


@dataclass
class Host:
    """A directory for what is copied, and programs that its shell finds."""

    temporary: Path
    programs: Path

    def run(
        self,
        file: Path,
        shell: Sequence[str] = ("sh", "-c"),
        machine: str = MACHINE,
        before: str = "",
        **variables: str,
    ) -> tuple[subprocess.Popen[bytes], str]:
        """The process that was brought, or what it said last with why it was not."""
        process = subprocess.Popen(
            [*shell, before + LINE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": str(self.programs), "TMPDIR": str(self.temporary), **variables},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            bring({machine: AgentFile(machine, file)}, process.stdin, process.stdout)
        except CopyError as error:
            return process, error.message
        except (EOFError, OSError):
            assert process.stderr is not None
            return process, process.stderr.read().decode().strip()
        return process, ""

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """It ends with its input, and leaves nothing."""
        assert process.stdin is not None
        process.stdin.close()
        process.wait(20)
        assert list(self.temporary.iterdir()) == []


@pytest.fixture
def host(tmp_path: Path) -> Host:
    programs = tmp_path / "bin"
    programs.mkdir()
    names = "sh head mktemp chmod rm df tail uname wc cat sha256sum env sleep printf tr"
    for name in names.split():
        (programs / name).symlink_to(shutil.which(name) or "/bin/sh")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    return Host(temporary, programs)


def agent(directory: Path, text: str = 'echo "agent $1"; cat >/dev/null') -> Path:
    path = directory / "agent"
    path.write_text(f"#!/bin/sh\n{text}\n" + "#" * 300_000)
    return path


_SHELLS = [name for name in ("sh", "dash", "bash", "tcsh", "csh", "zsh", "fish") if shutil.which(name)]


@pytest.mark.parametrize("shell", _SHELLS)
def test_it_is_copied_and_runs_whatever_the_login_shell(host: Host, tmp_path: Path, shell: str) -> None:
    process, why = host.run(agent(tmp_path), (str(shutil.which(shell)), "-c"))
    assert why == ""
    assert process.stdout is not None
    assert process.stdout.readline() == b"agent serve\n"
    assert len(list(host.temporary.iterdir())) == 1
    host.end(process)


def test_what_a_login_shell_prints_is_passed_over(host: Host, tmp_path: Path) -> None:
    process, why = host.run(agent(tmp_path), before="echo Welcome to the cluster; ")
    assert why == ""
    host.end(process)


def test_a_shell_that_prints_without_end_is_given_up(host: Host, tmp_path: Path) -> None:
    process, why = host.run(agent(tmp_path), before="while :; do echo more and more; done; ")
    assert why == "it prints without end when it is logged in to"
    process.kill()
    process.wait(10)


@pytest.mark.parametrize("last", ["sha256sum", "none"])
def test_a_host_without_sha256sum_sends_back_what_it_wrote(host: Host, tmp_path: Path, last: str) -> None:
    if last == "none":
        (host.programs / "sha256sum").unlink()
    process, why = host.run(agent(tmp_path))
    assert why == ""
    assert process.stdout is not None
    assert process.stdout.readline() == b"agent serve\n"
    host.end(process)


@pytest.mark.parametrize("checked", [True, False], ids=["by its SHA-256", "read back"])
def test_a_copy_that_did_not_arrive_whole_is_not_started(host: Host, tmp_path: Path, checked: bool) -> None:
    (host.programs / "head").unlink()
    damaging = host.programs / "head"  # the first is the script's own beginning
    real = shutil.which("head")
    damaging.write_text(
        f'#!/bin/sh\ncase $2 in ?????*) {real} -c "$2" | sed s/agent/AGENT/ ;; *) exec {real} "$@" ;; esac\n'
    )
    damaging.chmod(0o755)
    (host.programs / "sed").symlink_to(shutil.which("sed") or "")
    if not checked:
        (host.programs / "sha256sum").unlink()
    process, why = host.run(agent(tmp_path))
    assert why.startswith("the copy of the agent did not arrive whole: ")
    host.end(process)


def test_another_machine_is_named_with_those_that_there_are_agents_for(host: Host, tmp_path: Path) -> None:
    process, why = host.run(agent(tmp_path), machine="pdp11")
    assert why == f"it runs Linux on {MACHINE}, and this installation carries no agent for that"
    host.end(process)


def test_a_full_disk_is_said_and_leaves_nothing(host: Host, tmp_path: Path) -> None:
    full = host.programs / "df"
    full.unlink()
    full.write_text("#!/bin/sh\necho a b c 10 d e\n")
    full.chmod(0o755)
    process, why = host.run(agent(tmp_path), HOME=str(tmp_path))
    assert why.startswith("no directory can hold the agent, which needs 32 MiB and must be started; ")
    assert f"{host.temporary} has 10 kB free" in why
    host.end(process)


def test_a_disk_that_fills_during_the_copy_is_said(host: Host, tmp_path: Path) -> None:
    head, real = host.programs / "head", shutil.which("head")
    head.unlink()
    head.write_text(
        f'#!/bin/sh\ncase $2 in ?????*) echo "head: No space left on device" >&2; exit 1 ;;'
        f' *) exec {real} "$@" ;; esac\n'
    )
    head.chmod(0o755)
    process, why = host.run(agent(tmp_path))
    assert "the agent cannot be written to " in why
    assert "No space left on device" in why
    host.end(process)


def test_a_transfer_that_breaks_off_leaves_nothing(host: Host) -> None:
    environment = {"PATH": str(host.programs), "TMPDIR": str(host.temporary)}
    with subprocess.Popen(
        ["sh", "-c", LINE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        from leadline.hosts.agent.copying import _SCRIPT

        process.stdin.write(_SCRIPT.encode() + b"1000000\n" + b"x" * 1000)
        process.stdin.flush()
        while process.stdout.readline()[:14] != b"leadline-copy/":
            pass
        assert len(list(host.temporary.iterdir())) == 1
        process.stdin.close()
        process.wait(20)
    assert list(host.temporary.iterdir()) == []


def test_an_agent_that_is_killed_leaves_nothing(host: Host, tmp_path: Path) -> None:
    process, why = host.run(agent(tmp_path, "echo $$; exec sleep 600"))
    assert why == ""
    assert process.stdout is not None
    subprocess.run(["kill", "-KILL", process.stdout.readline().decode().strip()], check=True)
    end = time.monotonic() + 20
    while process.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert process.returncode == 137
    assert list(host.temporary.iterdir()) == []
    process.stdin.close() if process.stdin else None


def elf(path: Path, machine: int) -> Path:
    path.write_bytes(b"\x7fELF" + b"\x02\x01\x01" + bytes(9) + b"\x02\x00" + machine.to_bytes(2, "little"))
    return path


def test_agents_are_known_by_their_name_and_their_machine(tmp_path: Path) -> None:
    x86, _arm = elf(tmp_path / "leadline-agent-x86_64", 62), elf(tmp_path / "leadline-agent-aarch64", 183)
    elf(tmp_path / "leadline-agent-riscv64", 243)
    agents.stand_in_script(tmp_path).rename(tmp_path / "leadline-agent-ppc64le")
    assert sorted(carried({}, tmp_path)) == ["aarch64", "x86_64"]
    assert sorted(carried({VARIABLE: str(tmp_path)}, tmp_path / "none")) == ["aarch64", "x86_64"]
    own = elf(tmp_path / "mine", 183)
    assert carried({VARIABLE: str(own)}, tmp_path) == {"aarch64": AgentFile("aarch64", own)}
    assert carried({}, tmp_path / "none") == {}
    x86.write_bytes(elf(tmp_path / "other", 183).read_bytes())
    assert sorted(carried({}, tmp_path)) == ["aarch64"]


@pytest.mark.parametrize("name", ["missing", "empty", "text"])
def test_a_variable_that_names_no_agent_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("#!/bin/sh\n" * 10)
    with pytest.raises(CopyError, match="there is no agent for x86_64 or aarch64"):
        carried({VARIABLE: str(tmp_path / name)})
