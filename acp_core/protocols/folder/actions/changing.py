"""A document changed on a person's word: previewed, done under the lock, a copy of it kept.

It appends no event.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from acp_core.files.text import clean_line
from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.protocols.folder.actions import writing
from acp_core.protocols.folder.actions.display import file_change, refusal
from acp_core.protocols.folder.actions.events import model_of
from acp_core.protocols.folder.write import Refused, backups
from acp_core.protocols.folder.write.edits import Edit
from acp_core.protocols.folder.write.opened import Opened, lock

Change = Callable[[str, Any], str]
"""The new text of the old one and of what the person gave; raises Refused."""


def changing(
    opened: Opened,
    document: str,
    name: str,
    label: str,
    sentence: str,
    fields: dict[str, Any],
    change: Change,
) -> Action:
    """The action that changes one of the folder's documents.

    Args:
        opened: the collaboration.
        document: the document's name.
        name, label, sentence: the action's.
        fields: what is asked, as for `model_of`.
        change: makes the new text.
    """
    folder = opened.folder

    def edit(answers: Any) -> Edit:
        return writing.edit(folder, document, lambda text: change(text, answers))

    def preview(answers: Any) -> Preview:
        try:
            made = edit(answers)
        except (Refused, OSError) as error:
            return Preview("", refused=refusal(error))
        if made.before == made.after:
            return Preview("", refused="nothing would change")
        shown = file_change(made.path, made.name, made.before, made.after)
        sentence = f"Change {document}; a copy of it is kept."
        return Preview(sentence, changes=(shown,), warnings=_at_work(opened, document))

    def perform(answers: Any) -> Outcome:
        try:
            with lock(folder):
                made = edit(answers)
                if made.before == made.after:
                    raise Refused("nothing would change")
                backups.keep(folder, document, made.before, datetime.now(UTC))
                made.apply()
        except (Refused, OSError) as error:
            return Outcome(OutcomeState.REFUSED, refusal(error))
        return Outcome(OutcomeState.DONE, f"Changed {document}.")

    return Action(name, label, sentence, model_of(name, fields), preview, perform)


def _at_work(opened: Opened, document: str) -> tuple[str, ...]:
    """Who may be writing the document just now, because it is their turn."""
    writes = {"reviewing": "review.md", "decision_review": "readiness.md"}
    if writes.get(opened.machine.phase) != document or not opened.machine.waiting:
        return ()
    names = ", ".join(clean_line(name, 60) for name in opened.machine.waiting)
    return (f"{names} may be writing {document} at this moment: look whether your change stays",)
