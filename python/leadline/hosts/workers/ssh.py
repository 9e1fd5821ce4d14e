"""The transport by SSH: calls over the standard streams of OpenSSH's own program, one process a host.

A host needs its SSH server, nothing else. Where it has no leadline the agent is copied there (`hosts/agent`),
or leadline itself where the study needs Python on its hosts. Keys, jump hosts and known hosts are those of
`ssh HOST`. Nobody is asked for a password, and no unknown host is trusted: such a host is named with what ssh
says. A connection that breaks is made again every few seconds, with another address.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
import threading
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leadline import _core
from leadline.errors import LeadlineError, UsageError
from leadline.foreign import parse_json
from leadline.hosts.agent.copying import LINE, AgentFile, carried
from leadline.hosts.replies import REPLY_BYTES_MAX
from leadline.hosts.stdio import GREETING, HEADER
from leadline.hosts.workers.calls import WORDS_MAX, CallResult, CrewWorker, value_of
from leadline.hosts.workers.package import Package, own_installation, pack
from leadline.hosts.workers.request import HostAsked, HostsAsked
from leadline.interpreter import module_command, module_environment, remote_command, remote_python
from leadline.store.making import temporary
from leadline.units import format_size

_AT_ONCE = 64  # connections that are made at a time
_NOISE_BYTES_MAX = 1 << 16  # what a login shell may print before the greeting
_TALK_BYTES_MAX = 1 << 16  # of ssh's own messages
_AGAIN_S = 3.0
_SSH_FAILED = 255  # ssh(1): an error of its own; else the exit code is that of the command there
_PIECE_BYTES = 1 << 18
_SLOWEST_BYTES_PER_S = 1 << 20  # of the copy of leadline
_CALL_S = 60.0  # a host hears of its command at least so often
_END_S = 5.0
_OPTIONS = {
    "BatchMode": "yes",  # no question can be answered here
    "ClearAllForwardings": "yes",
    "ServerAliveInterval": "15",
    "ServerAliveCountMax": "4",
}
SERVER = "leadline.hosts.stdio"
PROXY = "leadline.hosts.agent.proxy"
_SHOWN = 10


def ssh_command(host: HostAsked, line: str = "") -> list[str]:
    """The arguments of the program that starts a host's call server, or the shell's line there.

    Sources: ssh(1), ssh_config(5).
    """
    given = dict(host.ssh)
    words = ["ssh", "-T"]
    for name, value in _OPTIONS.items():
        words += ["-o", f"{name}={value}"]
    for config in given.get("config", ()):
        words += ["-F", _expanded(config)]
    for key in given.get("client_keys", ()):
        words += ["-i", _expanded(key)]
    if "known_hosts" in given:
        words += ["-o", f'UserKnownHostsFile="{_expanded(given["known_hosts"])}"']
    if "port" in given:
        words += ["-p", str(given["port"])]
    if "username" in given:
        words += ["-l", str(given["username"])]
    return [*words, "--", str(host.address), line or remote_command(remote_python(host.python), SERVER)]


def _expanded(path: str) -> str:
    return str(Path(path).expanduser())


class LinkError(Exception):
    """Why a host cannot be asked, in words that follow its name."""


class NoLeadlineError(LinkError):
    """A host was logged in to, and has no leadline, or another."""


@dataclass
class _Link:
    """One process that reaches a host, and the calls that wait for its answers."""

    host: HostAsked
    address: str
    process: Process
    versions: Mapping[str, Any] = field(default_factory=dict)
    waiting: dict[int, asyncio.Future[bytes]] = field(default_factory=dict)
    what: str = "leadline"
    talk: bytearray = field(default_factory=bytearray)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def greeted(self) -> None:
        """Read until the host says what is there. Raises LinkError."""
        assert self.process.stdout is not None  # noqa: S101 - PIPE was asked for
        noise = 0
        while line := await self.process.stdout.readline():
            if line.startswith(GREETING):
                found = parse_json(line[len(GREETING) :])
                if not isinstance(found, dict):
                    break
                self.versions = {str(name): str(value)[:WORDS_MAX] for name, value in found.items()}
                if self.versions.get("leadline") != _core.version():
                    there = self.versions.get("leadline")
                    raise NoLeadlineError(f"has leadline {there}, and {_core.version()} runs here")
                return
            noise += len(line)
            if noise > _NOISE_BYTES_MAX:
                raise LinkError("prints without end when it is logged in to")
        why = await self.death()
        raise LinkError(why) if self.process.returncode == _SSH_FAILED else NoLeadlineError(why)

    async def send(self, archive: Path) -> None:
        """Copy an archive to whatever reads the host's input."""
        stream = self.process.stdin
        assert stream is not None  # noqa: S101
        with archive.open("rb") as file, suppress(ConnectionError):  # who reads its output is about to say so
            while piece := file.read(_PIECE_BYTES):
                stream.write(piece)
                await stream.drain()

    async def listen(self) -> None:
        """Hand over answers until the process ends or sends what is no answer."""
        stream = self.process.stdout
        assert stream is not None  # noqa: S101
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                number, size = HEADER.unpack(await stream.readexactly(HEADER.size))
                if size > REPLY_BYTES_MAX:
                    return
                data = await stream.readexactly(size)
                future = self.waiting.pop(number, None)
                if future is not None and not future.done():
                    future.set_result(data)

    async def hear(self) -> None:
        """Keep the last that ssh and Python say there."""
        stream = self.process.stderr
        assert stream is not None  # noqa: S101
        while data := await stream.read(1 << 12):
            self.talk += data
            del self.talk[:-_TALK_BYTES_MAX]

    async def ask(self, name: str, arguments: Sequence[Any]) -> bytes:
        """The answer to a call. Raises LinkError where the process ends before."""
        import msgpack  # type: ignore[import-untyped]

        data = msgpack.packb((name, arguments), unicode_errors="surrogateescape")
        number = next(self.numbers)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.waiting[number] = answer
        stream = self.process.stdin
        assert stream is not None  # noqa: S101
        try:
            with suppress(ConnectionError):  # who reads its answers is about to say so
                stream.write(HEADER.pack(number, len(data)) + data)
                await stream.drain()
            return await answer
        finally:
            self.waiting.pop(number, None)

    async def death(self) -> str:
        """Why the process ended, by the last that was said."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), _END_S)
        lines = self.talk.decode("utf-8", "replace").strip().splitlines()
        last = lines[-1].strip().removeprefix("ssh: ")[:WORDS_MAX] if lines else ""
        code = self.process.returncode
        if not self.versions:
            failed = "cannot be reached by SSH" if code == _SSH_FAILED else f"starts no {self.what}"
            return f"{failed}: {last or f'exit code {code}'}"
        how = "closed its output" if code is None else f"ended with exit code {code}"
        what = "process" if self.host.through else "SSH connection"
        return f"its {what} {how}{f': {last}' if last else ''}"

    async def end(self) -> None:
        """End the process: the host's side ends with its input."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            await asyncio.wait_for(self.process.wait(), _END_S)
        except TimeoutError:
            with suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()
        # What nobody reads any more keeps the pipe open.
        assert self.process.stdout is not None  # noqa: S101
        with suppress(TimeoutError):
            await asyncio.wait_for(self.process.stdout.read(), _END_S)


class SshTransport:
    """The connections to the hosts of one command."""

    place = "the SSH connections of this command"
    process = "SSH connection"
    gone_remedy = "see that `ssh HOST` works without a question"
    unlike_remedy = "install there the leadline that is here, or name its Python in a hosts file: `python:`"

    def __init__(
        self, hosts: Sequence[HostAsked], copied: CopiedPackage | None = None, agents: Agents | None = None
    ) -> None:
        """Of hosts without leadline: `agents` run there, else leadline is `copied`; without both, neither."""
        self._hosts, self._copied, self._agents = hosts, copied, agents
        self._bare: set[str] = set()  # hosts that have no leadline of their own
        if any(host.through for host in hosts):
            self.process, self.gone_remedy = "process", "see that its lab is up: leadline lab status"
        self._links: dict[str, _Link] = {}
        self._notes: list[Callable[[str, str], None]] = []
        self._gone: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="leadline-ssh", daemon=True)
        self._thread.start()
        self._closed = False

    # -- as a transport -------------------------------------------------------------------------------

    def workers(self) -> list[CrewWorker]:
        """See `Transport`."""
        return [CrewWorker(link.host.name, address) for address, link in list(self._links.items())]

    async def versions(self, address: str, end: float) -> dict[str, Any]:
        """As the host said when it was connected to."""
        del end
        link = self._links.get(address)
        return dict(link.versions) if link is not None else {}

    async def call(self, function: Callable[..., Any], address: str, arguments: Sequence[Any]) -> CallResult:
        """See `Transport`."""
        link = self._links.get(address)
        if link is None:
            return CallResult(problem=self._gone.get(address, "it is not connected"), lost=True)
        try:
            return value_of(function, await link.ask(function.__name__, arguments))
        except LinkError as error:
            return CallResult(problem=str(error), lost=True)

    def runs(self) -> bool:
        """See `Transport`: hosts have nothing in common that could be gone."""
        return not self._closed

    def within(self, doing: Callable[..., Any], *arguments: Any) -> Any:
        """See `Transport`."""
        waited = asyncio.run_coroutine_threadsafe(doing(*arguments), self._loop)
        try:
            return waited.result()
        except KeyboardInterrupt:
            waited.cancel()
            raise

    def on_loss(self, note: Callable[[str, str], None]) -> None:
        """See `Transport`."""
        self._notes.append(note)

    @property
    def with_agents(self) -> list[str]:
        """The hosts on which an agent runs."""
        return sorted(link.host.name for link in self._links.values() if "agent" in link.versions)

    # -- connections ----------------------------------------------------------------------------------

    def connect(self, wait_s: float) -> dict[str, str]:
        """Connect to all hosts; why not, by the name of each that cannot be asked."""
        found: dict[str, str] = self.within(self._connect_all, wait_s)
        return found

    def close(self) -> None:
        """End all connections."""
        self._closed = True
        with suppress(Exception):
            self.within(self._close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_END_S)
        if not self._thread.is_alive():
            self._loop.close()

    async def _connect_all(self, wait_s: float) -> dict[str, str]:
        end = time.monotonic() + wait_s

        async def one(host: HostAsked) -> str:
            try:
                await self._connect(host, end)
            except LinkError as error:
                return str(error)
            return ""

        problems = await asyncio.gather(*(one(host) for host in self._hosts))
        return {host.name: why for host, why in zip(self._hosts, problems, strict=True) if why}

    async def _connect(self, host: HostAsked, end: float) -> None:
        """Start the call server of a host, which is copied there where it has none. Raises LinkError."""
        copied, agents = self._copied, self._agents
        if host.through or host.name not in self._bare:
            try:
                await self._start(host, max(end - time.monotonic(), 1.0))
                return
            except NoLeadlineError:
                if host.through or (copied is None and agents is None):
                    raise
        self._bare.add(host.name)
        if agents is not None:
            left_s = max(end - time.monotonic(), 1.0) + agents.size / _SLOWEST_BYTES_PER_S
            await self._start(host, left_s, agents=agents)
            return
        assert copied is not None  # noqa: S101 - one of both is there
        package = await asyncio.get_running_loop().run_in_executor(None, copied.package)
        left_s = max(end - time.monotonic(), 1.0) + package.size / _SLOWEST_BYTES_PER_S
        await self._start(host, left_s, package)

    async def _start(
        self, host: HostAsked, left_s: float, package: Package | None = None, agents: Agents | None = None
    ) -> None:
        line = package.start_line(SERVER) if package is not None else ""
        own = host.through if agents is None else agents.command(host)
        async with self._slots:
            try:
                process = await asyncio.create_subprocess_exec(
                    *(own or ssh_command(host, line)),
                    stdin=PIPE,
                    stdout=PIPE,
                    stderr=PIPE,
                    env=module_environment() if own else None,
                    start_new_session=True,
                )
            except FileNotFoundError:
                raise LinkError(
                    "cannot be reached by SSH: there is no `ssh` here (package openssh-client)"
                ) from None
            except OSError as error:
                raise LinkError(f"cannot be reached by SSH: {error.strerror or error}") from None
            link = _Link(host, f"ssh://{host.name}#{next(self._numbers)}", process)
            link.what = "leadline" if agents is None else "agent"
            hearing = asyncio.ensure_future(link.hear())
            sending = asyncio.ensure_future(link.send(package.archive)) if package is not None else None
            try:
                await asyncio.wait_for(link.greeted(), left_s)
            except (TimeoutError, LinkError, ValueError) as error:
                if sending is not None:
                    sending.cancel()
                await link.end()
                await hearing
                if isinstance(error, LinkError):
                    raise
                if isinstance(error, ValueError):
                    raise LinkError("does not answer as leadline does") from None
                raise LinkError(f"does not answer within {left_s:.3g} s") from None
            except asyncio.CancelledError:  # by Ctrl-C: nobody waits for it to end by itself
                with suppress(ProcessLookupError):
                    process.kill()
                raise
            self._links[link.address] = link
            self._keep(self._attend(link, hearing))

    def _keep(self, doing: Any) -> None:
        task = asyncio.ensure_future(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _attend(self, link: _Link, hearing: asyncio.Future[None]) -> None:
        """Listen to a host until its process ends; then connect again, for as long as this lasts."""
        beating = asyncio.ensure_future(self._beat(link))
        try:
            await link.listen()
        finally:
            beating.cancel()
        self._links.pop(link.address, None)
        await link.end()
        await hearing
        why = await link.death()
        self._gone[link.address] = why
        for note in self._notes:
            note(link.address, why)
        for answer in list(link.waiting.values()):
            if not answer.done():
                answer.set_exception(LinkError(why))
        while not self._closed:
            await asyncio.sleep(_AGAIN_S)
            with suppress(LinkError):
                await self._connect(link.host, time.monotonic() + _CALL_S)
                return

    async def _beat(self, link: _Link) -> None:
        """Call, that the host knows its command is there."""
        while True:
            await asyncio.sleep(_CALL_S)
            with suppress(LinkError):
                await link.ask("clock", ())

    async def _close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(link.end() for link in self._links.values()), return_exceptions=True)


class Agents:
    """The agents that this installation carries: each is a process here, which reaches its host by SSH."""

    def __init__(self, files: Mapping[str, AgentFile]) -> None:
        self._files = files
        self.size = max(file.size for file in files.values())

    def command(self, host: HostAsked) -> list[str]:
        """What stands here for a host."""
        files = {machine: str(file.path) for machine, file in self._files.items()}
        asked = {"name": host.name, "command": ssh_command(host, LINE), "files": files}
        return module_command(PROXY, json.dumps(asked))


class CopiedPackage:
    """The installation that runs here, packed once a host needs it; the archive goes with the command."""

    def __init__(self, top: Path, say: Callable[[str], None]) -> None:
        self._top, self._say = top, say
        self._lock, self._stack = threading.Lock(), ExitStack()
        self._package: Package | None = None

    def package(self) -> Package:
        """The archive. Raises LinkError where it cannot be made."""
        with self._lock:
            if self._package is None:
                self._say("a host has no leadline: packing this installation for it")
                try:
                    directory = self._stack.enter_context(temporary(Path(tempfile.gettempdir())))
                    self._package = pack(self._top, directory)
                except (OSError, LeadlineError) as error:
                    raise LinkError(f"has no leadline, and it cannot be copied there: {error}") from error
                self._say(f"copying leadline to hosts: {format_size(self._package.size)} each")
            return self._package

    def close(self) -> None:
        """Remove the archive."""
        self._stack.close()


@contextmanager
def reached(
    asked: HostsAsked, say: Callable[[str], None], gaps: dict[str, str] | None = None
) -> Iterator[SshTransport]:
    """Connections to the hosts of `asked`, for as long as the block lasts.

    Raises UsageError where one cannot be asked. With `gaps` such hosts are named there, with the reason.
    """
    top, files = own_installation(), carried() if not asked.needs else {}
    copied = CopiedPackage(top, say) if top is not None else None
    transport = SshTransport(asked.hosts, copied, Agents(files) if files else None)
    try:
        problems = transport.connect(asked.wait_s)
        if problems and gaps is None:
            raise _refused(problems, asked)
        if gaps is not None:
            gaps.update(problems)
        if transport.with_agents:
            say(_agent_words(transport.with_agents))
        yield transport
    finally:
        transport.close()
        if copied is not None:
            copied.close()


def _agent_words(hosts: Sequence[str]) -> str:
    """Where agents run, and what nobody observes there: once for all."""
    return (
        f"no leadline on {_named(hosts)}: its agent runs there, and observes processor, memory, disks,"
        " network and TCP. Ceph's daemons, clients and clusters are not observed from there"
    )


def _refused(problems: Mapping[str, str], asked: HostsAsked) -> UsageError:
    hosts = asked.hosts
    alike: dict[str, list[str]] = {}
    for name, why in problems.items():
        alike.setdefault(why, []).append(name)
    shown = [f"{_named(names)}: {why}" for why, names in list(alike.items())[:_SHOWN]]
    more = f"; and {len(alike) - _SHOWN} other reasons" if len(alike) > _SHOWN else ""
    if any(host.through for host in hosts):
        return UsageError(
            f"{len(problems)} of {len(hosts)} hosts cannot be asked. {'; '.join(shown)}{more}",
            "`leadline lab exec HOST -- leadline --version` must work for each",
        )
    return UsageError(
        f"{len(problems)} of {len(hosts)} hosts cannot be asked by SSH. {'; '.join(shown)}{more}",
        _remedy(asked.needs),
    )


def _remedy(needs: str) -> str:
    if not needs:
        return (
            "`ssh HOST` must work for each without a question; a hosts file names users and keys; `leadline"
            " doctor` shows the agents for hosts that have no leadline (docs/many-hosts.md)"
        )
    return (
        "`ssh HOST PYTHON -m leadline --version` must work for each without a question; a hosts file names"
        f" users, keys and Pythons; hosts need leadline for {needs}, and the bundle alone copies itself to"
        " those that have none (docs/many-hosts.md)"
    )


def _named(hosts: Sequence[str]) -> str:
    return ", ".join(hosts[:_SHOWN]) + (f" and {len(hosts) - _SHOWN} more" if len(hosts) > _SHOWN else "")
