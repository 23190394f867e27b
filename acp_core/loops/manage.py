"""Starting and stopping the loops of a collaboration's participants, as actions of a person.

What is started is shown as it will be run, before it is.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from acp_core.agents import presets
from acp_core.agents.presets import ANY, Preset, PresetError
from acp_core.agents.state import RunnerState
from acp_core.files.secrets import mask_command
from acp_core.files.text import clean, clean_line
from acp_core.loops import launch as launching
from acp_core.loops import wording
from acp_core.loops.launch import LaunchError, Plan
from acp_core.loops.spec import Spec
from acp_core.loops.stopping import stop_loops
from acp_core.model import Action, Change, Outcome, OutcomeState, Participant, Preview, Snapshot
from acp_core.model.clock import utc_now
from acp_core.person import journal
from acp_core.protocols.kit.diagnosis import safe_id as shown_id

NOBODY = "no program"
"""The choice that starts nothing for a participant."""


def launch(
    snapshot: Snapshot,
    loops: Sequence[RunnerState],
    own_presets: Mapping[str, Mapping[str, object]],
    limits: Mapping[str, float],
) -> Action:
    """The action that starts loops, a preset for each participant.

    Args:
        snapshot: The collaboration.
        loops: Its loops, running or not.
        own_presets: The person's presets, as in ``config.toml``.
        limits: The person's settings for loops, as there.

    Raises:
        PresetError: a preset is not what it should be.
    """
    form = _Launch(snapshot, loops, presets.load(own_presets), limits)
    perform = partial(_noted, snapshot.key, "launch_loops", form.perform)
    return Action(
        name="launch_loops",
        label="Start loops",
        sentence="Start programs that take participants' turns; they outlive the dashboard.",
        inputs=form.inputs(),
        preview=form.preview,
        perform=perform,
    )


class _Launch:
    """The form, what it would start, and starting it."""

    def __init__(
        self,
        snapshot: Snapshot,
        loops: Sequence[RunnerState],
        known: Mapping[str, Preset],
        limits: Mapping[str, float],
    ) -> None:
        self._snapshot, self._known, self._limits = snapshot, known, limits
        self._loops = {shown_id(loop.participant): loop for loop in loops}
        people = [each for each in snapshot.participants if each.kind != "human"]
        self._people = people or list(snapshot.participants)
        self._versions: dict[tuple[str, tuple[str, ...]], str] = {}

    def inputs(self) -> type[BaseModel]:
        """A choice for each participant, then what holds for all of them."""
        names = (NOBODY, *self._known)
        waited = {turn.participant for turn in self._snapshot.turns}
        fields: dict[str, Any] = {}
        for number, person in enumerate(self._people):
            loop = self._loops.get(person.id)
            about = [f"waited for: {person.id}" if person.id in waited else "", _doing(loop)]
            before = loop.shown.program if loop and not loop.alive else NOBODY
            fields[f"with_{number}"] = (
                Literal[names],
                Field(
                    before if before in names else NOBODY,
                    title=_who(person),
                    description="; ".join(filter(None, about)),
                ),
            )
        command = f"Its words, for those with the preset {ANY!r}; {{prompt}} is the task."
        limit = self._limits.get("turn_minutes") or None
        fields |= {
            "command": (str, Field("", title="Command", description=command)),
            "model": (str, Field("", title="Model", description="The program's own if empty.")),
            "workdir": (
                str,
                Field("", title="Working folder", description="The collaboration's if empty."),
            ),
            "turn_minutes": (
                float | None,
                Field(limit, title="Minutes a turn may take", gt=0, lt=1e6),
            ),
            "minutes": (
                float | None,
                Field(
                    self._limits.get("minutes") or None,
                    title="Minutes until all loops end",
                    gt=0,
                    lt=1e6,
                ),
            ),
            "again": (bool, Field(False, title="Stop loops that run, and start them again")),
        }
        made: type[BaseModel] = create_model("Launch", **fields)
        return made

    def preview(self, given: Any) -> Preview:
        """Every program that would be started: version, working folder, the whole command."""
        try:
            plans = self._plans(given)
        except PresetError as error:
            return Preview("Starts nothing.", refused=clean_line(str(error)))
        if not plans:
            why = "choose a preset for a participant"
            return Preview("Starts nothing yet.", refused=why)
        refused = [f"{shown_id(p.spec.participant)}: {p.refused}" for p in plans if p.refused]
        who = ", ".join(shown_id(plan.spec.participant) for plan in plans)
        return Preview(
            f"Starts {who} in the background.",
            tuple(_change(plan) for plan in plans),
            self._command(given),
            tuple(clean_line(warning) for plan in plans for warning in plan.warnings),
            clean_line("; ".join(refused), 1_000),
        )

    def perform(self, given: Any) -> Outcome:
        """Start them; what cannot be started keeps none of the others from it."""
        try:
            plans = self._plans(given)
        except PresetError as error:
            return Outcome(OutcomeState.REFUSED, clean_line(str(error)))
        started, failed = [], []
        for plan in plans:
            name = shown_id(plan.spec.participant)
            try:
                if plan.refused:
                    raise LaunchError(plan.refused)
                state = launching.restart(plan) if given.again else launching.start(plan.spec)
                started.append(f"{name} (process {state.pid})")
            except LaunchError as error:
                failed.append(f"{name}: {clean_line(str(error))}")
        words = f"Started {', '.join(started)}." if started else "Nothing was started."
        if not plans:
            words = f"{words} Choose a preset for at least one participant."
        if not failed:
            return Outcome(OutcomeState.DONE if started else OutcomeState.REFUSED, words)
        words += f" Not started: {'; '.join(failed)}."
        return Outcome(OutcomeState.UNKNOWN if started else OutcomeState.REFUSED, words)

    def _plans(self, given: Any) -> list[Plan]:
        return [
            self._plan(person, chosen, given)
            for number, person in enumerate(self._people)
            if (chosen := getattr(given, f"with_{number}")) != NOBODY
        ]

    def _plan(self, person: Participant, chosen: str, given: Any) -> Plan:
        preset = self._known[chosen]
        if chosen == ANY:
            preset = presets.typed_command(given.command, preset)
        loop = self._loops.get(person.id)
        spec = Spec(
            folder=self._snapshot.key,
            participant=loop.participant if loop else person.id,
            model=given.model.strip(),
            workdir=given.workdir.strip(),
            retries=int(self._limits.get("retries", 3)),
            pause=self._limits.get("pause", 5.0),
            turn_limit=60 * given.turn_minutes if given.turn_minutes else None,
            deadline=_deadline(given.minutes),
        )
        plan = launching.plan(spec, preset, ask_version=False, again=given.again)
        if plan.refused:
            return plan
        # a person types meanwhile: each program is asked only once
        asked = (plan.spec.program, preset.version_args)
        if asked not in self._versions:
            plan = launching.plan(spec, preset, again=given.again)
            self._versions[asked] = plan.spec.version
            return plan
        return launching.plan_with(plan, preset, self._versions[asked])

    def _command(self, given: Any) -> tuple[str, ...]:
        """The same as a command."""
        words = ["acp", "launch", clean_line(self._snapshot.key, 4_096)]
        any_of_them = False
        for number, person in enumerate(self._people):
            chosen = getattr(given, f"with_{number}")
            if chosen != NOBODY:
                any_of_them = any_of_them or chosen == ANY
                words.append(person.id if chosen == ANY else f"{person.id}={chosen}")
        for option, value in (("--model", given.model), ("--workdir", given.workdir)):
            words += [option, clean_line(value)] if value.strip() else []
        if given.turn_minutes:
            words += ["--timeout", f"{given.turn_minutes:g}m"]
        if given.minutes:
            words += ["--deadline", f"{given.minutes:g}m"]
        words += ["--again"] if given.again else []
        if any_of_them:
            words += ["--", *mask_command(clean_line(word) for word in _words(given.command))]
        return tuple(words)


def stop(loops: Sequence[RunnerState]) -> Action:
    """The action that stops loops and the programs that they run, all of them by default.

    Args:
        loops: The loops of a collaboration, running or not.
    """
    running = [loop for loop in loops if loop.alive or loop.program_alive]
    fields: dict[str, Any] = {
        f"stop_{number}": (
            bool,
            Field(True, title=shown_id(loop.participant), description=_doing(loop)),
        )
        for number, loop in enumerate(running)
    }
    inputs: type[BaseModel] = create_model("Stop", **fields)

    def chosen(given: Any) -> list[RunnerState]:
        return [loop for n, loop in enumerate(running) if getattr(given, f"stop_{n}")]

    def preview(given: Any) -> Preview:
        wanted = chosen(given)
        if not wanted:
            return Preview(
                "Stops nothing.", refused="no loop is chosen" if running else "none runs"
            )
        who = [shown_id(loop.participant) for loop in wanted]
        folder = clean_line(wanted[0].folder, 4_096)
        asked = "They are asked to end first, and ended after ten seconds."
        return Preview(f"Stops {', '.join(who)}. {asked}", (), ("acp", "stop", folder, *who))

    def perform(given: Any) -> Outcome:
        stopped = stop_loops(chosen(given))
        words = clean_line("; ".join(each.sentence for each in stopped), 1_000)
        if not stopped:
            return Outcome(OutcomeState.REFUSED, "No loop was chosen.")
        done = all(each.done for each in stopped)
        return Outcome(OutcomeState.DONE if done else OutcomeState.UNKNOWN, f"{words}.")

    key = running[0].folder if running else ""
    return Action(
        name="stop_loops",
        label="Stop loops",
        sentence="Stop participants' loops, with the programs that they run.",
        inputs=inputs,
        preview=preview,
        perform=partial(_noted, key, "stop_loops", perform),
        risky=True,
    )


def _noted(key: str, name: str, perform: Callable[[Any], Outcome], given: Any) -> Outcome:
    """Do it, and write it into the person's journal."""
    outcome = perform(given)
    said = outcome.sentence
    journal.note(key, name, given.model_dump(), outcome.state.value, said, utc_now())
    return outcome


def _who(person: Participant) -> str:
    return f"{person.id} ({person.role})" if person.role else person.id


def _doing(loop: RunnerState | None) -> str:
    if loop is None:
        return "no loop"
    return " · ".join(filter(None, (wording.program(loop), wording.state(loop))))


def _change(plan: Plan) -> Change:
    """A program that would be started, as a preview shows it."""
    spec = plan.spec
    name = " ".join(filter(None, (spec.name, clean_line(spec.version), clean_line(spec.model))))
    redirected = " < <prompt>" if plan.stdin else ""
    lines = [
        f"program  {clean_line(spec.program, 4_096) or 'not found'}",
        f"runs in  {clean_line(spec.workdir, 4_096)}",
    ]
    if plan.command:
        lines.append(f"command  {clean_line(shlex.join(plan.command), 20_000)}{redirected}")
    if plan.refused:
        lines.append(f"refused  {clean_line(plan.refused)}")
    return Change(f"{shown_id(spec.participant)}: {name}", "start", clean("\n".join(lines)))


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise PresetError(f"the command cannot be read: {error}") from None


def _deadline(minutes: float | None) -> datetime | None:
    return utc_now() + timedelta(minutes=minutes) if minutes else None
