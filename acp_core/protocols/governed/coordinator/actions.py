"""What a human can do in an initiative, described: forms and commands are made of it.

Loaded only when needed: the descriptions are pydantic models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from acp_core.files.text import clean_line
from acp_core.model.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.protocols.governed.coordinator import deciding, init, repair, resync, trust
from acp_core.protocols.governed.coordinator.deciding import Decision, Done
from acp_core.protocols.governed.coordinator.handing import handed_actions
from acp_core.protocols.governed.coordinator.opened import STATE, Opened, Prepared, open_initiative
from acp_core.protocols.governed.coordinator.plan import read_plan
from acp_core.protocols.governed.coordinator.reconcile import REACHED, RESYNC_FAILED
from acp_core.protocols.governed.read.initiative import OWN, read_initiative
from acp_core.protocols.governed.schema import objects
from acp_core.protocols.governed.write import Refused, journal
from acp_core.protocols.governed.write import changes as shown
from acp_core.protocols.governed.write.init import agents_of
from acp_core.protocols.governed.write.opened import refuse_agents, who

Fields = dict[str, Any]
"""Name -> (type, pydantic field), as `pydantic.create_model` takes them."""

_BY = (str, Field(title="Who decides", description="Whose decision it is; recorded."))
_AGENTS: tuple[Any, Any] = (
    list[str],
    Field(
        [],
        title="Agents",
        description="ROLE=COMMAND for pm, dev and qa, in the runs that are new; a human plays "
        "the others.",
    ),
)
_LINES: dict[str, Any] = {"format": "multiline"}


class Nothing(BaseModel):
    """Nothing is asked."""


def initiative_actions(location: str) -> Sequence[Action]:
    """What a human can do in the initiative now, most useful first.

    Names: ``start_initiative``, ``approve_barrier``, ``reject_barrier``, ``resync``,
    ``mend_workstream``, ``coordinate``, ``trust_hooks``; in the existing program's layout
    ``approve_gate``, ``coordinate``, ``resync``, where that program is there.
    """
    root = Path(location)
    initiative = read_initiative(root)
    if initiative.layout != OWN:
        return handed_actions(initiative)
    if not (root / STATE).exists() and not journal.interrupted(root, journal.COORDINATOR):
        return _start(root)
    try:
        opened = open_initiative(root)
    except (Refused, OSError):
        return []
    kept = objects(opened.initiative.state.value.get("barriers"))
    gates = [b.name for b in opened.plan.barriers if kept.get(b.name, {}).get("status") == REACHED]
    first = [_approve(root, gates), _reject(root, gates, opened)] if gates else []
    if _needs_resync(opened):
        first.insert(0, _resync(root))
    first += [_mend(root, names)] if (names := repair.mendable(opened)) else []
    last = [] if opened.initiative.status == "completed" else [_step(root)]
    unknown = [h.path for h in opened.plan.hooks if not trust.is_trusted(root, h.path)]
    return [*first, *last, *([_trust(root)] if unknown else [])]


def _needs_resync(opened: Opened) -> bool:
    left = journal.interrupted(opened.root, journal.COORDINATOR)
    failed = opened.initiative.status == RESYNC_FAILED
    return left is not None or failed or resync.owed(opened) is not None


def _start(root: Path) -> list[Action]:
    try:
        read_plan(root)
    except (Refused, OSError):
        return []

    def preview(given: Any) -> Preview:
        try:
            refuse_agents()
            plan = init.prepare(root, agents_of(given.agents))
        except (Refused, OSError) as error:
            return Preview("", refused=_refusal(error))
        steps = tuple(Change(_safe(told), "start") for told in plan.told)
        return Preview(_safe(f"Start {root.name}."), steps, (), tuple(map(_safe, plan.warnings)))

    def perform(given: Any) -> Outcome:
        try:
            refuse_agents()
            told = init.found(root, who(given.by), _now(), agents_of(given.agents))
        except (Refused, OSError) as error:
            return Outcome(OutcomeState.REFUSED, _refusal(error))
        return Outcome(OutcomeState.DONE, _safe("; ".join(told)))

    sentence = "Clone what is missing, begin a run in each workstream, and link them."
    inputs = create_model("StartInitiative", agents=_AGENTS, by=_BY)
    return [Action("start_initiative", "Start the initiative", sentence, inputs, preview, perform,
                   {"by": _user()})]  # fmt: skip


def _approve(root: Path, gates: list[str]) -> Action:
    fields: Fields = {
        "comment": (str, Field("", title="Comment", description="Why; every agent reads it.",
                               json_schema_extra=_LINES)),
    } | _gate_fields(gates)  # fmt: skip
    return _acting(
        root,
        "approve_barrier",
        f"Approve {gates[0]}",
        f"Open the cross-repo gate {gates[0]}: all workstreams cross it at once.",
        fields,
        lambda opened, given: deciding.prepare_approval(opened, _decision(given), _now()),
        lambda given: deciding.approve(root, _decision(given), _now()),
        {"by": _user(), "barrier": gates[0]},
    )


def _reject(root: Path, gates: list[str], opened: Opened) -> Action:
    names = tuple(stream.name for stream in opened.plan.streams)
    choice = Literal[("all", *names)]  # type: ignore[valid-type]
    fields: Fields = {
        "workstream": (choice, Field("all", title="Who goes back to work",
                                     description="The others keep waiting at the barrier.")),
        "comment": (str, Field(min_length=1, title="What is missing",
                               description="The next agents read it.", json_schema_extra=_LINES)),
    } | _gate_fields(gates)  # fmt: skip

    def chosen(given: Any) -> list[str]:
        return [] if given.workstream == "all" else [given.workstream]

    return _acting(
        root,
        "reject_barrier",
        f"Reject {gates[0]}",
        f"Send workstreams from {gates[0]} back to work in their phase.",
        fields,
        lambda opened, given: deciding.prepare_rejection(
            opened, _decision(given), chosen(given), _now()
        ),
        lambda given: deciding.reject(root, _decision(given), chosen(given), _now()),
        {"by": _user(), "barrier": gates[0]},
    )


def _resync(root: Path) -> Action:
    return _acting(
        root,
        "resync",
        "Resync",
        "Go on after what failed was mended: all workstreams cross the approved barrier, or none.",
        {},
        lambda opened, given: deciding.prepare_resync(opened, _now()),
        lambda given: deciding.synchronise(root, _now()),
    )


def _mend(root: Path, names: list[str]) -> Action:
    choice = Literal[tuple(names)]  # type: ignore[valid-type]
    about = "Whose state cannot be read."
    return _acting(
        root,
        "mend_workstream",
        f"Mend {names[0]}",
        "Make a workstream's lost state again from its history; the damaged file is kept.",
        {"workstream": (choice, Field(names[0], title="Workstream", description=about)), "by": _BY},
        lambda opened, given: repair.prepare_mending(opened, given.workstream, given.by, _now()),
        lambda given: deciding.mend(root, given.workstream, who(given.by), _now()),
        {"by": _user(), "workstream": names[0]},
    )


def _step(root: Path) -> Action:
    return _acting(
        root,
        "coordinate",
        "Step the coordinator",
        "Look at all workstreams: hold who reached a barrier, open gates, tell all of the others.",
        {},
        lambda opened, given: deciding.prepare_step(opened, _now()),
        lambda given: deciding.step(root, _now()),
    )


def _trust(root: Path) -> Action:
    def preview(given: Any) -> Preview:
        try:
            refuse_agents()
            hooks = read_plan(root).hooks
        except (Refused, OSError) as error:
            return Preview("", refused=_refusal(error))
        shown_hooks = tuple(
            Change(_safe(hook.path), "start", _safe(f"{hook.name}: {_digest(root, hook.path)}"))
            for hook in hooks
        )
        return Preview("Let these scripts run, as they stand.", shown_hooks)

    def perform(given: Any) -> Outcome:
        try:
            refuse_agents()
            found = trust.trust(root, tuple(hook.path for hook in read_plan(root).hooks))
        except (Refused, OSError) as error:
            return Outcome(OutcomeState.REFUSED, _refusal(error))
        return Outcome(OutcomeState.DONE, f"{len(found)} scripts may run.")

    sentence = "Let the scripts run that the configuration names; look at them first."
    return Action("trust_hooks", "Trust the hooks", sentence, Nothing, preview, perform, risky=True)


def _digest(root: Path, path: str) -> str:
    seen = trust.digest(root, path)
    return f"sha256 {seen[:16]}" if seen else "is not there"


def _gate_fields(gates: list[str]) -> Fields:
    choice = Literal[tuple(gates)]  # type: ignore[valid-type]
    return {
        "barrier": (choice, Field(gates[0], title="Barrier", description="Whose gate is open.")),
        "by": _BY,
    }


def _decision(given: Any) -> Decision:
    return Decision(given.barrier, who(given.by), given.comment)


def _acting(
    root: Path,
    name: str,
    label: str,
    sentence: str,
    fields: Fields,
    prepare: Callable[[Opened, Any], Prepared],
    perform: Callable[[Any], Done],
    defaults: dict[str, object] | None = None,
) -> Action:
    """An action that is previewed as its writes and done under the locks."""

    def preview(given: Any) -> Preview:
        try:
            refuse_agents()
            left = journal.interrupted(root, journal.COORDINATOR)
            if left is not None:
                said = f"First finish what was interrupted: {left.what}."
                return Preview(_safe(f"{said} Then: {sentence}"))
            prepared = prepare(open_initiative(root), given)
            changes = shown.of_writes(root, prepared.writes)
        except (Refused, OSError) as error:
            return Preview("", refused=_refusal(error))
        told = "; ".join(prepared.preview)
        warnings = tuple(map(_safe, prepared.warnings))
        return Preview(_safe(f"{told[0].upper()}{told[1:]}."), changes, (), warnings)

    def do(given: Any) -> Outcome:
        try:
            refuse_agents()
            done = perform(given)
        except (Refused, OSError) as error:
            return Outcome(OutcomeState.REFUSED, _refusal(error))
        told = "; ".join((*done.told, *(f"failed: {each}" for each in done.failed), *done.warnings))
        nothing = done.failed and name == "resync"
        state = OutcomeState.REFUSED if nothing else OutcomeState.DONE
        return Outcome(state, _safe(f"{told[0].upper()}{told[1:]}."))

    made: type[BaseModel] = create_model(name.title().replace("_", ""), **fields)
    return Action(
        name, clean_line(label, 120), clean_line(sentence, 400), made, preview, do, defaults or {}
    )


def _now() -> datetime:
    return datetime.now(UTC)


def _user() -> str:
    try:
        return who()
    except Refused:
        return "human"


def _safe(told: str) -> str:
    return clean_line(told, 2_000)


def _refusal(error: Refused | OSError) -> str:
    if isinstance(error, Refused):
        return _safe(str(error))
    reason = error.strerror or str(error)
    return _safe(f"{error.filename}: {reason}" if error.filename else reason)
