"""Loops that would be started: shown whole beforehand, and started."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from acp_core.agents.presets import Preset
from acp_core.loops import launch
from acp_core.loops.launch import LaunchError, Plan
from acp_core.loops.spec import Spec
from acp_core.model import Change, Outcome, OutcomeState, Preview
from acp_core.model.text import clean, clean_line
from acp_core.protocols.kit.diagnosis import safe_id


class Versions:
    """Plans, for which each program is asked only once which version it is: a person types meanwhile."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, tuple[str, ...]], str] = {}

    def plan(self, spec: Spec, preset: Preset, *, again: bool) -> Plan:
        """Work out what would be started for one participant; see `launch.plan`."""
        plan = launch.plan(spec, preset, ask_version=False, again=again)
        asked = (plan.spec.program, preset.version_args)
        if plan.refused and asked not in self._known:
            return plan
        if asked not in self._known:
            plan = launch.plan(spec, preset, again=again)
            self._known[asked] = plan.spec.version
            return plan
        return launch.plan_with(plan, preset, self._known[asked])


def preview_of(plans: Sequence[Plan], command: tuple[str, ...]) -> Preview:
    """Every program that would be started: version, working folder, the whole command.

    Args:
        plans: what would be started.
        command: does the same on a command line.
    """
    refused = [f"{_who(plan)}: {plan.refused}" for plan in plans if plan.refused]
    return Preview(
        f"Starts {', '.join(map(_who, plans))} in the background.",
        tuple(map(_change, plans)),
        command,
        tuple(dict.fromkeys(clean_line(each) for plan in plans for each in plan.warnings)),
        clean_line("; ".join(refused), 1_000),
        data={"loops": [_facts(plan, plan.refused) for plan in plans]},
    )


def carry_out(plans: Sequence[Plan], *, again: bool) -> Outcome:
    """Start them; what cannot be started keeps none of the others from it."""
    loops, started, failed = [], [], []
    for plan in plans:
        pid, problem = _start(plan, again=again)
        loops.append(_facts(plan, problem, pid))
        if problem:
            failed.append(f"{_who(plan)}: {clean_line(problem)}")
        else:
            started.append(f"{_who(plan)} (process {pid})")
    words = f"Started {', '.join(started)}." if started else "No loop was started."
    words += f" Not started: {'; '.join(failed)}." if failed else ""
    some = OutcomeState.UNKNOWN if failed else OutcomeState.DONE
    state = some if started else OutcomeState.REFUSED
    return Outcome(state, words, done=Preview(words, data={"loops": loops}))


def _start(plan: Plan, *, again: bool) -> tuple[int, str]:
    """Start a loop: its process id, or why not."""
    if plan.refused:
        return 0, plan.refused
    try:
        state = launch.restart(plan) if again else launch.start(plan.spec)
    except LaunchError as error:
        return 0, str(error)
    return state.pid, ""


def _who(plan: Plan) -> str:
    return safe_id(plan.spec.participant)


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
    if live := live_of(plan):
        lines.append(f"live     {live}")
    if plan.refused:
        lines.append(f"refused  {clean_line(plan.refused)}")
    return Change(f"{_who(plan)}: {name}", "start", clean("\n".join(lines)))


def live_of(plan: Plan) -> str:
    """The live session that its turns are taken in, or why in none; "" where none is possible."""
    return clean_line(shlex.join(plan.live), 4_096) if plan.live else plan.not_live


def _facts(plan: Plan, problem: str, pid: int = 0) -> dict[str, Any]:
    """A loop that would be started, or was, for programs."""
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
        "live": live_of(plan) or None,
        "warnings": list(plan.warnings),
        "problem": problem or None,
        "pid": pid or None,
    }
