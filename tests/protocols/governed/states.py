"""States that runs and initiatives come to, made once; and damage that is done to them."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from tests.protocols.governed import making, multi, playing
from tests.protocols.governed.acting import (
    accept,
    approve_gate,
    dispatch,
    escalate,
    initialise,
    reject_gate,
    reject_turn,
    step,
)
from tests.protocols.governed.acting import (
    hand_in as hand_in,
)
from tests.protocols.governed.acting import (
    state as state,
)
from tests.protocols.governed.making import Object
from tests.support.examples import MEMORY

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
HOME = ".agentxchain"
STATE = f"{HOME}/state.json"
PLANS = {
    ".planning/PM_SIGNOFF.md": "Approved: YES\n",
    ".planning/ROADMAP.md": "# Roadmap\n\nOne lamp.\n",
    ".planning/SYSTEM_SPEC.md": "## Purpose\n\nLight.\n\n## Interface\n\nA switch.\n\n"
    "## Acceptance Tests\n\nIt lights.\n",
}
Making = Callable[[Path], object]


def _new(root: Path) -> None:
    playing.repository(root)
    initialise(root)
    for name, text in PLANS.items():
        (root / name).write_text(text)
    playing.git(root, "add", "-A")
    playing.git(root, "commit", "-qm", "Scaffold")
    shutil.rmtree(root / ".git/hooks")


def _given_out(root: Path) -> None:
    _new(root)
    dispatch(root)


def _staged(root: Path) -> None:
    _given_out(root)
    hand_in(root, phase_transition_request="implementation")


def _unsound(root: Path) -> None:
    _given_out(root)
    hand_in(root, status="done", objections=[])


def _at_gate(root: Path) -> None:
    _staged(root)
    accept(root)


def _building(root: Path) -> None:
    _at_gate(root)
    approve_gate(root)


def _rejected_gate(root: Path) -> None:
    _at_gate(root)
    reject_gate(root, "Plan the switch")


def _rejected_turn(root: Path) -> None:
    _staged(root)
    reject_turn(root, "Again")


def _used_up(root: Path) -> None:
    _rejected_turn(root)
    dispatch(root)
    reject_turn(root, "Again")


def _asks(root: Path) -> None:
    _given_out(root)
    hand_in(root, status="needs_human", needs_human_reason="Which lamp?")
    accept(root)


def _escalated(root: Path) -> None:
    _building(root)
    escalate(root, "Two roles contradict each other")


def _foreign(root: Path) -> None:
    turn = {making.TURN: making.turn()}
    making.make_run(root, of_state=making.state(active_turns=turn))


def _migrated(root: Path) -> None:
    waits = {"status": "paused", "blocked_on": "human:migration-review", "run_id": None}
    making.make_run(root, of_state=making.state(**waits))


RUNS: dict[str, Making] = {
    "new": _new, "given out": _given_out, "staged": _staged, "unsound": _unsound,
    "at its gate": _at_gate, "building": _building, "gate rejected": _rejected_gate,
    "turn rejected": _rejected_turn, "attempts used up": _used_up, "asks": _asks,
    "escalated": _escalated, "the other program's": _foreign, "migrated": _migrated,
}  # fmt: skip


def _one_waits(root: Path) -> None:
    multi.begin(root)
    multi.asks(root, "web")
    step(root)


def _gate_open(root: Path) -> None:
    multi.begin(root)
    multi.all_ask(root)
    step(root)


def _past(root: Path) -> None:
    multi.begin(root)
    multi.all_ask(root)
    multi.approve(root)


INITIATIVES: dict[str, Making] = {
    "begun": lambda root: multi.begin(root), "one waits": _one_waits, "gate open": _gate_open,
    "past the barrier": _past,
}  # fmt: skip


@functools.cache
def _made(kind: str, name: str) -> Path:
    """It stays when the folders of the test are removed that wanted it first."""
    place = Path(tempfile.mkdtemp(prefix="acp-states-", dir=MEMORY or "/tmp"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    (RUNS if kind == "run" else INITIATIVES)[name](place / "work")
    return place / "work"


def run_in(root: Path, name: str) -> Path:
    """A run in one of `RUNS`."""
    shutil.copytree(_made("run", name), root, symlinks=True, dirs_exist_ok=True)
    return root


def initiative_in(root: Path, name: str) -> Path:
    """An initiative in one of `INITIATIVES`."""
    shutil.copytree(_made("initiative", name), root, symlinks=True)
    return root


# --- damage ------------------------------------------------------------------------------------


def _cut(name: str) -> Making:
    def cut(root: Path) -> None:
        path = root / name
        if path.exists():
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    return cut


def _gone(name: str) -> Making:
    return lambda root: (root / name).unlink(missing_ok=True)


def _text(name: str, text: str) -> Making:
    def write(root: Path) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)

    return write


def _line(name: str, line: str) -> Making:
    def add(root: Path) -> None:
        with (root / name).open("a") as log:
            log.write(f"{line}\n")

    return add


def _edit(**more: object) -> Making:
    def edit(root: Path) -> None:
        try:
            before = json.loads((root / STATE).read_text())
        except (OSError, ValueError):
            return
        if isinstance(before, dict):
            making.write(root / STATE, before | more)

    return edit


def _configure(change: Callable[[Object], object]) -> Making:
    def configure(root: Path) -> None:
        try:
            config = json.loads((root / "agentxchain.json").read_text())
        except ValueError:
            return
        change(config)
        making.configure(root, config)

    return configure


def _runtimes(config: Object) -> None:
    config["runtimes"] = {name: {"type": "telepathy"} for name in config["runtimes"]}


def _veto(config: Object) -> None:
    config["hooks"] = {"before_acceptance": [
        {"name": "veto", "command": ["false"], "mode": "blocking"}]}  # fmt: skip


def _old_note(root: Path) -> None:
    path = root / f"{HOME}/transactions/txn_1.json"
    making.write(path, {"kind": "accept_turn", "status": "prepared"})
    os.utime(path, (1_700_000_000, 1_700_000_000))


DAMAGE: dict[str, Making] = {
    "state gone": _gone(STATE),
    "state cut": _cut(STATE),
    "state empty": _text(STATE, ""),
    "state a list": _text(STATE, "[]"),
    "another phase": _edit(phase="verification"),
    "no phase": _edit(phase="dreaming"),
    "no status": _edit(status="asleep"),
    "paused": _edit(status="paused", pending_phase_transition=None),
    "blocked by nothing": _edit(status="blocked", blocked_on=None, blocked_reason=None),
    "active and blocked": _edit(status="active", blocked_on="human:why"),
    "no id": _edit(run_id=None),
    "no turns": _edit(active_turns={}),
    "completed": _edit(status="completed"),
    "history cut": _cut(f"{HOME}/history.jsonl"),
    "history gone": _gone(f"{HOME}/history.jsonl"),
    "history torn": _line(f"{HOME}/history.jsonl", "{torn"),
    "ledger forged": _line(f"{HOME}/decision-ledger.jsonl", '{"type": "gate_approved"}'),
    "ledger torn": _line(f"{HOME}/decision-ledger.jsonl", "["),
    "events gone": _gone(f"{HOME}/events.jsonl"),
    "events torn": _line(f"{HOME}/events.jsonl", "[["),
    "seal gone": _gone(".acp/governed-seal.json"),
    "copy gone": _gone(".acp/governed-state.json"),
    "configuration cut": _cut("agentxchain.json"),
    "runtimes unknown": _configure(_runtimes),
    "a hook may block": _configure(_veto),
    "no routing": _configure(lambda config: config.pop("routing", None)),
    "left half written": _old_note,
    "git broken": _gone(".git/HEAD"),
}  # fmt: skip
