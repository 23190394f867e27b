"""What the acts on a run have in common: the run that they are about, how they are planned, shown and written.

An act that writes is one plan (`write_act`): shown as a preview, and made again under the lock. Also
which acts are offered now, and which programs can be chosen: those of before, presets, a command.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from acp_core.agents.presets import PresetError, is_installed
from acp_core.model.action import Action, Preview
from acp_core.model.action_spec import ActionSpec
from acp_core.model.errors import Refused
from acp_core.model.text import clean_name
from acp_core.protocols.kit.binding import (
    Context,
    Location,
    Narrowed,
    bind_all,
    bind_named,
    planned,
)
from acp_core.protocols.kit.owner_inputs import AS_BEFORE
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe
from acp_core.protocols.workspaces import state
from acp_core.protocols.workspaces.acts import table
from acp_core.protocols.workspaces.acts.table import DRAFTING, FINISHING, REPAIRING
from acp_core.protocols.workspaces.conduct import team
from acp_core.protocols.workspaces.conduct.team import Choice
from acp_core.protocols.workspaces.read import manifest as manifest_module
from acp_core.protocols.workspaces.read.manifest import Manifest, layout, read_manifest
from acp_core.protocols.workspaces.schema import Agent, Layout, Run
from acp_core.protocols.workspaces.write.step import Step, carry_out_act, require_unobstructed

if TYPE_CHECKING:
    from acp_core.model.action import Action

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
    run = manifest_module.read_run(place, now)
    try:
        return OpenRun(place, run, read_manifest(place))
    except Refused:
        require_unobstructed(place, "", run)  # it says what mends that, too
        raise


def shown_name(name: str) -> str:
    """A name as Snapshots show it, and as forms offer it."""
    return clean_name(name, _ID)


def offered_names(agents: Iterable[Agent]) -> dict[str, str]:
    """What a form offers for agents, and whom it means."""
    return {agent.shown: agent.name for agent in agents}


def choices_now(values: Iterable[str], default: str | None = None, **more: Any) -> dict[str, Any]:
    """A field as a choice between these, here and now."""
    return {"choices": tuple(dict.fromkeys(values)), "default": default, **more}


def write_act(
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
        preview_of,
        lambda plan: carry_out_act(run.place, spec.name, plan),
        after=after,
        narrowed=narrowed,
        sentence=sentence,
        offered=offered,
    )


def preview_of(step: Step) -> Preview:
    """What a step would do."""
    return Preview(
        safe(step.sentence),
        step.changes(),
        (),
        tuple(safe(each) for each in step.warnings),
        notes=tuple(safe(each) for each in step.notes),
    )


BEFORE, COMMAND = AS_BEFORE, "command"


def program_choices(before: Choice | None) -> dict[str, dict[str, Any]]:
    """Which programs can be chosen now.

    Args:
        before: what was chosen before, None where nothing was.
    """
    try:
        known = team.known_presets()
    except PresetError:  # an own preset is wrong: `chosen` says so
        known = {}
    presets = [name for name, preset in known.items() if preset.program]
    here = [name for name in presets if is_installed(known[name].program)]
    usual = BEFORE if before else here[0] if here else COMMAND
    offered = [*([BEFORE] if before else []), *presets, COMMAND]
    about = f"As before: {before.name}" if before else ""
    return {"program": choices_now(offered, usual, help=about)}


def chosen_program(values: Values, workdir: str) -> Choice | None:
    """The program that is meant; None for the one of before.

    Raises:
        Refused: there is no such program, or no command.
        PresetError: the command is none.
    """
    if values.program == BEFORE:
        return None
    if values.program == COMMAND:
        try:
            words = shlex.split(values.command)
        except ValueError:
            raise Refused("the command's quotes do not match") from None
        if not words:
            raise Refused("give the command to run")
        return team.program_choice("", words, workdir, values.model)
    return team.program_choice(values.program, (), workdir, values.model)


def program_words(values: Values) -> list[str]:
    """The same on the command line."""
    if values.program == BEFORE:
        return []
    model = ["--model", values.model] if values.model else []
    if values.program == COMMAND:
        return [*model, "--", *shlex.split(values.command)]
    return ["--agent", values.program, *model]


def actions(folder: str, now: datetime) -> Sequence[Action]:
    """What a person can do now, most useful first; nothing where no orchestrator wrote anything.

    Args:
        folder: the run.
        now: the time as of which it is read.
    """
    try:
        run = open_run(Location(folder), now)
    except (Refused, OSError):  # what cannot be read can at least be mended
        return bind_all((REPAIRING,), Location(folder), now)
    return bind_all((FINISHING, REPAIRING) if run.is_integrated else table.OFFERED, run, now)


def action(folder: str, name: str, now: datetime) -> Action | None:
    """One action by its name, new or old, without the others; None where there is none.

    Raises:
        Refused: it cannot be done now.
        OSError: the run cannot be read.
    """
    return bind_named((*table.OFFERED, DRAFTING), name, Location(folder), now)
