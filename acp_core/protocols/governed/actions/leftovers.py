"""What was left half done, or was changed by others: finished, brought back, taken, set aside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from acp_core.model.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.protocols.governed.actions.build import now, refusal, safe
from acp_core.protocols.governed.read import unfinished
from acp_core.protocols.governed.write import Refused, decide
from acp_core.protocols.governed.write import changes as shown
from acp_core.protocols.governed.write import set_aside as aside
from acp_core.protocols.governed.write.accept import reserved_changed
from acp_core.protocols.governed.write.journal import interrupted
from acp_core.protocols.governed.write.opened import Opened, look, refuse_agents


class Nothing(BaseModel):
    """Nothing is asked."""


def recover(root: str) -> Action:
    """Finish what a killed command had begun."""

    def preview(given: Any) -> Preview:
        left = interrupted(Path(root))
        if left is None:
            return Preview("", refused="nothing was interrupted")
        told = f"Finish “{left.what}”: {left.done} of {left.total} files are written."
        return Preview(safe(told))

    def perform(given: Any) -> Outcome:
        try:
            became = decide.recover(root)
        except (Refused, OSError) as error:
            return Outcome(OutcomeState.REFUSED, refusal(error))
        if became is None:
            return Outcome(OutcomeState.DONE, "Nothing was interrupted.")
        how = "Finished" if became.completed else f"Taken back ({became.reason})"
        return Outcome(OutcomeState.DONE, safe(f"{how}: {became.what}."))

    return Action(
        "recover",
        "Finish what was interrupted",
        "A command was killed while it wrote; finish it, or take it back.",
        Nothing,
        preview,
        perform,
    )


def take_files(opened: Opened) -> Action | None:
    """Take the run's own files as they are, although somebody but acp wrote them."""
    if not reserved_changed(opened):
        return None

    def told(fresh: Opened) -> Preview:
        names = reserved_changed(fresh)
        if not names:
            return Preview("", refused="nobody but acp wrote the run's files")
        changes = tuple(
            Change(safe(name), "replace", shown.since_sealed(fresh.root, name)) for name in names
        )
        return Preview("Take these files with what others changed in them.", changes)

    def done(root: str) -> str:
        decide.recover(root, forget=True)
        return "The files are taken as they are."

    return _unasked(
        opened,
        "take_files",
        "Take the files as they are",
        "Somebody but acp wrote the run's own files, and you have looked at what changed.",
        told,
        done,
    )


def bring_back(opened: Opened) -> Action | None:
    """Put the state back as acp wrote it last, where somebody else changed it since."""
    try:
        decide.bringing_back(opened)
    except Refused:
        return None

    def told(fresh: Opened) -> Preview:
        changes = shown.changes(fresh, None, [decide.bringing_back(fresh)])
        return Preview("Put the state back as acp wrote it last.", changes)

    def done(root: str) -> str:
        decide.bring_back(root)
        return "The state is as acp wrote it last."

    return _unasked(
        opened,
        "bring_back",
        "Bring the state back",
        "Somebody but acp changed the run's state; undo that.",
        told,
        done,
    )


def set_aside(opened: Opened) -> Action | None:
    """Set aside what the existing program left half written, None where it left nothing."""
    if not opened.run.unfinished:
        return None

    def told(fresh: Opened) -> Preview:
        changes = shown.changes(fresh, None, aside.setting_aside(fresh, now()))
        begun = "; ".join(unfinished.told(each) for each in fresh.run.unfinished[:10])
        return Preview(safe(f"Set aside what the agentxchain program left of {begun}."), changes)

    def done(root: str) -> str:
        return safe(f"Set aside; kept as {', '.join(aside.set_aside(root, now()))}.")

    return _unasked(
        opened,
        "set_aside",
        "Set aside what was left unfinished",
        "The agentxchain program began to write and did not finish; its note is kept elsewhere.",
        told,
        done,
    )


def _unasked(
    opened: Opened,
    name: str,
    label: str,
    sentence: str,
    told: Callable[[Opened], Preview],
    done: Callable[[str], str],
) -> Action:
    """A risky action that asks for nothing.

    ``told`` says of the run as it is then what would be done; ``done`` does it, and says what was.
    """
    root = str(opened.root)

    def preview(given: Any) -> Preview:
        try:
            refuse_agents()
            return told(look(root))
        except (Refused, OSError) as error:
            return Preview("", refused=refusal(error))

    def perform(given: Any) -> Outcome:
        try:
            return Outcome(OutcomeState.DONE, done(root))
        except (Refused, OSError) as error:
            return Outcome(OutcomeState.REFUSED, refusal(error))

    return Action(name, label, sentence, Nothing, preview, perform, risky=True)
