"""One event with which a turn is taken, as prompts and diagnoses name it.

Source: folder protocol specification, "Phases" and "Events".
"""

from __future__ import annotations

import os
from typing import NamedTuple

from acp_core.model.turn import Brief


class Step(NamedTuple):
    """One event with which a turn is taken.

    Attributes:
        event: its name; ``doc`` the document that it names.
        needs: paths of the documents that are written before.
        what: what to do before it, in words.
        reply_to: the seq that it answers.
        role: of a deliverable event.
        draft: file name of the text that goes with it and is first written as a draft.
        optional: the turn may be taken without it.
    """

    event: str
    doc: str
    needs: tuple[str, ...]
    what: str
    reply_to: int
    role: str = ""
    draft: str = ""
    optional: bool = False

    def draft_path(self, brief: Brief) -> str:
        """Where its draft is written."""
        return os.path.join(brief.drafts, self.draft)

    def paths(self, brief: Brief) -> tuple[str, ...]:
        """The files that change before the event can be appended."""
        return (*self.needs, self.draft_path(brief)) if self.draft else self.needs
