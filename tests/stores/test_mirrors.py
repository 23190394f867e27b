"""Collaborations of other protocols in a store: a read-only mirror, filled by the host that conducts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from acp_core.files import claims
from acp_core.files.claims import ClaimError
from tests.protocols.cycle import making as cycles
from tests.protocols.governed import multi
from tests.protocols.workspaces import running
from tests.stores import mirrors
from tests.stores.hosts import Host
from tests.stores.mirrors import (
    ID,
    account_of,
    conductor,
    configured,
    contested_run,
    gated_run,
    initiative_at_barrier,
    key,
    partial_workspaces,
    reader,
    same_files,
    stuck_cycle,
    undecided_cycle,
)
from tests.support.waiting import until

Shared = Callable[..., Host]


@pytest.fixture
def share(store: str, tmp_path: Path) -> Iterator[Shared]:
    """Shares a collaboration from a host; ends what keeps the mirrors there."""
    made: list[Host] = []

    def begin(make: Callable[[Path], object], **settings: object) -> Host:
        host = conductor(tmp_path, make, **settings)
        made.append(host)
        host.done_here("share", store, "--id", ID, "--yes")
        return host

    yield begin
    for host in made:
        host.acp_here("unshare", "--yes")


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
    assert here["hosts"] == ["alpha"]
    assert there["headline"].startswith(here["headline"])  # why it rests is alpha's to say


@pytest.mark.slow
def test_a_gate_is_approved_from_another_host_by_who_is_proven(
    share: Shared, store: str, tmp_path: Path
) -> None:
    own, public = key(tmp_path, "anna")
    other, _ = key(tmp_path, "mallory")
    is_git = store.startswith("git")
    admin = account_of(store)
    alpha = share(gated_run)
    beta = reader(tmp_path, store)
    approve = ("act", str(beta.folder), "approve_gate", "--comment", "Agreed")
    before = state(alpha)

    def refused(words: str) -> None:
        ran = beta.acp(*approve, "--yes")
        said = " ".join((ran.stdout + ran.stderr).split())
        assert ran.returncode == 2 and words in said, said
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
    assert mirrors.done_by("alpha", beta, *approve, "--yes")
    assert state(alpha)["phase"] == "implementation"
    ledger = (alpha.folder / ".agentxchain/decision-ledger.jsonl").read_text(encoding="utf-8")
    assert ('"anna"' if is_git else f'"{admin}"') in ledger, ledger
    mirrors.follow(alpha, beta)
    assert mirrors.shown(beta)["phase"] == "implementation"


def state(host: Host) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((host.folder / ".agentxchain/state.json").read_bytes())
    return found


@pytest.fixture
def decided(share: Shared, store: str, tmp_path: Path) -> Callable[..., tuple[Host, Host]]:
    """Makes a conductor's host that accepts whatever anna decides, and hers."""

    def both(make: Callable[[Path], object], *accept: str) -> tuple[Host, Host]:
        own, public = key(tmp_path, "anna")
        admin = account_of(store)
        alpha = share(make, accept=accept, deciders=[f"anna {public}", admin])
        return alpha, reader(tmp_path, store, sign=own)

    return both


Decided = Callable[..., tuple[Host, Host]]


def counts_only_if_proven(alpha: Host, beta: Host, *words: str) -> None:
    """Ask for an act that decides: first as somebody whom nobody listed, then as who is."""
    before, kept = mirrored_files(alpha, beta), (alpha.home / "config/config.toml").read_text()
    configured(alpha, accept=["stop", "decide"])
    act = ("act", str(beta.folder), *words, "--yes")
    ran = beta.acp(*act)
    said = " ".join((ran.stdout + ran.stderr).split())
    assert ran.returncode == 2 and "who asks is not proven" in said, ran
    assert mirrored_files(alpha, beta) == before
    (alpha.home / "config/config.toml").write_text(kept)
    assert mirrors.done_by("alpha", beta, *act), words

    def changed() -> bool:
        beta.sync()
        return mirrored_files(alpha, beta) != before

    until(changed, "the mirror to change")
    mirrors.follow(alpha, beta)


def mirrored_files(alpha: Host, beta: Host) -> dict[str, bytes]:
    return mirrors.content(alpha.folder, mirrors.mirrored(beta))


@pytest.mark.slow
def test_a_cycle_is_decided_answered_and_paused_from_another_host(decided: Decided) -> None:
    alpha, beta = decided(stuck_cycle, "stop", "decide")
    words = ("--decision", "DEC-001", "--choice", "1", "--rationale", "The smaller one")
    counts_only_if_proven(alpha, beta, "decide", *words)
    counts_only_if_proven(alpha, beta, "resolve", "--blocker", "BLK-002", "--resolution", "Made")
    held = json.loads((alpha.folder / cycles.STATE).read_bytes())
    (made,) = held["coordination"]["pending_decisions"]
    _, answered = held["coordination"]["blockers"]
    assert made["rationale"] == "The smaller one", made
    assert answered["resolution"] == "Made", answered
    configured(alpha, accept=["stop"])  # which counts whoever asks
    assert mirrors.done_by("alpha", beta, "act", str(beta.folder), "pause", "--yes")
    assert json.loads((alpha.folder / cycles.STATE).read_bytes())["status"] == "paused"


@pytest.mark.slow
def test_an_objection_is_answered_and_a_run_is_stopped_from_another_host(decided: Decided) -> None:
    alpha, beta = decided(contested_run, "stop", "decide")
    words = ("--objection", "OBJ-001", "--status", "acknowledged", "--comment", "A switch follows")
    counts_only_if_proven(alpha, beta, "mark_objection", *words)
    ledger = (alpha.folder / ".agentxchain/decision-ledger.jsonl").read_text(encoding="utf-8")
    assert "A switch follows" in ledger
    configured(alpha, accept=["stop"])
    stop = ("act", str(beta.folder), "escalate", "--reason", "Two roles disagree", "--yes")
    assert mirrors.done_by("alpha", beta, *stop)
    assert state(alpha)["status"] == "blocked"


@pytest.mark.slow
def test_a_barrier_of_an_initiative_is_approved_from_another_host(decided: Decided) -> None:
    alpha, beta = decided(initiative_at_barrier, "decide")
    alpha.done("governed", "coordinator", "step", str(alpha.folder))
    mirrors.follow(alpha, beta)
    counts_only_if_proven(alpha, beta, "approve_barrier", "--comment", "One format")
    phases = [multi.state(alpha.folder, name)["phase"] for name in multi.NAMES]
    assert phases == ["implementation"] * 3


@pytest.mark.slow
def test_a_result_of_workspaces_is_judged_from_another_host(decided: Decided) -> None:
    alpha, beta = decided(partial_workspaces, "decide")
    counts_only_if_proven(
        alpha, beta, "triage", "--agent", "ben", "--decision", "accept", "--reason", "Enough"
    )


@pytest.mark.slow
def test_an_agent_of_workspaces_is_stopped_from_another_host(
    decided: Decided, tmp_path: Path
) -> None:
    def make(root: Path) -> None:
        running.prepare(root, "ann")

    alpha, beta = decided(make, "stop")
    words = running.program(tmp_path / "own", ann="silent")
    alpha.done(
        "workspaces", "dispatch", str(alpha.folder), "--limit", "1", "--detach", "--", *words
    )
    claim = claims.of_participant("ann")
    until(lambda: claims.seen(alpha.folder, claim).child, "ann to be at work")

    def offered() -> bool:
        beta.sync()
        return "stop" in [
            each["name"] for each in json.loads((beta.folder / "mirror.json").read_bytes())["acts"]
        ]

    until(offered, "what can be asked for")
    refused = beta.acp_here("act", "triage", "--yes")
    assert refused.returncode == 2
    assert mirrors.done_by(
        "alpha", beta, "act", str(beta.folder), "stop", "--agent", "ann", "--yes"
    )
    assert claims.seen(alpha.folder, claim).child is None


@pytest.mark.slow
def test_nobody_acts_in_a_mirror_and_nobody_else_fills_it(
    share: Shared, store: str, tmp_path: Path
) -> None:
    alpha = share(gated_run)
    beta = reader(tmp_path, store)
    inner = mirrors.place_of(beta)
    before = state(alpha)
    for folder in (beta.folder, inner):
        ran = beta.acp("governed", "approve-gate", str(folder), "--yes")
        assert ran.returncode == 2 and "controls this run" in ran.stderr, (ran.stdout, ran.stderr)
    assert state(alpha) == before and same_files(alpha, beta)
    with pytest.raises(ClaimError, match=r"alpha .* controls this run"):
        claims.take(beta.folder, claims.CONDUCT)
    gamma = configured(Host("gamma", tmp_path))
    gamma.folder = gamma.home / "work"
    gated_run(gamma.folder)
    ran = gamma.acp_here("share", store, "--id", ID, "--yes")
    assert ran.returncode == 2 and "alpha (" in ran.stderr and "controls this run" in ran.stderr
    assert not (gamma.folder / ".acp/share.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("store", ["git"], indirect=True)
def test_what_agents_write_in_a_folder_reaches_nothing(
    decided: Decided, store: str, tmp_path: Path
) -> None:
    alpha, beta = decided(gated_run, "decide")
    approve = ("act", str(beta.folder), "approve_gate", "--comment", "Agreed", "--yes")
    before = state(alpha)
    # An agent of beta changes what beta's person sees: they decide about something that nobody has.
    forged = mirrors.place_of(beta) / ".agentxchain/state.json"
    forged.chmod(0o600)
    forged.write_text(json.dumps(before | {"phase": "verification"}), encoding="utf-8")
    ran = beta.acp(*approve)
    assert ran.returncode == 2 and "moved on since this was shown" in ran.stdout + ran.stderr
    # It has the mirror be another one's: the store's is put back, and what is asked names it.
    (beta.folder / "mirror.json").unlink()
    beta.sync()
    assert same_files(alpha, beta)
    # An agent of alpha has the folder be shared elsewhere, or be a reader's.
    share = alpha.folder / ".acp/share.json"
    kept = share.read_text(encoding="utf-8")
    share.write_text(kept.replace("#run", "#other"), encoding="utf-8")
    ran = alpha.acp_here("sync", "--once")
    assert ran.returncode == 2 and "another program changed it" in ran.stderr
    share.write_text(kept, encoding="utf-8")
    assert state(alpha) == before
