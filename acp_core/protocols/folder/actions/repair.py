"""Actions that mend a collaboration, or go on where it ended.

Source: folder protocol specification, "Phases" (``blocked`` and ``completed`` have no way out
but a new collaboration).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import Field

from acp_core.model import Action, Change, Outcome, OutcomeState, Preview
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.actions.display import file_change, new_file, refusal, safe
from acp_core.protocols.folder.actions.events import model_of
from acp_core.protocols.folder.actions.turns import LINES
from acp_core.protocols.folder.write import Refused, continuation, damage
from acp_core.protocols.folder.write import repair as mending
from acp_core.protocols.folder.write.opened import Opened, open_unlocked, path_of

_VERBS = {damage.CREATE: "create", damage.FINISH: "append"}


def repair(folder: str, planned: Sequence[str]) -> Action | None:
    """Mend the files, where something in them can be mended.

    Args:
        folder: the collaboration's.
        planned: what would be done, in sentences.
    """
    if not planned:
        return None
    shown: list[damage.Plan] = []  # what the last preview showed is what is done

    def preview(_: Any) -> Preview:
        try:
            plan = damage.diagnose(folder, datetime.now(UTC))
        except (Refused, OSError) as error:
            return Preview(sentence="", refused=refusal(error))
        shown[:] = [plan]
        if not plan.fixes:
            return Preview(sentence="", refused="there is nothing to mend any more")
        return Preview(
            sentence=safe("; ".join(fix.sentence for fix in plan.fixes)),
            changes=tuple(
                Change(safe(fix.path), _VERBS.get(fix.verb, "replace"), safe_diff(fix))
                for fix in plan.fixes
            ),
            command=("acp", "repair", safe(folder)),
            warnings=tuple(safe(f"cannot be mended: {reason}") for reason in plan.hopeless),
        )

    def perform(_: Any) -> Outcome:
        from acp_core.protocols.folder import rules

        try:
            plan = shown[0] if shown else damage.diagnose(folder, datetime.now(UTC))
            mending.repair(plan)
        except (Refused, OSError) as error:
            return Outcome(OutcomeState.REFUSED, refusal(error))
        verdict = rules.validate(folder).lines()
        word = "Fixed" if not verdict[0].endswith("failed") else "Mended, but not all is well"
        return Outcome(OutcomeState.DONE, safe(f"{word}: {'; '.join(verdict[:2])}"))

    return Action(
        name="repair",
        label="Repair",
        sentence=safe("; ".join(planned)),
        inputs=model_of("repair", {}),
        preview=preview,
        perform=perform,
    )


def safe_diff(fix: damage.Fix) -> str:
    """What a fix changes, safe to show."""
    if fix.verb == damage.CREATE:
        return new_file(fix.path, fix.after).diff
    return file_change(fix.path, fix.name, fix.before, fix.after).diff


def continue_elsewhere(opened: Opened) -> Action | None:
    """Go on in a new folder, once the collaboration has ended."""
    phase = opened.machine.phase
    if phase not in ("blocked", "completed"):
        return None
    folder = opened.folder
    try:
        target = continuation.new_folder(opened, None)
    except Refused:
        return None
    blocked = phase == "blocked"
    about = "Stands at the top of the new proposal, under what was said."
    answer = Field("", title="Answer", description=about, json_schema_extra=LINES)
    if blocked:
        answer = Field(min_length=1, title="Answer", description=about, json_schema_extra=LINES)
    fields = {
        "answer": (str, answer),
        "objective": (
            str,
            Field("", title="Objective", description="Blank: the same as before."),
        ),
        "folder": (str, Field(target, title="New folder", description="Must not exist yet.")),
    }

    def preview(answers: Any) -> Preview:
        try:
            here = open_unlocked(folder)
            plan = continuation.prepare(
                here,
                answers.folder,
                answers.answer,
                objective=answers.objective,
                now=datetime.now(UTC),
            )
        except (Refused, OSError) as error:
            return Preview(sentence="", refused=refusal(error))
        old = path_of(folder, schema.PROTOCOL_FILE)
        before = schema.encode_protocol(here.protocol)
        return Preview(
            sentence=safe(f"Start {plan.folder}, which carries on with what is here."),
            changes=(
                *(new_file(file.path, file.data) for file in plan.files),
                file_change(old, schema.PROTOCOL_FILE, before, plan.old_protocol),
            ),
            command=tuple(
                safe(word)
                for word in (
                    "acp",
                    "continue",
                    folder,
                    "--to",
                    plan.folder,
                    "--answer",
                    answers.answer,
                )
            ),
        )

    def perform(answers: Any) -> Outcome:
        try:
            continued = continuation.continue_in_new_folder(
                folder, answers.folder, answers.answer, objective=answers.objective
            )
        except (Refused, OSError) as error:
            return Outcome(OutcomeState.REFUSED, refusal(error))
        sentence = safe(f"Continued in {continued.folder}.")
        return Outcome(OutcomeState.DONE, sentence, location=continued.folder)

    return Action(
        name="continue",
        label="Continue in a new folder",
        sentence="Start a new collaboration that carries documents, decisions and participants on.",
        inputs=model_of("continue", fields),
        preview=preview,
        perform=perform,
    )
