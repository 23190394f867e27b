"""``acp cycle``: a development cycle begun, conducted, steered and mended.

Every command that writes has ``--dry-run`` and ``--json``. Exit codes: 0 done or requested, 2
refused and nothing written, 3 written and lost again to another program.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from acp_core.agents.presets import PresetError
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.actions.perform import Edit, carry_out, preview
from acp_core.protocols.cycle.commands.common import chosen
from acp_core.protocols.cycle.write import changes
from acp_core.protocols.kit.argparse_parser import sentence
from acp_core.protocols.kit.command_line import Parser, run, say, say_json

SCHEMA = "acp.cycle/1"
LOST = 3


def cycle_parser() -> Parser:
    """The arguments of ``acp cycle``."""
    parser = Parser(prog="acp cycle", description="Development cycles of RA, EP, CD and VAS.")
    acts = parser.add_subparsers(dest="act", required=True, metavar="COMMAND", parser_class=Parser)
    from acp_core.protocols.cycle.commands import run as run_commands

    run_commands.add(acts)
    _status(acts)
    act = _human(acts, "feedback", "tell an agent something; it is told it at its next run")
    act.add_argument("agent", choices=schema.AGENTS, help="which agent")
    act.add_argument("text", help="what to say")
    act.add_argument(
        "--type", choices=changes.KINDS, default="clarification", metavar="TYPE",
        help=f"what it is: {', '.join(changes.KINDS)} (%(default)s)",
    )  # fmt: skip
    act = _human(acts, "decide", "make a decision that waits for you")
    act.add_argument("decision", metavar="ID", help="such as DEC-001")
    act.add_argument("choice", help="the number of an option, or words where there are none")
    act.add_argument("--rationale", default="", help="why")
    act.add_argument("--impact", default="", help="what it affects")
    act = _human(acts, "resolve", "say how a blocker is gone")
    act.add_argument("blocker", metavar="ID", help="such as BLK-001")
    act.add_argument("resolution", help="how")
    act.add_argument("--workaround", action="store_true", help="it is only worked around")
    act = _human(acts, "extend", "begin another iteration with something more to do")
    act.add_argument("text", help="what is to be done")
    act.add_argument("--limit", type=int, metavar="N", help="allow so many iterations in all")
    _human(acts, "pause", "have it wait; who is at work ends its run")
    _human(acts, "resume", "let it go on")
    act = _human(acts, "stop", "end it as failed")
    act.add_argument("--reason", default="", help="why")
    act = _human(acts, "accept", "take it as it is, failing tests and all; it is completed then")
    act.add_argument("--reason", default="", help="why")
    act = _human(acts, "rerun", "have an agent, and those after it, do their work again")
    act.add_argument("agent", choices=schema.AGENTS, help="the first of them")
    act.add_argument("--reason", default="", help="what to do otherwise")
    act = _human(acts, "limit", "allow so many iterations")
    act.add_argument("iterations", type=int, help="how many in all")
    act = _human(acts, "rebuild", "make a lost or damaged state anew from the agents' documents")
    act = acts.add_parser(
        "phase-result",
        help="read PHASE_RESULT out of what an agent printed",
        description="Exit codes: 0 in order, 1 there is none, 4 there is one with problems.",
    )
    act.add_argument("file", help="what it printed; - for the standard input")
    act.add_argument("--agent", choices=schema.AGENTS, default="", help="whose it must be")
    act.add_argument("--json", action="store_true", help="print a JSON object")
    return parser


def _add(acts: argparse._SubParsersAction[Parser], name: str, told: str) -> Parser:
    act = acts.add_parser(name, prog=f"acp cycle {name}", help=told, description=sentence(told))
    act.add_argument("--folder", default=".", metavar="DIR", help="the project")
    act.add_argument("--cycle", default="", metavar="ID", help="default: the one that is shown")
    act.add_argument("--json", action="store_true", help=f"print a JSON object ({SCHEMA})")
    return act


def _human(acts: argparse._SubParsersAction[Parser], name: str, told: str) -> Parser:
    act = _add(acts, name, told)
    act.add_argument("--dry-run", action="store_true", help="only show what would be written")
    return act


def _status(acts: argparse._SubParsersAction[Parser]) -> None:
    _add(acts, "status", "where it stands: agents, decisions, blockers, tests")


def cycle(arguments: Sequence[str]) -> int:
    """Run ``acp cycle``."""
    given = cycle_parser().parse_args(list(arguments))
    return run(lambda: _dispatch(given), PresetError)


def _dispatch(given: argparse.Namespace) -> int:
    if given.act == "phase-result":
        return _phase_result(given)
    if given.act in ("start", "run"):
        from acp_core.protocols.cycle.commands import run as run_commands

        return run_commands.start(given) if given.act == "start" else run_commands.go_on(given)
    if given.act == "status":
        from acp_core.protocols.cycle.commands import status

        return status.status(given)
    if given.act == "rebuild":
        return _rebuild(given)
    return _change(given, _edit(given))


def _edit(given: argparse.Namespace) -> Edit:
    """The change that a command asks for."""
    edits: dict[str, Edit] = {
        "feedback": lambda s, now: changes.feedback(s, now, given.agent, given.text, given.type),
        "decide": lambda s, now: changes.decide(
            s, now, given.decision, given.choice, given.rationale, given.impact
        ),
        "resolve": lambda s, now: changes.resolve(
            s, now, given.blocker, given.resolution, given.workaround
        ),
        "extend": lambda s, now: changes.extend(s, now, given.text, given.limit),
        "pause": changes.pause,
        "resume": changes.resume,
        "stop": lambda s, now: changes.stop(s, now, given.reason),
        "accept": lambda s, now: changes.accept(s, now, given.reason),
        "rerun": lambda s, now: changes.rerun(s, now, given.agent, given.reason),
        "limit": lambda s, now: changes.raise_limit(s, now, given.iterations),
    }
    return edits[given.act]


def _change(given: argparse.Namespace, edit: Edit) -> int:
    root, found = chosen(given.folder, given.cycle)
    if given.dry_run:
        return _show(given, root, found.id, edit)
    done = carry_out(root, found.id, edit)
    state = "lost" if done.lost else "requested" if done.requested else "done"
    _told(given, found.id, state, done.sentence)
    return LOST if done.lost else 0


def _show(given: argparse.Namespace, root: Path, id: str, edit: Edit) -> int:
    shown = preview(root, id, edit, f"would {given.act}")
    if shown.refused:
        from acp_core.protocols.cycle.write import Refused

        raise Refused(shown.refused)
    _told(given, id, "dry-run", shown.sentence, "\n".join(each.diff for each in shown.changes))
    return 0


def _told(given: argparse.Namespace, id: str, state: str, sentence: str, diff: str = "") -> None:
    if given.json:
        told: dict[str, object] = {"schema": SCHEMA, "cycle": id, "act": given.act}
        told |= {"state": state, "sentence": sentence}
        say_json(told | ({"diff": diff} if diff else {}))
        return
    say(f"{given.act}: {sentence}")
    for line in diff.splitlines():
        say(line)


def _rebuild(given: argparse.Namespace) -> int:
    from acp_core.protocols.cycle.actions import perform
    from acp_core.protocols.cycle.commands.common import project
    from acp_core.protocols.cycle.write import Refused

    found = project(given.folder)
    id = given.cycle.removesuffix(".json")
    if not id:
        broken = [each.id for each in found.cycles if each.record.problem]
        candidates = [*broken, *found.orphans] or [each.id for each in found.cycles]
        if len(candidates) != 1:
            names = ", ".join(candidates[-5:]) or "none"
            raise Refused(f"name the cycle with --cycle (there are: {names})")
        id = candidates[0]
    if given.dry_run:
        _, old, state = perform.rebuilt(found.root, id)
        _told(given, id, "dry-run", "would rebuild", perform.difference(old, state))
        return 0
    perform.rebuild(found.root, id)
    _told(given, id, "done", "rebuilt, and paused: look at it, then `acp cycle resume`")
    return 0


def _phase_result(given: argparse.Namespace) -> int:
    from acp_core.files.reading import Unreadable, read_bounded
    from acp_core.protocols.cycle.schema.phase_result import LIMIT, parse
    from acp_core.protocols.cycle.write import Refused

    try:
        data = (
            sys.stdin.buffer.read(4 * LIMIT)
            if given.file == "-"
            else read_bounded(Path(given.file), 64 << 20)
        )
    except Unreadable as error:
        raise Refused(f"{given.file} {error}") from None
    found = parse(data.decode("utf-8", "replace"))
    if found is None:
        if given.json:
            say_json({"schema": "acp.cycle-result/1", "blocks": 0, "problems": ["no PHASE_RESULT"]})
        else:
            say("no PHASE_RESULT")
        return 1
    problems = found.problems(given.agent)
    if given.json:
        say_json(
            {"schema": "acp.cycle-result/1", "blocks": found.blocks, "fields": found.plain(),
             "details": found.details, "problems": problems}
        )  # fmt: skip
    else:
        for key, value in found.plain().items():
            shown = ", ".join(value) if isinstance(value, list) else str(value)
            say(f"{key}: {shown}")
        for each in problems:
            say(f"problem: {each}")
    return 4 if problems else 0
