"""``acp launch``: start participants' loops in the background."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from acp_core.agents import registry
from acp_core.agents.place import place
from acp_core.agents.presets import Preset
from acp_core.cli.loop_options import (
    Chosen,
    all_presets,
    any_command,
    named,
    spec_of,
)
from acp_core.cli.opening import open_one
from acp_core.cli.output import dump, say
from acp_core.loops import launch as launching
from acp_core.loops import spec as specs
from acp_core.loops.launch import LaunchError, Plan
from acp_core.model import OutcomeState
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError
from acp_core.person import journal
from acp_core.person.paths import key_of
from acp_core.protocols.kit.values import Values

SCHEMA = "acp.launch/1"


def launch(given: Values) -> int:
    """Start loops in the background.

    Raises:
        CommandError: it is not clear whose, or with which programs.
    """
    folder, again = given.folder, given.again
    _refuse_without_turns(folder)
    words = [*given.participants, *(each for each in given.agent if "=" in each)]
    usual = next((each for each in reversed(given.agent) if "=" not in each), None)
    wanted = _wanted(folder, words, usual, given.words, again)
    if not (wanted or given.json):
        say("everybody has a loop already; `acp ps` lists them")
    told: list[dict[str, object]] = []
    failed = False
    for each in wanted:
        plan = each.plan(folder, Chosen.of(given))
        pid, problem = 0, plan.refused
        if not problem and not given.dry_run:
            try:
                started = launching.restart(plan) if again else launching.start(plan.spec)
                pid = started.pid
            except LaunchError as error:
                problem = str(error)
            _note(plan, problem, pid)
        failed = failed or bool(problem)
        if given.json:
            told.append(_facts(plan, problem, pid))
        else:
            _show(plan, problem, pid)
    if given.json:
        say(dump({"schema": SCHEMA, "collaboration": key_of(folder), "loops": told}))
    return 2 if failed else 0


def _refuse_without_turns(folder: str) -> None:
    """Say so where loops have nothing to take; what is no collaboration is said of each loop.

    Raises:
        CommandError: its participants take no turns.
    """
    try:
        fleet, snapshot = open_one(folder)
    except CommandError:
        return
    if not fleet.call_sync(snapshot.key, lambda opened: opened.has_turns):
        raise CommandError(f"{folder}: its participants take no turns that a loop could take")


def _note(plan: Plan, problem: str, pid: int) -> None:
    """Write into the person's journal what they started."""
    spec = plan.spec
    given = {"participant": spec.participant, "program": spec.name, "model": spec.model}
    state = OutcomeState.REFUSED if problem else OutcomeState.DONE
    sentence = problem or f"{spec.participant}'s loop runs (process {pid})."
    journal.note(spec.folder, "launch", given, state.value, sentence, utc_now())


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A participant that shall have a loop: with a preset, or as before."""

    participant: str
    preset: Preset | None
    again: bool

    def plan(self, folder: str, chosen: Chosen) -> Plan:
        """What would be started.

        Raises:
            CommandError: nothing says how.
        """
        if self.preset is not None:
            spec, preset = spec_of(folder, self.participant, self.preset, chosen)
            return launching.plan(spec, preset, again=self.again)
        before = specs.load(place(folder, self.participant))
        if before is None:
            raise CommandError(
                f"{self.participant} had no loop here before: say {self.participant}=PRESET, "
                "--agent PRESET, or a command after --"
            )
        return launching.plan(before, before.resolved(), again=self.again)


def _wanted(
    folder: str, words: Sequence[str], with_preset: str | None, command: Sequence[str], again: bool
) -> list[_Wanted]:
    """Who shall have a loop.

    Raises:
        CommandError: the words do not say who, or how.
    """
    known = all_presets()
    if command and with_preset:
        raise CommandError("give either --agent PRESET or a command after --")
    usual = any_command(command) if command else named(with_preset, known) if with_preset else None
    if words:
        return [_named(word, usual, known, again) for word in words]
    if command:
        raise CommandError("say whose turns the command takes")
    running = {each.participant for each in registry.runners(folder) if each.alive}
    if usual is not None:
        _, snapshot = open_one(folder)
        agents = [each.id for each in snapshot.participants if each.kind != "human"]
        everybody = [_Wanted(name, usual, again) for name in agents if again or name not in running]
    else:
        before = [each.participant for each in registry.runners(folder)]
        everybody = [_Wanted(name, None, again) for name in before if again or name not in running]
        if not before:
            raise CommandError(
                "no loop was started here before: say PARTICIPANT=PRESET or --agent PRESET"
            )
    return everybody


def _named(word: str, usual: Preset | None, known: dict[str, Preset], again: bool) -> _Wanted:
    participant, equals, name = word.partition("=")
    if not participant:
        raise CommandError(f"{word!r} names no participant")
    return _Wanted(participant, named(name, known) if equals else usual, again)


def _show(plan: Plan, problem: str, pid: int) -> None:
    spec = plan.spec
    if problem:
        say(f"{spec.participant}: not started: {problem}")
        return
    program = " ".join(filter(None, (spec.name, spec.version, spec.model)))
    say(f"{spec.participant}: {program}" + (f", process {pid}" if pid else " (not started)"))
    say(f"    program   {spec.program}")
    say(f"    runs in   {spec.workdir}")
    redirected = " < <prompt>" if plan.stdin else ""
    say(f"    command   {shlex.join(plan.command)}{redirected}")
    for warning in plan.warnings:
        say(f"    warning   {warning}")


def _facts(plan: Plan, problem: str, pid: int) -> dict[str, object]:
    spec = plan.spec
    return {
        "participant": spec.participant,
        "preset": spec.name,
        "program": spec.program,
        "version": spec.version,
        "model": spec.model,
        "workdir": spec.workdir,
        "command": list(plan.command),
        "prompt_on_stdin": plan.stdin,
        "warnings": list(plan.warnings),
        "problem": problem or None,
        "pid": pid or None,
    }
