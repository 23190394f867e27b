"""Where an agent listens, and the command that shows it on another machine."""

from __future__ import annotations

import errno
import fcntl
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from acp_core.protocols.wire.conduct.agent import Config
from acp_core.protocols.wire.network.agent_directory import Running, claimed, running_agents
from acp_core.protocols.wire.schema.basics import HTTP_OFFSET
from acp_core.protocols.wire.serving import process
from tests.protocols.wire.support import ROOT


@pytest.mark.parametrize(
    ("link", "http", "command"),
    [
        ("acp://10.0.0.2:7801/tok_1", "http://10.0.0.2:7901", "acp acp://10.0.0.2:7801/tok_1"),
        ("acp://[::1]:7801/tok_1", "http://[::1]:7901", "acp acp://[::1]:7801/tok_1"),
        (  # a link does not say where HTTP is: it has it looked for at the usual place
            "acp://10.0.0.2:7801/tok_1",
            "http://10.0.0.2:8000",
            "ACP_WIRE_TOKEN=tok_1 acp http://10.0.0.2:8000",
        ),
    ],
)
def test_the_command_finds_http_wherever_it_is(link: str, http: str, command: str) -> None:
    assert Running("A", 1, link, http, "own").shown_by == command


async def test_a_port_that_the_system_chose_is_chosen_again_where_its_neighbour_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    really = process.bind

    def bind(host: str, port: int) -> socket.socket:
        if port and not taken:  # the first one for HTTP
            taken.append(port)
            raise OSError(errno.EADDRINUSE, "Address already in use")
        return really(host, port)

    monkeypatch.setattr(process, "bind", bind)
    agent = await process.open_agent(Config(name="A", port=0, sync="normal"), tmp_path)
    try:
        peers, web = await process._sockets(agent)
        with peers, web:
            assert web.getsockname()[1] == peers.getsockname()[1] + HTTP_OFFSET
        assert taken
    finally:
        await agent.close()


GONE = """
import os, signal, sys
from acp_core.protocols.wire.network.agent_directory import Running, announce_running, claimed
with claimed("A") as folder:
    announce_running(folder, Running("A", os.getpid(), "", "", ""))
    os.kill(os.getpid(), signal.SIGKILL)
"""
LOOKS = """
from acp_core.protocols.wire.network.agent_directory import running_agents
print(sum(len(running_agents()) for _ in range(1500)))
"""
STARTS = """
from acp_core.protocols.wire.network.agent_directory import claimed
for _ in range(150):
    with claimed("A"):
        pass
print(0)
"""


def _python(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def test_an_agent_that_was_killed_runs_for_nobody_however_many_look() -> None:
    assert _python(GONE).wait() == -signal.SIGKILL
    looking = [_python(LOOKS) for _ in range(4)]
    assert [each.communicate()[0].strip() for each in looking] == ["0"] * 4
    looking = [_python(LOOKS), _python(LOOKS), _python(STARTS)]
    assert [each.communicate()[0].strip() for each in looking] == ["0"] * 3


def test_an_agent_starts_though_somebody_looks_for_long_whether_it_runs() -> None:
    with claimed("A") as folder:
        pass
    with open(folder / "lock", "rb") as looked:
        fcntl.flock(looked, fcntl.LOCK_SH)
        done = threading.Timer(1.0, lambda: fcntl.flock(looked, fcntl.LOCK_UN))
        done.start()
        with claimed("A"):
            assert not running_agents()
        done.join()
