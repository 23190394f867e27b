"""Hosts of a mirrored collaboration: one that conducts it, and others that see it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.protocols.cycle import making as cycles
from tests.protocols.governed import making as runs
from tests.protocols.governed import multi
from tests.protocols.workspaces import making as workspaces
from tests.stores.hosts import Host
from tests.support.waiting import until

ID = "run"
GATE = {
    "from": "planning",
    "to": "implementation",
    "gate": "planning_done",
    "requested_by_turn": runs.TURN,
}


def gated_run(root: Path) -> None:
    """A governed run whose gate waits for a human."""
    waits = {"status": "paused", "blocked_on": "human_approval:planning_done"}
    of_state = runs.state(**waits, pending_phase_transition=GATE)
    runs.make_run(root, of_state=of_state, history=(runs.accepted(),))


def undecided_cycle(root: Path) -> None:
    """A cycle in which a decision is to be made."""
    root.mkdir()
    cycles.cycle(root, coordination=cycles.coordination(pending_decisions=[cycles.decision()]))


def stuck_cycle(root: Path) -> None:
    """A cycle in which a decision is to be made, and an agent waits for answers."""
    root.mkdir()
    blockers = [cycles.blocker(), cycles.blocker(id="BLK-002", description="No account")]
    waits = cycles.coordination(pending_decisions=[cycles.decision()], blockers=blockers)
    cycles.cycle(root, coordination=waits)


def contested_run(root: Path) -> None:
    """A governed run in which an objection stands."""
    runs.make_run(root, history=(runs.accepted(),))


def partial_workspaces(root: Path) -> None:
    """Sub-agents, one of which did only a part."""
    workspaces.run(root)
    workspaces.agent(root, "ben", "partial")


def initiative_at_barrier(root: Path) -> None:
    """An initiative all of whose workstreams wait at a barrier."""
    multi.begin(root)
    multi.all_ask(root)


def conductor(place: Path, make: Callable[[Path], object], **settings: object) -> Host:
    """The host that conducts a collaboration; ``folder`` holds it."""
    host = configured(Host("alpha", place), **settings)
    host.folder = host.home / "work"
    make(host.folder)
    return host


def configured(host: Host, **settings: object) -> Host:
    """A host with settings of its own."""
    lines = [f'host = "{host.name}"', *(f"{k} = {json.dumps(v)}" for k, v in settings.items())]
    text = "[share]\n" + "\n".join(lines) + "\n"
    (host.home / "config" / "config.toml").write_text(text, encoding="utf-8")
    return host


def reader(place: Path, store: str, **settings: object) -> Host:
    """A host that has joined the mirror."""
    host = configured(Host("beta", place), **settings)
    host.done("join", f"{store}#{ID}", str(host.folder))
    return host


def key(place: Path, name: str) -> tuple[str, str]:
    """A new ssh key: its file, and its public part as settings list it."""
    path = place / f"key-{name}"
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)]
    subprocess.run(words, check=True)
    return str(path), path.with_suffix(".pub").read_text(encoding="utf-8").strip()


def account_of(store: str) -> str:
    """The account of a database's address; anybody's name for a repository."""
    where, _, path = store.partition("@")
    return where.rpartition("/")[2] if path else "nobody"


def place_of(host: Host) -> Path:
    """Where the files of the mirror lie in a reader's folder."""
    (found,) = (host.folder / ".acp/mirror/1/2/3/4").iterdir()
    return found


def content(root: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Files by name."""
    return {name: (root / name).read_bytes() for name in names}


def mirrored(host: Host) -> list[str]:
    """The names of the files that a reader's mirror holds."""
    return [each[0] for each in json.loads((host.folder / "mirror.json").read_bytes())["files"]]


def same_files(alpha: Host, beta: Host) -> bool:
    """Whether the mirror holds byte for byte what the conductor's host has."""
    names = mirrored(beta)
    return bool(names) and content(alpha.folder, names) == content(place_of(beta), names)


def shown(host: Host) -> dict[str, Any]:
    """What a host sees."""
    seen: dict[str, Any] = json.loads(host.done_here("show", "--json"))["snapshot"]
    return seen


def follow(alpha: Host, beta: Host) -> None:
    """Wait until the reader has what the conductor's host has, by its own looks."""

    def same() -> bool:
        beta.sync()
        return same_files(alpha, beta)

    until(same, "the mirror to follow")


def done_by(name: str, host: Host, *words: str) -> bool:
    """Ask the host that controls a run, from another one; whether it did it, however long that takes."""
    said = host.done(*words)
    if "has not answered yet" not in said:
        return f"{name}: done" in said

    def answered() -> str:
        asked = json.loads(host.done_here("hosts", "--json"))["requests"]
        return str(asked[-1]["state"])

    return until(answered, f"the answer of {name}") == "done"
