"""A document changed on a person's word: previewed, done under the lock, a copy of it kept.

It appends no event.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.model.action_spec import ActionSpec, Field
from acp_core.model.errors import Refused
from acp_core.model.text import clean_name
from acp_core.protocols.folder.actions import writing
from acp_core.protocols.folder.actions.common import OpenFolder
from acp_core.protocols.folder.actions.display import file_change
from acp_core.protocols.folder.write import edits
from acp_core.protocols.folder.write.edits import Edit
from acp_core.protocols.folder.write.opened import Opened, lock
from acp_core.protocols.kit.binding import Narrowed, bound
from acp_core.protocols.kit.values import Values

Change = Callable[[str, Values], str]
"""The new text of the old one and of what the person gave; raises Refused."""


def changing(
    spec: ActionSpec,
    here: OpenFolder,
    document: str,
    change: Change,
    *,
    fields: tuple[Field, ...] | None = None,
    narrowed: Narrowed | None = None,
) -> Action:
    """The action that changes one of the folder's documents.

    Args:
        spec: its description.
        here: the collaboration.
        document: the document's name.
        change: makes the new text.
        fields, narrowed: what is asked otherwise than in the description now.
    """
    folder = here.opened.folder

    def edit(values: Values) -> Edit:
        made = writing.edit(folder, document, lambda text: change(text, values))
        if made.before == made.after:
            raise Refused("nothing would change")
        return made

    def preview(values: Values) -> Preview:
        made = edit(values)
        shown = file_change(made.path, made.name, made.before, made.after)
        sentence = f"Change {document} and keep a copy of the old version."
        return Preview(sentence, changes=(shown,), warnings=_at_work(here.opened, document))

    def perform(values: Values) -> Outcome:
        with lock(folder):
            made = edit(values)
            edits.keep(folder, document, made.before, datetime.now(UTC))
            made.apply()
        return Outcome(OutcomeState.DONE, f"Changed {document}.")

    return bound(spec, here, preview, perform, fields=fields, narrowed=narrowed)


def _at_work(opened: Opened, document: str) -> tuple[str, ...]:
    """Who may be writing the document just now, because it is their turn."""
    writes = {"reviewing": "review.md", "decision_review": "readiness.md"}
    if writes.get(opened.machine.phase) != document or not opened.machine.waiting:
        return ()
    names = ", ".join(clean_name(name, 60) for name in opened.machine.waiting)
    return (
        f"{names} may be writing {document} now: check that your change is still there afterwards",
    )
