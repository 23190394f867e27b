"""The orchestrator of a cycle that there is, started in the background or followed in this terminal.

Which programs its agents run: forms ask for a program of all agents, and another one for some;
commands name presets, or give commands word by word.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from acp_core.agents import presets
from acp_core.agents.budgets import caps_of
from acp_core.agents.presets import Preset
from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.person.settings import load as load_settings
from acp_core.protocols.cycle import matters, state
from acp_core.protocols.cycle.acts.table import RUNNING, SCHEMA
from acp_core.protocols.cycle.conduct import process
from acp_core.protocols.cycle.read import orchestrator_spec
from acp_core.protocols.cycle.read.orchestrator_spec import AT_MOST, Spec
from acp_core.protocols.cycle.read.scan import OpenProject, is_damaged, open_folder, open_project
from acp_core.protocols.cycle.schema import AGENTS, EXTEND_ACT, RESUME_ACT, RUN_ACT, text
from acp_core.protocols.cycle.write.store import Store
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.command_line import say
from acp_core.protocols.kit.guard import check
from acp_core.protocols.kit.parser import say_object
from acp_core.protocols.kit.values import Values

_AGAIN = "Restart the orchestrator: it resumes and repeats nothing."
_FIRST = "Run the cycle with acp from now on."


def conducting(context: Context, now: datetime) -> Action:
    """Start an orchestrator, where none runs: with the programs of before, or ones to choose."""
    opened = open_project(context, now)
    shown, root = opened.selected, str(opened.root)
    before = orchestrator_spec.load(root, shown.id)
    known = known_presets()
    narrowed = {"program": {"form": False}, "command": {"form": False}}
    narrowed = narrowed if before else {"program": preset_fields(known)["program"]}

    def preview(values: Values) -> Preview:
        spec = _spec(opened, values, known)
        return _preview(spec, is_again=orchestrator_spec.load(root, spec.cycle) is not None)

    def perform(values: Values) -> Outcome:
        spec = _spec(opened, values, known)
        sentence = f"The orchestrator runs as process {process.start(spec).pid}."
        facts = {"cycle": spec.cycle, "state": "requested"}
        return Outcome(OutcomeState.DONE, sentence, done=Preview(sentence, data=facts))

    waits = state.is_to_be_conducted(shown) and not is_damaged(shown)
    return bound(
        RUNNING,
        opened,
        preview,
        perform,
        narrowed={**narrowed, "cycle": {"default": shown.id}},
        sentence=_AGAIN if before else _FIRST,
        offered=waits and not process.conductor(root).is_held(),
    )


def _preview(spec: Spec, is_again: bool) -> Preview:
    chosen = ", ".join(f"{name} {spec.preset(name)[0].name}" for name in AGENTS)
    caution = (
        "stop the orchestrator of any other program first: two would overwrite each other's work"
    )
    return Preview(
        _AGAIN if is_again else _FIRST,
        warnings=() if is_again else (caution,),
        notes=(f"runs {clean_line(chosen)}",),
        data={"cycle": spec.cycle, "state": "dry-run"},
    )


def _spec(opened: OpenProject, values: Values, known: Presets) -> Spec:
    """What the orchestrator is asked to do; what is not given is as it was before in this project.

    Raises:
        Refused: it cannot run, or the cycle is over.
        PresetError: a preset is not what it should be.
    """
    root, cycle = str(opened.root), opened.find(values.cycle)
    status = text(Store(root, cycle.id).read().get("status"))
    check(matters.of_state(opened.root, cycle.id), RUN_ACT)
    process.refuse_second(root)
    before = orchestrator_spec.load(root)
    usual = replace(before, cycle=cycle.id) if before else Spec(root, cycle.id)
    spec = spec_of(values, known, usual, before is not None)
    process.check(spec)
    if status in ("completed", "failed"):
        how = EXTEND_ACT if status == "completed" else RESUME_ACT
        raise Refused(f"{cycle.id} is {status}: continue with `acp cycle {how}`")
    return spec


def conduct_here(values: Values) -> int | None:
    """``acp cycle run --foreground``: conduct it in this terminal.

    Returns:
        The exit code; None where it is started as any other act.

    Raises:
        Refused: it cannot run.
    """
    join_words(values)
    if values.dry_run or not values.foreground:
        return None
    spec = _spec(open_folder(values.folder), values, known_presets())
    return follow(spec, "run", values)


def follow(spec: Spec, verb: str, values: Values, remarks: Sequence[str] = ()) -> int:
    """Conduct a cycle in this terminal until its orchestrator ends; its exit code.

    Args:
        spec: what it is asked to do.
        verb: the command.
        values: what was given: whether to print JSON.
        remarks: what is said before.
    """
    for each in () if values.json else remarks:
        say(each)
    code = process.conduct(spec, echo=None if values.json else say)
    sentence = f"The orchestrator exited with {code}."
    if values.json:
        facts = {"cycle": spec.cycle, "state": "ended", "notes": list(remarks)}
        say_object(SCHEMA, verb, done=code == 0, sentence=sentence, **facts)
    else:
        say(sentence)
    return code


Presets = Mapping[str, Preset]
Chosen = dict[str, tuple[Preset, str]]
"""By agent: how its program is run, and with which model."""
_LONGEST = 7 * 86_400.0  # seconds of one run
_MOST = 100  # attempts


def known_presets() -> dict[str, Preset]:
    """Every preset by name.

    Raises:
        PresetError: an own preset is not what it should be.
    """
    return presets.load(load_settings().presets)


def preset_fields(offered: Presets) -> dict[str, dict[str, Any]]:
    """What a form offers: the first preset for all agents, or another one for each."""
    others = tuple(name for name in offered if name != presets.ANY)
    found: dict[str, dict[str, Any]] = {f"{name}_program": {"choices": others} for name in AGENTS}
    return found | {"program": {"choices": tuple(offered), "default": next(iter(offered))}}


def join_words(values: Values) -> None:
    """Take the words after ``--`` for the command of all agents."""
    if values.words:
        values.command = shlex.join(values.words)


def spec_of(values: Values, offered: Presets, spec: Spec, before: bool = False) -> Spec:
    """What the orchestrator is asked to do; what is not given is as in ``spec``.

    Args:
        values: what was given.
        offered: every preset by name.
        spec: what there is: as it usually is, or as it was before.
        before: whether that names programs.

    Raises:
        Refused: an agent has no program, or a limit is out of bounds.
        PresetError: a preset is not what it should be.
    """
    if values.timeout is not None:
        spec = replace(spec, timeout=values.timeout)
    spec = replace(
        spec,
        leave=values.leave,
        attempts=_attempts(values, spec.attempts),
        overlap=values.overlap or spec.overlap,
        jobs=spec.jobs if values.jobs is None else values.jobs,
        once=values.once,
        permissions=values.permissions or spec.permissions,
        budget=tuple(str(cap) for cap in caps_of({}, values.budget)) or spec.budget,
    )
    if not 0 < spec.timeout <= _LONGEST or not 1 <= spec.attempts <= _MOST:
        raise Refused(
            f"--timeout must be above 0 and at most 7d, and --retries from 0 to {_MOST - 1}"
        )
    if not 1 <= spec.jobs <= AT_MOST:
        raise Refused(f"--jobs must be from 1 to {AT_MOST}")
    chosen = {name: spec.preset(name) for name in AGENTS} if before else {}
    chosen |= _chosen(values, offered)
    missing = ", ".join(name for name in AGENTS if name not in chosen)
    if missing:
        message = f"no program for {missing}: name one with --agent, or give a command after `--`"
        raise Refused(message + (", or use --no-run" if hasattr(values, "begin") else ""))
    return replace(spec, agents=orchestrator_spec.with_presets(chosen))


def _attempts(values: Values, usual: int) -> int:
    if values.retries is not None:
        return int(values.retries) + 1
    return usual if values.attempts is None else int(values.attempts)


def _chosen(values: Values, offered: Presets) -> Chosen:
    """The programs that were given: for all agents, and then for single ones."""
    own = _own(values, offered)
    usual = None if len(own) == len(AGENTS) else _usual(values, offered)
    common = dict.fromkeys(AGENTS, usual) if usual else {}
    return {name: (preset, values.model) for name, preset in (common | own).items()}


def _usual(values: Values, offered: Presets) -> Preset | None:
    """The program of all agents for whom no other one is named."""
    unnamed = [each for each in values.presets if "=" not in each]
    name = unnamed[-1] if unnamed else values.program
    if values.command and name in ("", presets.ANY):
        return _command(values.command)
    if name == presets.ANY and not unnamed:
        return presets.any_command(())
    return _named(name, offered) if name else None


def _own(values: Values, offered: Presets) -> dict[str, Preset]:
    """The programs of single agents."""
    asked = {name: getattr(values, f"{name}_program", None) for name in AGENTS}
    own = {name: _named(preset, offered) for name, preset in asked.items() if preset}
    named = [each for each in values.presets if "=" in each]
    own |= {name: _named(word, offered) for name, word in _pairs(named, "--agent")}
    return own | {name: _command(word) for name, word in _pairs(values.commands, "--agent-command")}


def _pairs(words: list[str], option: str) -> list[tuple[str, str]]:
    found = []
    for each in words:
        name, sign, said = each.partition("=")
        if name not in AGENTS or not sign or not said.strip():
            raise Refused(
                f"{option} takes NAME=..., with NAME one of {', '.join(AGENTS)}: {each!r}"
            )
        found.append((name, said))
    return found


def _named(name: str, offered: Presets) -> Preset:
    if name not in offered or name == presets.ANY:
        names = ", ".join(each for each in offered if each != presets.ANY)
        raise Refused(f"no preset {name!r} (presets: {names})")
    return offered[name]


def _command(words: str) -> Preset:
    try:
        return presets.command_here(shlex.split(words))
    except ValueError as error:
        raise Refused(f"invalid command: {error} ({words!r})") from None
