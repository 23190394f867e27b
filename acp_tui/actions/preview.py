"""An action tried with the values of a form: what it would do, how it ended, as text with colours.

`evaluated` and `performed` are slow: for worker threads.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from textual.content import Content

from acp_core.model import Action, Change, Outcome, OutcomeState, Preview
from acp_core.model.format import count
from acp_tui import text
from acp_tui.actions import forms

DIFF_LINES = 400

"""How many lines of a file's difference are shown at most."""

_OUTCOMES = {
    OutcomeState.DONE: ("✓ Done", "$text-success"),
    OutcomeState.REQUESTED: ("… Queued, not applied yet", "$text-warning"),
    OutcomeState.REFUSED: ("✗ Refused, nothing was changed", "$text-error"),
    OutcomeState.UNKNOWN: ("? Result unknown", "$text-warning"),
}


def preview_content(preview: Preview, above: str = "") -> Content:
    """The sentence, warnings, notes, the change of every file, and the command that does the same.

    Args:
        preview: What the action would do.
        above: What stands above it on the screen already, and is not repeated.
    """
    parts: list[text.Part] = []
    if preview.sentence != above:
        parts += [(preview.sentence, "bold"), "\n"]
    if preview.refused and preview.refused != preview.sentence:
        parts.append((f"✗ {preview.refused}\n", "$text-error"))
    parts += [(f"! {warning}\n", "$text-warning") for warning in preview.warnings]
    parts += [(f"· {note}\n", text.MUTED) for note in preview.notes]
    for change in preview.changes:
        parts += ["\n" if parts else "", *_change(change)]
    if preview.command:
        parts += ["\n" if parts else "", ("The same from a shell\n", text.MUTED)]
        parts.append((shlex.join(preview.command) + "\n", "$text-accent"))
    return text.join(*parts)


def _change(change: Change) -> list[text.Part]:
    lines = change.diff.splitlines()
    parts: list[text.Part] = [
        (f"{change.verb} ", text.MUTED),
        (f"{text.safe_line(change.path)}\n", "bold"),
    ]
    for line in lines[:DIFF_LINES]:
        parts.append((f"{text.safe_line(line)}\n", _colour(line)))
    if len(lines) > DIFF_LINES:
        parts.append((f"… {count(len(lines) - DIFF_LINES, 'more line')}\n", text.MUTED))
    return parts


def _colour(line: str) -> str:
    if line.startswith(("+++", "---", "@@")):
        return text.MUTED
    return {"+": "$text-success", "-": "$text-error"}.get(line[:1], text.MUTED)


def outcome_line(outcome: Outcome) -> Content:
    """How it ended, as a row: the sign of how, then the sentence."""
    word, colour = _OUTCOMES[outcome.state]
    return text.join((f"{word[0]} ", colour), text.safe_line(outcome.sentence))


def outcome_content(outcome: Outcome) -> Content:
    """How it ended: a sign and a word, then the sentence."""
    word, colour = _OUTCOMES[outcome.state]
    return text.join((f"{word}\n\n", f"bold {colour}"), outcome.sentence)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a look at the form found: what is wrong with it, else what would be done."""

    errors: Mapping[str, str] = field(default_factory=dict)
    preview: Preview | None = None


def evaluated(action: Action, values: Mapping[str, object]) -> Evaluation:
    """What is wrong with the values of an action's inputs, else what it would do; slow."""
    from pydantic import ValidationError

    try:
        inputs = action.inputs.model_validate(dict(action.defaults) | dict(values))
    except ValidationError as error:
        return Evaluation(errors=forms.errors_by_field(error))
    return Evaluation(preview=action.preview(inputs))


def performed(action: Action, values: Mapping[str, object]) -> Outcome | Evaluation:
    """Do an action; what is wrong with the values where it cannot be tried. Slow."""
    from pydantic import ValidationError

    try:
        inputs = action.inputs.model_validate(dict(action.defaults) | dict(values))
    except ValidationError as error:
        return Evaluation(errors=forms.errors_by_field(error))
    return action.perform(inputs)
