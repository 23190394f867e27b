"""How an action of a governed run is made: previewed as its writes, done under the lock, or handed
to the existing program where that made the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, Field, create_model

from acp_core.files.text import clean_line
from acp_core.files.transaction import Write
from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.protocols.governed.conduct import existing_program
from acp_core.protocols.governed.state import Move
from acp_core.protocols.governed.write import Refused
from acp_core.protocols.governed.write import changes as shown
from acp_core.protocols.governed.write.opened import Opened, look, refuse_agents, who

Fields = dict[str, Any]
"""Name -> (type, pydantic field), as `pydantic.create_model` takes them."""

LINES: dict[str, Any] = {"format": "multiline"}
# last in every form: what is typed at once is a comment, and no name
BY: Fields = {
    "by": (str, Field(title="Who decides", description="Whose decision it is; recorded.")),
}

Plan = Callable[[Opened, Any], tuple[Move | None, Sequence[Write]]]
"""What the action would write, of the run and of what was given. Raises Refused."""


def now() -> datetime:
    """The time."""
    return datetime.now(UTC)


def comment(title: str, description: str, *, needed: bool = False) -> tuple[Any, Any]:
    """A field for a few sentences."""
    extra: dict[str, Any] = {"title": title, "description": description, "json_schema_extra": LINES}
    return (str, Field(min_length=1, **extra)) if needed else (str, Field("", **extra))


def named() -> dict[str, object]:
    """The default for who decides: the user."""
    try:
        return {"by": who()}
    except Refused:
        return {}


def safe(text: str) -> str:
    """One line of any text, safe to show."""
    return clean_line(text, 2_000)


def refusal(error: Refused | OSError) -> str:
    """Why something is not done."""
    if isinstance(error, Refused):
        return safe(str(error))
    reason = error.strerror or str(error)
    return safe(f"{error.filename}: {reason}" if error.filename else reason)


def acting(
    opened: Opened,
    verb: str,
    name: str,
    label: str,
    sentence: str,
    fields: Fields,
    plan: Plan,
    perform: Callable[[Any], str],
    *,
    told: Callable[[Opened, Any], tuple[str, tuple[str, ...]]],
    words: Callable[[Any], Mapping[str, str]] = lambda _: {},
    defaults: Mapping[str, object] | None = None,
    risky: bool = False,
) -> Action:
    """An action of a governed run.

    Args:
        opened: the run as it was looked at.
        verb: the verb of `acp governed` that does the same.
        name, label, sentence, fields, defaults, risky: the action's.
        plan: what it would write.
        perform: does it, and says what was done. Raises Refused or OSError.
        told: the preview's sentence and its warnings.
        words: what the existing program is told besides its verb, see `existing.words`.
    """
    root = str(opened.root)

    def handed(given: Any) -> list[str]:
        return existing_program.words(opened.run, verb, **words(given))

    def preview(given: Any) -> Preview:
        try:
            refuse_agents()
            fresh = look(root)
            said, warnings = told(fresh, given)
            found = existing_program.program(fresh.run)
            if found is not None and handed(given):
                more = _not_kept(given)
                command = (existing_program.NAME, *handed(given))
                return Preview(safe(said), (), command, (*map(safe, warnings), *more))
            move, writes = plan(fresh, given)
            changes = shown.changes(fresh, move, writes)
        except (Refused, OSError) as error:
            return Preview("", refused=refusal(error))
        return Preview(safe(said), changes, (), tuple(map(safe, warnings)))

    def do(given: Any) -> Outcome:
        try:
            refuse_agents()
            fresh = look(root)
            if existing_program.program(fresh.run) is not None and handed(given):
                ran = existing_program.hand_over(fresh.root, handed(given))
                state = OutcomeState.DONE if ran.ok else OutcomeState.REFUSED
                return Outcome(state, safe(f"{existing_program.NAME}: {ran.said}"))
            return Outcome(OutcomeState.DONE, safe(perform(given)))
        except (Refused, OSError) as error:
            return Outcome(OutcomeState.REFUSED, refusal(error))

    model: type[BaseModel] = create_model(name.title().replace("_", ""), **fields)
    return Action(name, label, sentence, model, preview, do, dict(defaults or {}), risky)


def _not_kept(given: Any) -> tuple[str, ...]:
    if getattr(given, "comment", ""):
        return (f"{existing_program.NAME} keeps no comment: yours is not written down",)
    return ()
