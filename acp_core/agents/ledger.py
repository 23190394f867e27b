"""What this account's programs took on each day, of all collaborations: a line for each run."""

from __future__ import annotations

import contextlib
import json
import os
from datetime import datetime
from pathlib import Path

from acp_core.agents.budgets import Spent
from acp_core.agents.state import Run
from acp_core.files import atomic
from acp_core.person import paths

_KEPT = 40  # days


def note(run: Run, folder: str, participant: str, now: datetime) -> None:
    """Add a run that ended; a full disk loses it."""
    path = _file(now)
    facts = {
        "at": now.isoformat(),
        "collaboration": folder,
        "participant": participant,
        "tokens": run.tokens_in + run.tokens_out,
        "cost": run.cost,
        "unpriced": run.unpriced,
    }
    with contextlib.suppress(OSError):
        atomic.private_folder(path.parent)
        if not path.exists():
            _prune(path.parent)
        how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        opened = os.open(path, how, 0o600)
        try:
            os.write(opened, json.dumps(facts).encode() + b"\n")
        finally:
            os.close(opened)


def of_day(now: datetime) -> Spent:
    """What runs took that ended on the same local day."""
    total = Spent()
    with contextlib.suppress(OSError):
        for line in _file(now).read_bytes().splitlines():
            with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
                facts = json.loads(line)
                cost = float(facts["cost"] or 0.0)
                total += Spent(int(facts["tokens"]), cost, bool(facts["unpriced"]))
    return total


def _file(now: datetime) -> Path:
    return paths.state_folder() / "spent" / f"{now.astimezone():%Y-%m-%d}.jsonl"


def _prune(folder: Path) -> None:
    for old in sorted(folder.glob("*.jsonl"))[:-_KEPT]:
        old.unlink(missing_ok=True)
