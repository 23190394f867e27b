"""The action that begins a cycle in a project's folder."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from acp_core.agents import presets
from acp_core.agents.presets import Preset, PresetError
from acp_core.files.text import clean, clean_line
from acp_core.model import Action, Change, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.person.settings import load as load_settings
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.actions import perform as doing
from acp_core.protocols.cycle.conduct import process
from acp_core.protocols.cycle.conduct import spec as specs
from acp_core.protocols.cycle.conduct.spec import Spec
from acp_core.protocols.cycle.read import preparation
from acp_core.protocols.cycle.schema import AGENTS, Object
from acp_core.protocols.cycle.write import Refused, changes, init
from acp_core.protocols.cycle.write.store import encoded

_LINES: dict[str, Any] = {"format": "multiline"}


def create(folder: Path | str) -> Action:
    """The action that begins a cycle in the project ``folder``, which is made if need be."""
    root = Path(os.path.realpath(os.path.expanduser(folder)))
    known = presets.load(load_settings().presets)
    offered = preparation.limit(preparation.read(root, utc_now()), None, init.ITERATIONS)
    fields: dict[str, Any] = {
        "objective": (
            str,
            Field(
                min_length=1,
                title="What is to be built",
                json_schema_extra=_LINES,
            ),
        ),
        **program_fields(known),
        "iterations": (
            int,
            Field(offered, title="Iterations at most", ge=1, le=changes.LIMIT),
        ),
        "begin": (bool, Field(True, title="Begin at once")),
        **other_fields(known),
    }
    model: type[BaseModel] = create_model("Begin", **fields)
    id = init.new_id(utc_now())

    def made(given: Any) -> tuple[Object, Spec | None]:
        now = utc_now()
        prepared = preparation.read(root, now)
        fields = prepared.fields if prepared else {}
        said = preparation.told(prepared, given.iterations)
        state = init.first_state(id, now, given.objective, "", given.iterations, fields, said)
        if not given.begin:
            return state, None
        spec = spec_of(root, id, given, known)
        if root.is_dir():
            process.check(spec)
        busy = process.running(str(root))
        if busy:
            raise Refused(f"an orchestrator runs in this project already (process {busy.pid})")
        return state, spec

    def preview(given: Any) -> Preview:
        try:
            state, spec = made(given)
        except (Refused, OSError) as error:
            return Preview("", refused=doing.reason_of(error))
        except PresetError as error:
            return Preview("", refused=clean_line(str(error)))
        path = root.joinpath(*schema.HOME, f"{id}.json")
        content = clean(encoded(state).decode()).rstrip("\n").split("\n")
        found = [Change(clean_line(str(path)), "create", "\n".join(f"+{each}" for each in content))]
        if spec:
            found.append(Change(f"the orchestrator, with {_programs(spec)}", "start"))
        prepared = preparation.read(root, utc_now())
        told = tuple(map(clean_line, preparation.told(prepared, given.iterations)))
        used = [spec.preset(name)[0] for name in AGENTS] if spec else []
        cautions = [f"{each.title} {each.caution}" for each in used if each.caution]
        taken = prepared is not None and prepared.used
        return Preview(
            f"Begin a cycle in {clean_line(str(root))}.",
            tuple(found),
            warnings=(*dict.fromkeys(cautions), *(() if taken else told)),
            notes=told if taken else (),
        )

    def perform(given: Any) -> Outcome:
        try:
            state, spec = made(given)
            root.mkdir(parents=True, exist_ok=True)
            if spec:
                process.check(spec)
            init.found(root, state)
            if spec is None:
                told = "Begun; `acp cycle run` conducts it."
                return Outcome(OutcomeState.DONE, told, location=str(root))
            started = process.start(spec)
        except (Refused, OSError) as error:
            return Outcome(OutcomeState.REFUSED, doing.reason_of(error))
        except PresetError as error:
            return Outcome(OutcomeState.REFUSED, clean_line(str(error)))
        told = f"Begun; process {started.pid} conducts it."
        return Outcome(OutcomeState.DONE, told, location=str(root))

    sentence = "Begin a development cycle: RA, EP, CD and VAS work until the tests pass."
    return Action("create", "New development cycle", sentence, model, preview, perform)


def program_fields(known: dict[str, Preset]) -> dict[str, Any]:
    """What is asked so that the agents have a program."""
    names = tuple(known)
    told = 'For the program "command" only; no shell sees them.'
    return {
        "program": (Literal[names], Field(names[0], title="Program of all four agents")),
        "command": (str, Field("", title="Its words", description=told)),
    }


def other_fields(known: dict[str, Preset]) -> dict[str, Any]:
    """What may be asked besides: another program for one agent."""
    names = tuple(each for each in known if each != presets.ANY)
    choice: Any = Literal[names]
    return {
        f"{name}_program": (choice | None, Field(None, title=f"Another program for {name.upper()}"))
        for name in AGENTS
    }


def _programs(spec: Spec) -> str:
    """Which programs the agents run."""
    names = [spec.preset(name)[0].name for name in AGENTS]
    if len(set(names)) == 1:
        return f"{names[0]} as all four agents"
    return ", ".join(f"{name} as {agent}" for agent, name in zip(AGENTS, names, strict=True))


def spec_of(root: Path, id: str, given: Any, known: dict[str, Preset]) -> Spec:
    """The spec that `program_fields` ask for, and `other_fields` where they were asked.

    Raises:
        Refused: the command's words cannot be told apart.
        PresetError: there is no command.
    """
    others = {name: getattr(given, f"{name}_program", None) for name in AGENTS}
    common = None if all(others.values()) else _preset(given, known)
    programs = {}
    for name, other in others.items():
        preset = known[other] if other else common
        assert preset is not None  # it is missing only where every agent has another
        programs[name] = (preset, "")
    return Spec(str(root), id, specs.with_presets(programs))


def _preset(given: Any, known: dict[str, Preset]) -> Preset:
    if given.program != presets.ANY:
        return known[given.program]
    try:
        words = shlex.split(given.command)
    except ValueError as error:
        raise Refused(f"the command's words: {error}") from None
    return presets.any_command(words)
