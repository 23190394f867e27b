"""Collaborations of other protocols in a store: a read-only mirror, filled by the host that conducts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stores import mirrors
from tests.stores.hosts import Host
from tests.stores.mirrors import (
    ID,
    conductor,
    gated_run,
    initiative_at_barrier,
    reader,
    same_files,
    undecided_cycle,
)

Shared = Callable[..., Host]


@pytest.fixture
def share(store: str, tmp_path: Path) -> Iterator[Shared]:
    """Shares a collaboration from a host; ends what keeps the mirrors there."""
    made: list[Host] = []

    def begin(make: Callable[[Path], object], **settings: object) -> Host:
        host = conductor(tmp_path, make, **settings)
        made.append(host)
        host.done("share", str(host.folder), store, "--id", ID, "--yes")
        return host

    yield begin
    for host in made:
        host.acp("unshare", str(host.folder), "--yes")


@pytest.mark.slow
@pytest.mark.parametrize("make", [gated_run, undecided_cycle, initiative_at_barrier])
def test_what_one_host_conducts_is_seen_on_another(
    share: Shared, make: Callable[[Path], object], store: str, tmp_path: Path
) -> None:
    alpha = share(make)
    beta = reader(tmp_path, store)
    assert same_files(alpha, beta)
    here, there = mirrors.shown(beta), mirrors.shown(alpha)
    for name in ("protocol", "phase", "status", "participants", "gates", "panels"):
        assert here[name] == there[name], name
    assert here["hosts"] == ["alpha"] and here["collaboration"] == str(beta.folder)
    assert there["headline"].startswith(here["headline"])  # why it rests is alpha's to say


def test_a_gate_is_approved_from_another_host_by_who_is_proven(
    share: Shared, store: str, tmp_path: Path
) -> None:
    own, public = key(tmp_path, "anna")
    other, _ = key(tmp_path, "mallory")
    is_git = store.startswith("git")
    admin = store.partition("://")[2].partition("@")[0]
    alpha = share(gated_run)
    beta = reader(tmp_path, store)
    approve = ("act", str(beta.folder), "approve_gate", "--comment", "Agreed")
    before = state(alpha)

    def refused(words: str) -> None:
        ran = beta.acp(*approve)
        assert ran.returncode == 2 and words in ran.stderr, (ran.stdout, ran.stderr)
        assert state(alpha) == before

    if is_git:
        refused("alpha follows only signed requests")
        configured(beta, sign=own)
    refused("the owner of alpha does not accept decide requests")
    configured(alpha, accept=["decide"])
    refused("who asks is not proven, or the owner of this host did not list them")
    configured(alpha, accept=["decide"], deciders=[f"anna {public}", "nobody"])
    if is_git:
        configured(beta, sign=other)
    refused("who asks is not proven")
    configured(beta, sign=own)
    configured(alpha, accept=["decide"], deciders=[f"anna {public}", admin])
    assert "Ask alpha, which controls this run" in beta.done(*approve, "--dry-run")
    assert "alpha: done" in beta.done(*approve)
    assert state(alpha)["phase"] == "implementation"
    ledger = (alpha.folder / ".agentxchain/decision-ledger.jsonl").read_text(encoding="utf-8")
    assert ('"anna"' if is_git else f'"{admin}"') in ledger, ledger
    mirrors.follow(alpha, beta)
    assert mirrors.shown(beta)["phase"] == "implementation"


def state(host: Host) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((host.folder / ".agentxchain/state.json").read_bytes())
    return found
