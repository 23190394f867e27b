"""What the actions have in common: their inputs, what they show beforehand, and how they end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from acp_core.agents.presets import PresetError
from acp_core.files.text import clean_line
from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.protocols.workspaces.schema import Agent, Run
from acp_core.protocols.workspaces.write import Refused
from acp_core.protocols.workspaces.write import manifest as manifests
from acp_core.protocols.workspaces.write.layout import Layout
from acp_core.protocols.workspaces.write.manifest import Manifest
from acp_core.protocols.workspaces.write.writing import Step

Fields = dict[str, Any]
LINES: dict[str, Any] = {"format": "multiline"}
_ID = 200  # characters of a name, as Snapshots show it


@dataclass(frozen=True, slots=True)
class Desk:
    """The run that the actions are about, as it stands when they are listed."""

    place: Layout
    run: Run
    manifest: Manifest

    @property
    def folder(self) -> str:
        """The run's folder, safe to show."""
        return safe(str(self.place.root))


def safe(text: str) -> str:
    """One line of any text, safe to show."""
    return clean_line(text, 2_000)


def shown(name: str) -> str:
    """A name as Snapshots show it, and as forms offer it."""
    return clean_line(name, _ID)


def names(agents: Iterable[Agent]) -> dict[str, str]:
    """What a form offers for agents, and whom it means."""
    return {shown(agent.name): agent.name for agent in agents}


def choice(values: Iterable[str]) -> Any:
    """A choice between these."""
    return Literal[tuple(values)]


def text(title: str, about: str = "", default: str = "", *, lines: bool = False) -> tuple[Any, Any]:
    """A text that may stay empty."""
    extra = LINES if lines else None
    return str, Field(default, title=title, description=about, json_schema_extra=extra)


def wanted(title: str, about: str = "") -> tuple[Any, Any]:
    """A text that must be given."""
    return str, Field(min_length=1, title=title, description=about, json_schema_extra=LINES)


def action(
    name: str,
    label: str,
    sentence: str,
    fields: Fields,
    preview: Callable[[Any], Preview],
    perform: Callable[[Any], Outcome],
    *,
    risky: bool = False,
) -> Action:
    """An action whose refusals, wherever they come from, are told and not raised."""

    def shown_before(answers: Any) -> Preview:
        try:
            return preview(answers)
        except (Refused, PresetError, OSError) as error:
            return Preview("", refused=reason(error))

    def done(answers: Any) -> Outcome:
        try:
            return perform(answers)
        except (Refused, PresetError, OSError) as error:
            return Outcome(OutcomeState.REFUSED, reason(error))

    inputs: type[BaseModel] = create_model("".join(map(str.capitalize, name.split("_"))), **fields)
    return Action(name, label, safe(sentence), inputs, shown_before, done, risky=risky)


def writing(
    name: str,
    label: str,
    sentence: str,
    fields: Fields,
    desk: Desk,
    step: Callable[[Any], Step],
    command: Callable[[Any], list[str]],
    after: Callable[[Any], str] | None = None,
) -> Action:
    """An action that writes files, planned by ``step``.

    Args:
        name, label, sentence, fields: the action's.
        desk: the run.
        step: plans it from the answers.
        command: the words that do the same.
        after: what is done when that is written; it returns a sentence on that, or "".
    """

    def preview(answers: Any) -> Preview:
        planned = step(answers)
        words = ["acp", "workspaces", *command(answers)]
        return previewed(planned, words)

    def perform(answers: Any) -> Outcome:
        done = manifests.act(desk.place, lambda: step(answers))
        more = after(answers) if after else ""
        return Outcome(OutcomeState.DONE, safe(f"{done.sentence} {more}".strip()))

    return action(name, label, sentence, fields, preview, perform)


def previewed(step: Step, command: Iterable[str] = ()) -> Preview:
    """What a step would do."""
    return Preview(
        safe(step.sentence),
        tuple(write.change() for write in step.writes),
        tuple(safe(word) for word in command),
        tuple(safe(each) for each in step.warnings),
        notes=tuple(safe(each) for each in step.notes),
    )


def reason(error: Exception) -> str:
    """Why something is not done."""
    if isinstance(error, OSError):
        said = error.strerror or str(error) or type(error).__name__
        return safe(f"{error.filename}: {said}" if error.filename else said)
    return safe(str(error))
