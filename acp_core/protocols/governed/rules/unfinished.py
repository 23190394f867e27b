"""The rule for what the existing program began to write and did not finish.

Source: governed protocol specification, "Files": the history, the ledger and the state of a run
belong together; half of a writing is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from acp_core import model
from acp_core.model.text import clean_line
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.read.unfinished import Transaction, describe
from acp_core.protocols.governed.rules.finding import Trouble
from acp_core.protocols.governed.rules.guard import is_writing
from acp_core.protocols.governed.schema import act_names


def check_unfinished(run: Run, now: datetime) -> Iterator[Trouble]:
    """A trouble for each note that is left; none while that program is at work."""
    left = [each for each in run.unfinished if not each.is_fresh(now)]
    if not left or is_writing(run):
        return
    known = {line.value.get("turn_id") for line in run.history.lines}
    for each in left:
        name = clean_line(each.name, 300)
        message = f"The agentxchain program did not finish {describe(each)}"
        if each.reason:
            message = f"The agentxchain program left {name} behind, which {each.reason}"
        yield Trouble(
            "TRANSACTION", model.Severity.WARNING, f"{message}.",
            "Let that program finish, or review the file and set it aside (a copy is "
            "kept), so that acp can proceed.",
            name, group="A6", since=each.at, action=act_names.SET_ASIDE, root=True,
            evidence=tuple(_evidence(each, name, known)), about=clean_line(each.name, 150),
        )  # fmt: skip


def _evidence(each: Transaction, name: str, known: set[object]) -> Iterator[str]:
    yield f"{name} exists" + (f" with state {each.state}" if each.state else "")
    if each.turn in known:
        yield f"the history records {each.turn}"
    elif each.turn:
        yield f"the history does not record {each.turn}: its result may exist only in that file"
