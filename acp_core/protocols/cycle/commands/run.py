"""``acp cycle start`` and ``acp cycle run``: a cycle begun, and its orchestrator."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from acp_core.agents import presets
from acp_core.agents.presets import Preset
from acp_core.model.clock import utc_now
from acp_core.protocols.cycle.commands.common import chosen
from acp_core.protocols.cycle.conduct import process
from acp_core.protocols.cycle.conduct import spec as specs
from acp_core.protocols.cycle.conduct.spec import ATTEMPTS, TIMEOUT, Spec
from acp_core.protocols.cycle.read import preparation
from acp_core.protocols.cycle.schema import AGENTS, text
from acp_core.protocols.cycle.write import Refused, init
from acp_core.protocols.cycle.write.store import Store, encoded
from acp_core.protocols.kit.argparse_parser import sentence
from acp_core.protocols.kit.command_line import Parser, say, say_json

SCHEMA = "acp.cycle/1"


def add(acts: argparse._SubParsersAction[Parser]) -> None:
    """Add both commands."""
    told = "begin a cycle: RA, EP, CD and VAS work on it until its tests pass"
    start = acts.add_parser("start", prog="acp cycle start", help=told, description=sentence(told))
    start.add_argument("description", help="what is to be built")
    start.add_argument("--title", default="", help="a name for it (default: from the description)")
    start.add_argument("--max-iterations", type=int, metavar="N", help="(5)")
    told = "do not use the project's prep-package.json"
    start.add_argument("--no-prep", action="store_true", help=told)
    start.add_argument("--no-run", action="store_true", help="only write the cycle's files")
    _common(start)
    told = "conduct a cycle: go on where it stands, with the programs of before or others"
    go_on = acts.add_parser("run", prog="acp cycle run", help=told, description=sentence(told))
    _common(go_on)


def _common(act: Parser) -> None:
    act.add_argument("--folder", default=".", metavar="DIR", help="the project")
    act.add_argument("--cycle", default="", metavar="ID", help="which one (default: the latest)")
    programs = act.add_argument_group("the agents' programs")
    add = programs.add_argument
    add("--program", metavar="PRESET", help="which program all agents run: claude, codex, ...")
    add("--agent", action="append", default=[], metavar="NAME=PRESET", help="another for one agent")
    add("--command", metavar="WORDS", help="any command in place of a preset")
    add(
        "--agent-command",
        action="append",
        default=[],
        metavar="NAME=WORDS",
        help="the same for one agent",
    )
    add("--model", default="", help="the model that the programs use")
    add("--timeout", type=float, metavar="SECONDS", help="that a run may take (1800)")
    add("--attempts", type=int, metavar="N", help="how often a run is tried in all (2)")
    add("--overlap", action="store_true", help="EP may begin while RA is at work")
    act.add_argument("--foreground", action="store_true", help="conduct it in this terminal")
    act.add_argument("--leave", action="store_true", help="end where a person is waited for")
    act.add_argument("--dry-run", action="store_true", help="only show what would be done")
    act.add_argument("--json", action="store_true", help=f"print a JSON object ({SCHEMA})")


def start(given: argparse.Namespace) -> int:
    """Begin a cycle, and conduct it."""
    root = Path(given.folder).resolve()
    now = utc_now()
    id = given.cycle or init.new_id(now)
    prepared = None if given.no_prep else preparation.read(root, now)
    limit = preparation.limit(prepared, given.max_iterations, init.ITERATIONS)
    said = preparation.told(prepared, given.max_iterations)
    fields = prepared.fields if prepared else {}
    state = init.first_state(id, now, given.description, given.title, limit, fields, said)
    spec = None if given.no_run else _spec(given, root, id, None)
    if given.dry_run:
        more = encoded(state).decode()
        _told(given, id, "dry-run", f"would begin {id}", more, notes=said)
        return 0
    busy = process.running(str(root))
    if spec and busy:
        raise Refused(f"an orchestrator runs in this project already (process {busy.pid})")
    init.found(root, state)
    if spec is None:
        _told(given, id, "done", f"begun: {id}; `acp cycle run` conducts it", notes=said)
        return 0
    return _conduct(given, spec, "begun", said)


def go_on(given: argparse.Namespace) -> int:
    """Conduct a cycle that there is."""
    root, found = chosen(given.folder, given.cycle)
    spec = _spec(given, root, found.id, specs.load(str(root)))
    status = text(Store(root, found.id).read().get("status"))
    if status in ("completed", "failed"):
        how = "extend" if status == "completed" else "resume"
        raise Refused(f"{found.id} is {status}: `acp cycle {how}` lets it go on")
    if given.dry_run:
        _told(given, found.id, "dry-run", f"would conduct {found.id}")
        return 0
    return _conduct(given, spec, "conducted")


def _conduct(given: argparse.Namespace, spec: Spec, word: str, notes: Sequence[str] = ()) -> int:
    if not given.foreground:
        started = process.start(spec)
        told = f"{word}: {spec.cycle}, by process {started.pid}"
        told = f"{told}; `acp cycle status` tells how it goes"
        _told(given, spec.cycle, "requested", told, notes=notes)
        return 0
    for each in () if given.json else notes:
        say(each)
    code = process.conduct(spec, echo=None if given.json else say)
    _told(given, spec.cycle, "ended", f"the orchestrator ended with {code}")
    return code


def _told(
    given: argparse.Namespace,
    id: str,
    state: str,
    sentence: str,
    more: str = "",
    notes: Sequence[str] = (),
) -> None:
    if given.json:
        told: dict[str, object] = {"schema": SCHEMA, "cycle": id, "act": given.act}
        told |= {"state": state, "sentence": sentence}
        told |= {"notes": list(notes)} if notes else {}
        say_json(told | ({"content": more} if more else {}))
        return
    say(sentence)
    for line in (*notes, *more.splitlines()):
        say(line)


def _spec(given: argparse.Namespace, root: Path, id: str, before: Spec | None) -> Spec:
    """What the orchestrator is asked to do; what is not given is as before.

    Raises:
        Refused: an agent has no program, or one that is not there.
        PresetError: a preset is not what it should be.
    """
    spec = replace(before, cycle=id) if before else Spec(str(root), id)
    changes: dict[str, Any] = {"leave": given.leave}
    if given.timeout is not None:
        changes["timeout"] = given.timeout
    if given.attempts is not None:
        changes["attempts"] = given.attempts
    if given.overlap:
        changes["overlap"] = True
    spec = replace(spec, **changes)
    if not 0 < spec.timeout <= 7 * 86_400 or not 1 <= spec.attempts <= 100:
        raise Refused(
            f"--timeout is a number of seconds ({TIMEOUT:g}), --attempts from 1 to 100 ({ATTEMPTS})"
        )
    programs = _programs(given, spec if before else None)
    spec = replace(spec, agents=specs.with_presets(programs))
    process.check(spec)
    return spec


def _programs(given: argparse.Namespace, before: Spec | None) -> dict[str, tuple[Preset, str]]:
    from acp_core.person.settings import load as load_settings

    known = presets.load(load_settings().presets)
    found: dict[str, tuple[Preset, str]] = {}
    if before:
        found = {name: before.preset(name) for name in AGENTS}
    if given.program:
        found = dict.fromkeys(AGENTS, (_named(given.program, known), given.model))
    if given.command:
        found = dict.fromkeys(AGENTS, (_command(given.command), given.model))
    for name, word in _pairs(given.agent, "--agent"):
        found[name] = (_named(word, known), given.model)
    for name, word in _pairs(given.agent_command, "--agent-command"):
        found[name] = (_command(word), given.model)
    missing = [name for name in AGENTS if name not in found]
    if missing:
        told = f"no program for {', '.join(missing)}: name one with --program or --command"
        raise Refused(told + (", or use --no-run" if given.act == "start" else ""))
    return found


def _pairs(words: list[str], option: str) -> list[tuple[str, str]]:
    found = []
    for each in words:
        name, sign, said = each.partition("=")
        if name not in AGENTS or not sign or not said.strip():
            raise Refused(f"{option} takes NAME=..., NAME being {', '.join(AGENTS)}: {each!r}")
        found.append((name, said))
    return found


def _named(name: str, known: Mapping[str, Preset]) -> Preset:
    if name not in known or name == presets.ANY:
        names = ", ".join(each for each in known if each != presets.ANY)
        raise Refused(f"there is no preset {name!r} (there are: {names})")
    return known[name]


def _command(words: str) -> Preset:
    try:
        return presets.any_command(shlex.split(words))
    except ValueError as error:
        raise Refused(f"{words!r}: {error}") from None
