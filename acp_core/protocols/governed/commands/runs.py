"""The verbs that carry a run forward: init, step, status, check, correct, accept, reject."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from acp_core.agents.identity import identify
from acp_core.files.transaction import REPLACE, Write
from acp_core.model.action import Change
from acp_core.protocols.governed.commands.handing import handed
from acp_core.protocols.governed.commands.line import (
    as_objects,
    deciding,
    must_agree,
    parser_of,
    say_json,
    show,
    warn_all,
)
from acp_core.protocols.governed.prompts import staged
from acp_core.protocols.governed.schema import Object, obj, text
from acp_core.protocols.governed.state.gates import MET
from acp_core.protocols.governed.write import (
    Refused,
    accept,
    decide,
    dispatch,
)
from acp_core.protocols.governed.write import (
    changes as shown,
)
from acp_core.protocols.governed.write import (
    init as initialise,
)
from acp_core.protocols.governed.write.accept import Judged, NotAccepted
from acp_core.protocols.governed.write.init import PHASES, Wish
from acp_core.protocols.governed.write.opened import look, refuse_agents, who
from acp_core.protocols.kit.command_line import Parser, say


def _now() -> datetime:
    return datetime.now(UTC)


def standing(state: Object) -> dict[str, object]:
    """Where a run stands, for JSON."""
    waits = obj(state, "pending_phase_transition") or obj(state, "pending_run_completion")
    return {
        "run_id": state.get("run_id"),
        "status": state.get("status"),
        "phase": state.get("phase"),
        "gate": waits.get("gate"),
        "blocked_on": state.get("blocked_on"),
        "active_turns": list(obj(state, "active_turns")),
    }


def stands(state: Object) -> str:
    """Where a run stands, in a few words."""
    on = text(state, "blocked_on", 200)
    return f"{text(state, 'phase', 80)}: {text(state, 'status', 80)}" + (f" ({on})" if on else "")


def init_parser() -> Parser:
    """The arguments of `acp governed init`."""
    parser = parser_of("init", "Start a governed run in a repository: configuration, roles, "
                       "prompts, planning documents, TALK.md.")  # fmt: skip
    add = parser.add_argument
    add("--name", default="", help="the project's name (default: the folder's)")
    add("--goal", default="", help="what the run is to reach")
    add("--phase", action="append", default=[], metavar="NAME=ROLE",
        help="repeat, in order (default: planning=pm, implementation=dev, verification=qa)")  # fmt: skip
    add("--agent", action="append", default=[], metavar="ROLE=COMMAND",
        help="the command line that takes a role's turns; {prompt} stands for the prompt, which "
        "it gets on its standard input otherwise; a role without one is played by a human")  # fmt: skip
    return parser


def init(arguments: Sequence[str]) -> int:
    """Start a run."""
    options = init_parser().parse_args(arguments)
    wish = Wish(
        options.name,
        options.goal,
        tuple(_pair(each, "--phase") for each in options.phase) or PHASES,
        dict(_pair(each, "--agent") for each in options.agent),
    )
    place = Path(os.path.abspath(options.folder))
    if options.dry_run:
        files = initialise.contents(place, wish, _now())
        if options.json:
            say_json("init", folder=str(place), dry_run=True, created=list(files))
        else:
            for name in files:
                say(f"create {place / name}" if not (place / name).exists() else f"keep {name}")
        return 0
    started = initialise.initialise(place, wish, _now())
    if options.json:
        say_json("init", folder=started.root, created=started.created, kept=started.kept,
                 finished=started.finished)  # fmt: skip
        return 0
    if started.finished:
        say(f"Finished the start of the run in {started.root}, which was interrupted")
    else:
        say(f"Started a governed run in {started.root}")
    if started.kept:
        say(f"kept what was there: {', '.join(started.kept)}")
    say(f"next: acp governed step {options.folder}")
    return 0


def _pair(given: str, flag: str) -> tuple[str, str]:
    name, sign, value = given.partition("=")
    if not sign or not name.strip() or not value.strip():
        raise Refused(f"{flag} {given!r}: write it as NAME=VALUE")
    return name.strip(), value.strip()


def step_parser() -> Parser:
    """The arguments of `acp governed step`."""
    parser = parser_of("step", "Assign the next turn, write its bundle, and have it taken: by its "
                       "program where the role has one, else by a human. Exit codes: 0; 1 its "
                       "program came to nothing; 2 refused.")  # fmt: skip
    parser.add_argument("--role", help="who takes it (default: who comes next)")
    parser.add_argument("--no-run", action="store_true", help="write the bundle, start nothing")
    return parser


def step(arguments: Sequence[str]) -> int:
    """Assign a turn and have it taken."""
    options = step_parser().parse_args(arguments)
    code = handed("step", options, role=options.role or "")
    if code is not None:
        return code
    if options.dry_run:
        given, planned = dispatch.preview(options.folder, options.role, _now())
        opened = look(options.folder)
        files = [
            Write(opened.root / given.bundle / name, REPLACE, data)
            for name, data in planned.files.items()
        ]
        return _dry("step", options, shown.changes(opened, planned.move, files), given._asdict())
    taker = None if options.no_run else identify(os.getpid())
    given = dispatch.dispatch(options.folder, options.role, _now(), taker)
    warn_all(given.warnings)
    if not options.json:
        again = f" again (attempt {given.attempt})" if given.again else ""
        say(f"dispatched {given.turn_id} to {given.role}{again} ({given.runtime}, {given.adapter})")
        say(f"bundle: {given.bundle}")
    if options.no_run:
        if options.json:
            say_json("step", folder=options.folder, **given._asdict(), staged=False)
        return 0
    from acp_core.protocols.governed.conduct import adapters

    came = adapters.take(options.folder, given.turn_id)
    if options.json:
        say_json("step", folder=options.folder, **given._asdict(), staged=came.staged,
                 waits=came.waits, reason=came.reason)  # fmt: skip
    elif came.staged:
        say(f"staged: {given.staging}")
        say(f"next: acp governed accept-turn {options.folder}")
    elif came.waits:
        say(f"{given.role} takes it by hand: read {given.bundle}/PROMPT.md, write {given.staging}")
    else:
        say(f"not staged: {came.reason}; `acp governed step {options.folder}` tries again")
    return 0 if came.staged or came.waits else 1


def _dry(
    verb: str, options: argparse.Namespace, changes: tuple[Change, ...], told: dict[str, object]
) -> int:
    if options.json:
        say_json(verb, folder=options.folder, dry_run=True, changes=as_objects(changes), **told)
    else:
        show(changes)
    return 0


def stop_parser() -> Parser:
    """The arguments of `acp governed stop`."""
    return _of_turn(parser_of("stop", "End the program of the turn that is under way."))


def stop(arguments: Sequence[str]) -> int:
    """End a turn's program."""
    options = stop_parser().parse_args(arguments)
    refuse_agents()
    if options.dry_run:
        opened = look(options.folder)
        running = [turn.id for turn in opened.run.turns if turn.running]
        if options.json:
            say_json("stop", folder=options.folder, dry_run=True, running=running)
        else:
            say(f"would stop: {', '.join(running) or 'nothing'}")
        return 0
    id = dispatch.stop(options.folder, options.turn, _now())
    if options.json:
        say_json("stop", folder=options.folder, turn_id=id)
    else:
        say(f"stopped the program of {id}; `acp governed step {options.folder}` starts it again")
    return 0


def status_parser() -> Parser:
    """The arguments of `acp governed status`."""
    return parser_of("status", "Say where a run stands.", writes=False)


def status(arguments: Sequence[str]) -> int:
    """Say where a run stands."""
    options = status_parser().parse_args(arguments)
    from acp_core.protocols.governed.read.collaboration import detect, open_folder

    if not detect(options.folder):
        raise Refused(f"no governed run in {options.folder}")
    snapshot = open_folder(str(Path(options.folder).absolute())).refresh(_now())
    if options.json:
        say_json(
            "status",
            folder=options.folder,
            phase=snapshot.phase,
            status=snapshot.status.value,
            headline=snapshot.headline,
            waiting=[{"participant": t.participant, "what": t.what} for t in snapshot.turns],
            gates=[{"condition": g.label, "met": g.met, "evidence": g.evidence} for g in snapshot.gates],
            needs=[n.text for n in snapshot.needs],
            findings=[{"code": f.code, "severity": f.severity.value, "message": f.message}
                      for f in snapshot.findings],
        )  # fmt: skip
        return 0
    say(f"{snapshot.name}: {snapshot.headline}")
    for gate in snapshot.gates:
        say(f"  {MET[gate.met]}: {gate.label}" + (f" ({gate.evidence})" if gate.evidence else ""))
    for finding in snapshot.findings:
        say(f"  {finding.severity.value}: {finding.message}")
    return 0


def check_parser() -> Parser:
    """The arguments of `acp governed check`."""
    parser = parser_of("check", "Check the staged result of a turn, and change nothing. Exit codes: "
                       "0 it would be accepted, 1 it would not, 2 there is none.", writes=False)  # fmt: skip
    return _of_turn(parser)


def _of_turn(parser: Parser) -> Parser:
    parser.add_argument("--turn", metavar="ID", help="where several turns are under way")
    return parser


def check(arguments: Sequence[str]) -> int:
    """Check a staged result."""
    options = check_parser().parse_args(arguments)
    judged = accept.judge(look(options.folder), options.turn)
    _tell(judged, options)
    return 0 if judged.verdict.ok else 1


def _tell(judged: Judged, options: argparse.Namespace) -> None:
    verdict = judged.verdict
    if options.json:
        say_json(
            "check",
            folder=options.folder,
            turn_id=judged.turn["turn_id"],
            ok=verdict.ok,
            stage=verdict.stage or None,
            errors=verdict.errors,
            warnings=verdict.warnings,
            corrections=[each._asdict() for each in verdict.corrections],
            observed=judged.observed.files,
        )
        return
    say(f"{judged.turn['turn_id']}: {'sound' if verdict.ok else f'fails at {verdict.stage}'}")
    for error in verdict.errors:
        say(f"  error: {error}")
    for warning in verdict.warnings:
        say(f"  warning: {warning}")
    for each in verdict.corrections:
        say(f"  proposed: set {each.field} to {each.value!r} ({each.reason})")


def correct_parser() -> Parser:
    """The arguments of `acp governed correct`."""
    return _of_turn(parser_of("correct", "Apply the corrections that are proposed for a staged "
                              "result (see check); nothing else is changed."))  # fmt: skip


def correct(arguments: Sequence[str]) -> int:
    """Apply the proposed corrections."""
    options = correct_parser().parse_args(arguments)
    if options.dry_run:
        opened = look(options.folder)
        judged = accept.judge(opened, options.turn)
        new, done = accept.corrected(judged)
        path = opened.root / staged(judged.turn["turn_id"])
        write = Write(path, REPLACE, accept.document(new))
        return _dry("correct", options, shown.changes(opened, None, [write]), {"fields": done})
    done = accept.correct(options.folder, options.turn)
    if options.json:
        say_json("correct", folder=options.folder, fields=done)
    else:
        say(f"corrected: {', '.join(done)}")
    return 0


def accept_turn_parser() -> Parser:
    """The arguments of `acp governed accept-turn`."""
    parser = parser_of("accept-turn", "Enter the staged result into the history, after checking it "
                       "and comparing it with what changed in the repository.")  # fmt: skip
    _of_turn(parser)
    parser.add_argument("--exclude", action="append", default=[], metavar="PATH",
                        help="a changed file that is not the agent's; repeat")  # fmt: skip
    return parser


def accept_turn(arguments: Sequence[str]) -> int:
    """Accept a staged result."""
    options = accept_turn_parser().parse_args(arguments)
    code = handed("accept-turn", options, turn=options.turn or "")
    if code is not None:
        return code
    if options.dry_run:
        judged, move = accept.preview(options.folder, options.turn, _now(), options.exclude)
        if move is None:
            raise NotAccepted(judged.verdict)
        opened = look(options.folder)
        more = accept.prepare(opened, judged, _now())[1]
        return _dry("accept-turn", options, shown.changes(opened, move, more), standing(move.state))
    done = accept.accept(options.folder, options.turn, _now(), options.exclude)
    state = look(options.folder).state
    if options.json:
        say_json("accept-turn", folder=options.folder, turn_id=done.turn_id, role=done.role,
                 warnings=done.warnings, initiative=done.news, **standing(state))  # fmt: skip
        return 0
    warn_all(done.warnings)
    say(f"accepted {done.turn_id} of {done.role}; {stands(state)}")
    for each in done.news:
        say(f"initiative: {each}")
    return 0


def reject_turn_parser() -> Parser:
    """The arguments of `acp governed reject-turn`."""
    parser = parser_of("reject-turn", "Send a turn back with the reason. After the last attempt "
                       "the run is blocked.")  # fmt: skip
    _of_turn(parser)
    parser.add_argument("--reason", default="", help="what is wrong")
    return deciding(parser, comment="the same as --reason")


def reject_turn(arguments: Sequence[str]) -> int:
    """Reject a turn."""
    options = reject_turn_parser().parse_args(arguments)
    reason = options.reason or options.comment
    refuse_agents()
    agreed = options.dry_run or must_agree(options, "Reject the turn?")
    if not agreed:
        say("not rejected")
        return 1
    code = handed("reject-turn", options, turn=options.turn or "", reason=reason)
    if code is not None:
        return code
    if options.dry_run:
        opened = look(options.folder)
        by = who(options.by)
        move, more = decide.rejecting_turn(opened, options.turn, by, reason, _now())
        return _dry("reject-turn", options, shown.changes(opened, move, more), standing(move.state))
    state = decide.reject_turn(options.folder, options.turn, options.by, reason, _now())
    if options.json:
        say_json("reject-turn", folder=options.folder, **standing(state))
    else:
        say(f"rejected; {_after(state, options.folder)}")
    return 0


def _after(state: Object, folder: str) -> str:
    if state.get("status") == "blocked":
        return f"{stands(state)}; `acp governed unblock {folder}` lets it go on"
    return f"`acp governed step {folder}` gives it out again"
