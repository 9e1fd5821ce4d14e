"""OpenSSH's server for tests: on a port of its own, for one key, with keys of its own, in any namespace."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import leadline

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
PACKAGE = Path(leadline.__file__).parents[1]  # what is tested here is tested there
_START_S = 20.0
_TRIED = "import socket, sys; sys.exit(socket.socket().connect_ex((sys.argv[1], int(sys.argv[2]))) and 1)"
# In a namespace, too, where `ports` cannot look: from the same range, outside that of outgoing connections.
_FREE = """
import random, socket
for port in random.sample(range(10_000, 32_000), 200):
    try:
        socket.socket().bind(("127.0.0.1", port))
    except OSError:
        continue
    print(port)
    break
"""


@contextmanager
def ssh_server(
    directory: Path, address: str = "127.0.0.1", before: Sequence[str] = (), variables: str = ""
) -> Iterator[int]:
    """The port. `directory` gets `id`, a user's key, and `known`, the server's; several may share both.

    `before` stands before the command, as `ip netns exec NAME` does. `variables`, NAME=VALUE, are set there.
    """
    for name in ("id", "host"):
        if not (directory / name).exists():
            key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name)]
            subprocess.run(key, check=True)
    found = subprocess.run([*before, sys.executable, "-c", _FREE], capture_output=True, check=True, text=True)
    port = int(found.stdout)
    Path("/run/sshd").mkdir(exist_ok=True)
    config = directory / f"sshd_config-{address}"
    config.write_text(
        f"ListenAddress {address}\nPort {port}\nHostKey {directory}/host\nUsePAM no\nPidFile none\n"
        f"AuthorizedKeysFile {directory}/id.pub\nStrictModes no\nPermitRootLogin yes\n"
        f"SetEnv XDG_STATE_HOME={directory}/state PYTHONPATH={PACKAGE} {variables}\n"
    )
    with (directory / "known").open("a") as known:
        known.write(f"[{address}]:{port} {(directory / 'host.pub').read_text()}")
    server = subprocess.Popen([*before, SSHD, "-D", "-f", str(config)], stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + _START_S
        tried = [*before, sys.executable, "-c", _TRIED, address, str(port)]
        while subprocess.run(tried, check=False).returncode:
            assert time.monotonic() < end
            time.sleep(0.05)
        yield port
    finally:
        server.terminate()
        server.wait(10)
