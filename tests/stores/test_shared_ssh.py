"""A store that is reached by ssh: a server on this machine, with keys and known hosts of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stores import mirrors, ssh
from tests.stores.hosts import ID, Host, repository, started

pytestmark = pytest.mark.skipif(bool(ssh.MISSING), reason=ssh.MISSING)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ssh.Server]:
    with ssh.server(tmp_path / "sshd") as running:
        yield running


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose name leaves room for that of a socket."""
    with tempfile.TemporaryDirectory(prefix="acp", dir="/tmp", ignore_cleanup_errors=True) as name:
        yield Path(name)


@pytest.mark.slow
def test_two_hosts_over_ssh_and_what_is_said_without_a_key(
    server: ssh.Server, tmp_path: Path, short: Path
) -> None:
    store = repository(tmp_path)
    a, b = Host("a", short), Host("b", short)
    for host in (a, b):
        host.env["GIT_SSH_COMMAND"] = server.command
    started(a)
    url = server.url(store, ID)
    a.done_here("share", url, "--yes")
    b.done("join", url, str(b.folder))
    a.write("proposal.md", "# P\n")
    a.appended("writer", "proposal_submitted", "--reply-to", "1")
    b.appended("reader", "review_submitted", "--reply-to", "2", "--review", "Fine.")
    a.sync()
    assert a.files() == b.files() and len(a.log()) == 3
    sockets = [each for each in (a.home / "cache" / "ssh").iterdir() if each.is_socket()]
    assert sockets, "the connection is kept open"
    b.env["GIT_SSH_COMMAND"] = server.command.replace(
        f"{server.place}/key", f"{server.place}/nokey"
    )
    ran = b.acp_here("sync", "--once")
    assert ran.returncode in (0, 6)  # a connection that is still open serves
    b.env["GIT_SSH_COMMAND"] += " -o ControlPath=none"
    ran = b.acp_here("sync", "--once")
    assert ran.returncode == 6 and "does not accept this account's key" in ran.stderr
    (server.place / "known").write_text("", encoding="utf-8")
    a.env["GIT_SSH_COMMAND"] = f"{server.command} -o ControlPath=none"
    ran = a.acp_here("sync", "--once")
    assert ran.returncode == 6 and "key is not known here" in ran.stderr
    assert not (a.home / ".ssh").exists()


def test_a_server_that_is_gone(tmp_path: Path) -> None:
    store = repository(tmp_path)
    a = Host("a", tmp_path)
    started(a)
    with ssh.server(tmp_path / "sshd") as running:
        a.env["GIT_SSH_COMMAND"] = f"{running.command} -o ControlPath=none"
        a.done_here("share", running.url(store, ID), "--yes")
    ran = a.append("writer", "proposal_submitted", "--reply-to", "1")
    assert ran.returncode == 6
    assert "not appended: the store ssh://" in ran.stderr and "Connection refused" in ran.stderr
    assert len(a.log()) == 1


@pytest.mark.slow
def test_a_mirror_over_ssh_and_a_decision_from_there(
    server: ssh.Server, tmp_path: Path, short: Path
) -> None:
    url = server.url(repository(tmp_path))
    own, public = mirrors.key(tmp_path, "anna")
    alpha = mirrors.conductor(
        short, mirrors.gated_run, accept=["decide"], deciders=[f"anna {public}"]
    )
    alpha.env["GIT_SSH_COMMAND"] = server.command
    alpha.done_here("share", url, "--id", mirrors.ID, "--yes")
    try:
        beta = mirrors.configured(Host("beta", short), sign=own)
        beta.env["GIT_SSH_COMMAND"] = server.command
        beta.done("join", f"{url}#{mirrors.ID}", str(beta.folder))
        assert mirrors.same_files(alpha, beta)
        assert mirrors.done_by(
            "alpha", beta, "act", str(beta.folder), "approve_gate", "--comment", "Agreed", "--yes"
        )
        mirrors.follow(alpha, beta)
    finally:
        alpha.acp_here("unshare", "--yes")
