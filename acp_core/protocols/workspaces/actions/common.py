"""What the actions have in common: the run that they are about, what they show, how they write."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from acp_core.model.action import Action, Preview
from acp_core.model.action_spec import ActionSpec
from acp_core.model.errors import Refused
from acp_core.model.text import clean_name
from acp_core.protocols.kit.binding import Context, Narrowed, planned
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe
from acp_core.protocols.workspaces import state
from acp_core.protocols.workspaces.read.manifest import Manifest, layout, read_manifest
from acp_core.protocols.workspaces.schema import Agent, Layout, Run
from acp_core.protocols.workspaces.write import dispatch
from acp_core.protocols.workspaces.write.step import Step, carry_out_act, require_unobstructed

_ID = 200  # characters of a name, as Snapshots show it


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run as it stands when its actions are bound to it."""

    place: Layout
    run: Run
    manifest: Manifest

    @property
    def key(self) -> str:
        """The run's folder."""
        return str(self.place.root)

    @property
    def is_integrated(self) -> bool:
        """Whether nothing is left to do but to finish anew."""
        return state.of_run(self.run).startswith("integrated") and all(state.steps(self.run))


def open_run(context: Context, now: datetime) -> OpenRun:
    """The run that an action is bound to; read where nobody did.

    Raises:
        Refused: no run is prepared there, or it cannot be read.
    """
    if isinstance(context, OpenRun):
        return context
    place = layout(context.key)
    run = dispatch.read_run(place, now)
    try:
        return OpenRun(place, run, read_manifest(place))
    except Refused:
        require_unobstructed(place, "", run)  # it says what mends that, too
        raise


def display_name(name: str) -> str:
    """A name as Snapshots show it, and as forms offer it."""
    return clean_name(name, _ID)


def names(agents: Iterable[Agent]) -> dict[str, str]:
    """What a form offers for agents, and whom it means."""
    return {display_name(agent.name): agent.name for agent in agents}


def choice(values: Iterable[str], default: str | None = None, **more: Any) -> dict[str, Any]:
    """A field as a choice between these, here and now."""
    return {"choices": tuple(dict.fromkeys(values)), "default": default, **more}


def writing(
    spec: ActionSpec,
    run: OpenRun,
    step: Callable[[Values], Step],
    after: Callable[[Values], str] | None = None,
    *,
    narrowed: Narrowed | None = None,
    sentence: str = "",
    offered: bool = True,
) -> Action:
    """An action that writes files, planned by ``step``.

    Args:
        spec: its description.
        run: the run.
        step: plans it from the values.
        after: what is done when that is written; it returns a sentence on that, or "".
        narrowed, sentence: what is otherwise than in the description now.
        offered: whether lists offer it now.
    """

    def guarded(values: Values) -> Step:
        require_unobstructed(run.place, spec.name)
        return step(values)

    return planned(
        spec,
        run,
        guarded,
        previewed,
        lambda plan: carry_out_act(run.place, spec.name, plan),
        after=after,
        narrowed=narrowed,
        sentence=sentence,
        offered=offered,
    )


def previewed(step: Step) -> Preview:
    """What a step would do."""
    return Preview(
        safe(step.sentence),
        step.changes(),
        (),
        tuple(safe(each) for each in step.warnings),
        notes=tuple(safe(each) for each in step.notes),
    )
