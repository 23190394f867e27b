"""An action tried with the values of a form: what it would do, and doing it. For worker threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from acp_core.model import Action, Outcome, Preview
from acp_tui.actions import forms


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
