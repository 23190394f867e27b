"""A server for ssh on this machine, for one account, with keys of its own."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.support.waiting import until

SSHD = shutil.which("sshd") or next((p for p in ("/usr/sbin/sshd",) if os.path.exists(p)), None)
MISSING = (
    "" if SSHD and shutil.which("ssh") and shutil.which("ssh-keygen") else "no OpenSSH server here"
)


class Server:
    """A running server; ``command`` is the ssh that knows it."""

    def __init__(self, place: Path, port: int) -> None:
        self.place, self.port = place, port
        self.command = (
            f"ssh -F none -i {place}/key -o IdentitiesOnly=yes -o UserKnownHostsFile={place}/known"
        )

    def url(self, path: Path, id: str = "") -> str:
        """The address of a repository at a path."""
        text = f"git+ssh://{getpass.getuser()}@127.0.0.1:{self.port}{path}"
        return f"{text}#{id}" if id else text


@contextlib.contextmanager
def server(place: Path, home: Path | None = None) -> Iterator[Server]:
    """Run a server whose only key is the one that was made for it.

    Args:
        place: for its files.
        home: where the commands of its guests run, in place of the account's home.
    """
    place.mkdir(mode=0o700)
    for name in ("host", "key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name)], check=True
        )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (place / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {place}/host\nAuthorizedKeysFile {place}/key.pub\n"
        f"PidFile {place}/pid\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n"
        "MaxStartups 100\n"
        + (f'ForceCommand cd {home} && exec sh -c "$SSH_ORIGINAL_COMMAND"\n' if home else ""),
        encoding="utf-8",
    )
    key = (place / "host.pub").read_text(encoding="utf-8").split()
    (place / "known").write_text(f"[127.0.0.1]:{port} {key[0]} {key[1]}\n", encoding="utf-8")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    assert SSHD is not None
    process = subprocess.Popen([SSHD, "-D", "-f", str(place / "config")], stderr=subprocess.PIPE)
    try:
        until(lambda: _answers(port), "the server for ssh")
        yield Server(place, port)
    finally:
        process.terminate()
        process.wait(timeout=20)


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as made:
            return made.recv(4) == b"SSH-"
    except OSError:
        return False
