"""A turn from its assignment to its entry in the history.

It is given out with its bundle, and the program that takes it is noted; its staged result is
checked, compared with the repository, corrected, and entered. What the program prints is ours
alone, and stands in the user's state folder. Which process it is stands with the run, below
``.acp/run/turns``, so that no other account starts a second one beside it. Source: governed
protocol specification, "Commands" and "Files".
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple, NoReturn

from acp_core.agents.processes import Identity, end, identify
from acp_core.files import atomic, claims
from acp_core.files.claims import ClaimError, Seen, of_turn
from acp_core.files.transaction import APPEND, REPLACE, Write
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.governed import prompts, schema
from acp_core.protocols.governed.read import existing_program, repository
from acp_core.protocols.governed.read.run import (
    MANIFEST,
    MARK,
    bundle_differences,
    bundle_folder,
    is_program_running,
    predicates,
    program_folder,
    program_logs,
    read_program_note,
    read_run,
    runs_elsewhere,
    unknown,
    unrecorded_program,
)
from acp_core.protocols.governed.rules import guard, results
from acp_core.protocols.governed.rules.results import (
    Correction,
    Verdict,
    apply_corrections,
    artifact_corrections,
)
from acp_core.protocols.governed.schema import (
    Object,
    Programs,
    Runtime,
    TurnState,
    decode,
    exit_gate,
    items,
    obj,
    objects,
    strings,
    text,
)
from acp_core.protocols.governed.state import (
    AGAIN,
    AT_END,
    Move,
    Observed,
    acceptance_failed,
    accepted,
    active_turn,
    assigned,
    begun,
    ended,
    failed_start,
    format_time,
    initial,
    is_named,
    named,
    redispatched,
    turns_of,
    verified,
)
from acp_core.protocols.governed.write.hooks import carry_out
from acp_core.protocols.governed.write.initiative_opened import CONTEXT_NAME, context_of_run
from acp_core.protocols.governed.write.opened import (
    Opened,
    RunPlan,
    commit,
    content,
    json_document,
    locked,
    new_id,
    read_unlocked,
    removing,
    reserved_changed,
)

TOUCHED = "review_only role modified product files"


class NotAccepted(Refused):
    """A staged result did not pass, and stays; this is noted in the state, where that is acp's."""

    def __init__(self, verdict: Verdict) -> None:
        said = f"not accepted, at {verdict.stage}: {'; '.join(verdict.errors)}"
        super().__init__(f"{said}{hint(verdict)}")
        self.verdict = verdict


def hint(verdict: Verdict) -> str:
    """How a human says that a change is not the agent's, where one was seen; "" where none was."""
    if not any(error.startswith((results.UNDECLARED, TOUCHED)) for error in verdict.errors):
        return ""
    return " (what is not the agent's: acp governed accept-turn --exclude PATH)"


class Judged(NamedTuple):
    """A staged result with everything that is known about it."""

    turn: Object
    result: object
    verdict: Verdict
    observed: Observed


def judge(opened: Opened, turn_id: str | None, excluded: Iterable[str] = ()) -> Judged:
    """Check a staged result in all stages, and against what changed in the repository.

    Args:
        opened: the run.
        turn_id: the turn; None for the only one.
        excluded: paths that a human says are not the agent's.

    Raises:
        Refused: no turn is under way, nothing is staged, or a changed file cannot be read at this moment.
    """
    turn = active_turn(opened.state, turn_id)
    name = prompts.staged(turn["turn_id"])
    data = content(opened.root, name)
    if data is None:
        raise Refused(f"Staged turn result not found: {name}")
    observed = repository.observe(opened.root, obj(turn, "baseline"), excluded)
    if observed.doubt:
        _refuse_for_now(observed.doubt)
    try:
        result = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        message = clean_line(f"Invalid JSON in {name}: {error}", 300)
        return Judged(turn, None, Verdict("schema", (message,), (), ()), observed)
    verdict = results.check(result, opened.state, opened.config, opened.run.history.lines)
    if verdict.ok and isinstance(result, dict):
        again = _used_again(result, opened)
        if is_program_running(opened.root, turn["turn_id"]):
            again.append("Its program is still running and may change more files.")
        verdict = verdict._replace(warnings=(*verdict.warnings, *again))
        verdict = _compared(result, verdict, observed, opened)
    return Judged(turn, result, verdict, observed)


def _refuse_for_now(doubt: str) -> NoReturn:
    """Nothing is judged by what the disk or the system failed to tell: the turn stays as it is."""
    raise Refused(clean_line(f"Changes cannot be read now: {doubt}. Try again", 500))


def _used_again(result: Object, opened: Opened) -> list[str]:
    """Ids of objections that were another one's before: then the two are taken for one."""
    known = {each.id: each.statement for each in opened.run.objections}
    return [
        f"{id} was raised before with different words: “{known[id]}”. acp treats both as one."
        for raw in items(result, "objections")
        if (id := text(raw, "id", 40)) in known
        and raw.get("status") == "raised"
        and known[id] != text(raw, "statement")
    ]


def _compared(result: Object, verdict: Verdict, observed: Observed, opened: Opened) -> Verdict:
    """What the repository says against a result that is sound in itself."""
    warnings = list(verdict.warnings)
    seized = [name for name in reserved_changed(opened) if name not in observed.excluded]
    if seized:
        message = f"Reserved paths changed outside acp: {', '.join(seized)}"
        return verdict._replace(stage=results.OBSERVED, errors=(message,))
    turn = active_turn(opened.state, str(result["turn_id"]))
    altered = _altered(turn, observed, opened)
    if altered and turn.get(MARK):
        cure = "Reject the turn, or accept without such a file: --exclude PATH"
        return verdict._replace(stage=results.OBSERVED, errors=(*altered, cure))
    warnings += altered
    if not observed.known:
        return _unobserved(verdict, opened, text(result, "turn_id", 200))
    declared = strings(result, "files_changed")
    authority = objects(opened.config.get("roles")).get(result["role"], {}).get("write_authority")
    undeclared = [name for name in observed.files if name not in declared]
    unseen = [name for name in declared if name not in observed.files]
    product = [name for name in undeclared if not name.startswith(results.REVIEWS)]
    errors, offered = [], list(verdict.corrections)
    if authority == "review_only" and product:
        named = ", ".join(product[:20])
        errors.append(f"{TOUCHED} (observed in actual diff): {named}")
    elif undeclared:
        named = ", ".join(undeclared[:20])
        errors.append(f"{results.UNDECLARED}: {named}")
        named_all = [*declared, *undeclared]
        offered.append(Correction("files_changed", named_all, "these were observed"))
        offered += artifact_corrections(result, named_all, authority)
    if unseen:
        named = ", ".join(unseen[:20])
        if authority == "review_only":
            errors.append(f"{results.UNOBSERVED}: {named}")
            observed_only = [name for name in declared if name in observed.files]
            offered.append(Correction("files_changed", observed_only, "only these were observed"))
        else:
            warnings.append(f"Declared but not observed in the repository: {named}.")
    return Verdict(
        results.OBSERVED if errors else "",
        tuple(clean_line(error, 500) for error in errors),
        tuple(warnings),
        tuple(offered),
    )


def _altered(turn: Object, observed: Observed, opened: Opened) -> tuple[str, ...]:
    """What of the turn's bundle is not as it was written, and no human took as it is."""
    id = text(turn, "turn_id", 200)
    found = bundle_differences(opened.root, id, turn.get(MARK))
    home = bundle_folder(id)
    for each in found:
        if each.passing:
            _refuse_for_now(each.sentence(home))
    left = [each for each in found if f"{home}/{each.name}" not in observed.excluded]
    return tuple(clean_line(f"Its dispatch bundle: {each.sentence(home)}.", 500) for each in left)


def _unobserved(verdict: Verdict, opened: Opened, turn_id: str) -> Verdict:
    """A result of which nothing could be compared: refused where the turn began with git at hand."""
    turn = active_turn(opened.state, turn_id)
    if text(obj(turn, "baseline"), "kind", 40) == "git_worktree":
        message = "Changes since the turn was assigned cannot be observed: git does not answer."
        return verdict._replace(stage=results.OBSERVED, errors=(message,))
    message = (
        "Changes could not be observed: there was no git repository when the turn was assigned."
    )
    return verdict._replace(warnings=(*verdict.warnings, message))


def accepting(
    opened: Opened, turn_id: str | None, excluded: Iterable[str], now: datetime
) -> RunPlan:
    """Enter a staged result into the history; where it does not pass, the turn says so from then on.

    Raises:
        Refused: nothing can be accepted now.
    """
    judged = judge(opened, turn_id, excluded)
    verdict, id = judged.verdict, judged.turn["turn_id"]
    role = text(judged.turn, "assigned_role", 80)
    sentence = f"Accept the turn of {role}. {_summary(judged)}"
    if words := existing_program.words(opened.run, "accept-turn", turn=turn_id or ""):
        return RunPlan("", sentence, warnings=verdict.warnings, words=words)
    if not verdict.ok:
        move = acceptance_failed(opened.state, id, verdict.stage, verdict.errors, now)
        what, move = f"accept-turn (failed, {id})", ended(move, id, judged.observed)
        return RunPlan(what, sentence, move=move, refusal=NotAccepted(verdict))
    move, more = _entered(opened, judged, now)
    waits = obj(move.state, "pending_phase_transition") or obj(move.state, "pending_run_completion")
    gate, status = text(waits, "gate", 200), move.state["status"]
    turn: Object = {"turn_id": id, "role": role}
    told = [("after_acceptance", turn | {"turn": move.history[0]})]
    if gate:
        told.append(("before_gate", turn | {"gate": gate}))
    elif status == "blocked" and not move.state.get("barrier_request"):  # to wait is normal
        reason = move.state.get("blocked_reason")
        told.append(("on_escalation", turn | {"blocked_reason": reason}))
    waiting = f"; the gate {gate} waits for you" if gate else ""
    return RunPlan(
        f"accept-turn ({id})",
        sentence,
        f"Accepted the turn of {role}: {move.state['phase']} is {status}{waiting}.",
        move,
        more,
        verdict.warnings,
        after=turn,
        taken=[name for name in reserved_changed(opened) if name in judged.observed.excluded],
        asked=turn | {"turn_result": judged.result},
        told=told,
        said=verdict.warnings,
    )


def _summary(judged: Judged) -> str:
    """What a staged result says, and what changed."""
    result, said = judged.result, ""
    if isinstance(result, dict):
        asks = text(result, "phase_transition_request", 80)
        said = f"“{text(result, 'summary', 400)}” ({text(result, 'status', 40)})"
        if asks:
            said += f", asks to enter {asks}"
        elif result.get("run_completion_request") is True:
            said += ", asks to complete the run"
        said += "."
    if judged.observed.known:
        names = ", ".join(judged.observed.files[:20]) or "nothing"
        said += f" Changed in the repository: {names}."
    return said


def _entered(opened: Opened, judged: Judged, now: datetime) -> tuple[Move, list[Write]]:
    """What accepting a sound result writes.

    Raises:
        Refused: the run cannot take a result now, or the gate's files cannot be read.
    """
    assert isinstance(judged.result, dict)  # else the verdict is not ok
    id = judged.turn["turn_id"]
    gate = exit_gate(opened.config, text(opened.state, "phase", 200))
    status = text(verified(judged.result), "status", 40)
    demanded = predicates(opened.root, opened.config, gate, status)
    if doubt := unknown(demanded):
        raise Refused(doubt)
    move = accepted(
        opened.config, opened.state, judged.result, judged.observed, demanded,
        opened.objections, now,
    )  # fmt: skip
    more = [
        Write(opened.root / schema.TALK, APPEND, _talk(move.history[0])),
        *removing(opened.root, f"{prompts.STAGING}/{id}"),
        *removing(opened.root, bundle_folder(id)),
    ]
    return move, more


def accept(
    root: str | Path, turn_id: str | None, now: datetime, excluded: Iterable[str] = ()
) -> tuple[RunPlan, tuple[str, ...]]:
    """Accept a staged result; returns what was done, and what the coordinator above the run says.

    Raises:
        NotAccepted: it did not pass; the turn says so from now on.
        Refused: nothing can be accepted now, or an agent asks. Nothing was written.
    """
    made = carry_out(
        root,
        schema.ACCEPT,
        lambda opened: accepting(opened, turn_id, excluded, now),
        excluded=excluded,
    )
    from acp_core.protocols.governed.write.initiative_decide import (
        after_turn,  # late: most have none
    )

    return made, tuple(after_turn(root))


def correcting(opened: Opened, turn_id: str | None) -> RunPlan:
    """Apply the corrections that are proposed for a staged result.

    Raises:
        Refused: none is proposed, or the result is no JSON object.
    """
    judged = judge(opened, turn_id)
    proposed, id = judged.verdict.corrections, judged.turn["turn_id"]
    if not proposed or not isinstance(judged.result, dict):
        raise Refused("no correction is proposed for the staged result")
    new = json_document(apply_corrections(judged.result, proposed))
    fields = tuple(each.field for each in proposed)
    becomes = "; ".join(
        f"{c.field} becomes {json.dumps(c.value, ensure_ascii=False)} ({c.reason})"
        for c in proposed
    )
    return RunPlan(
        f"correct ({id})",
        f"Correct the result of {text(judged.turn, 'assigned_role', 80)}: {becomes}.",
        f"Corrected: {', '.join(fields)}.",
        writes=[Write(opened.root / prompts.staged(id), REPLACE, new)],
        before={"fields": fields},
        after={"fields": fields},
    )


def _talk(line: Object) -> bytes:
    """What TALK.md says of an accepted turn."""
    id = text(line, "turn_id", 80).removeprefix("turn_")[:8]
    lines = [
        f"\n## Turn {id} — {text(line, 'role', 80)} ({text(line, 'phase', 80)})\n",
        f"- **Status:** {text(line, 'status', 40)}",
        f"- **Summary:** {text(line, 'summary', 2_000)}",
    ]
    lines += [
        f"- **Decision {text(d, 'id', 40)}:** {text(d, 'statement', 1_000)}"
        for d in items(line, "decisions")
    ]
    lines += [
        f"- **Objection {text(o, 'id', 40)} ({text(o, 'severity', 40)}):**"
        f" {text(o, 'statement', 1_000)}"
        for o in items(line, "objections")
    ]
    lines.append(f"- **Proposed next:** {text(line, 'proposed_next_role', 80)}")
    return ("\n".join(lines) + "\n\n---\n").encode(errors="replace")


class Dispatched(NamedTuple):
    """A turn whose bundle is written. ``again`` says that it was given out before."""

    turn_id: str
    role: str
    runtime: str
    adapter: str
    bundle: str
    staging: str
    attempt: int
    again: bool
    begun: bool
    warnings: tuple[str, ...] = ()


def dispatch(
    root: str | Path, role: str | None, now: datetime, taken_by: Identity | None = None
) -> Dispatched:
    """Give the next turn to a role, or once more the one whose program came to nothing.

    Args:
        root: the repository.
        role: who takes it; None for the one that comes next.
        now: the time.
        taken_by: the process that will have the turn taken, where a program takes it.

    Raises:
        Refused: nothing can be dispatched now. Nothing was written.
    """
    made = carry_out(
        root,
        schema.STEP,
        lambda opened: dispatching(opened, role, now, taken_by),
        human=False,
        role=role or "",
    )
    turn: Dispatched = made.subject
    room = schema.inside(Path(os.path.abspath(root)), f"{prompts.STAGING}/{turn.turn_id}")
    if room is not None:
        with contextlib.suppress(OSError):  # whoever takes the turn can make it too
            atomic.shared_folder(room)
    return turn._replace(warnings=made.said)


def dispatching(
    opened: Opened, role: str | None, now: datetime, taken_by: Identity | None = None
) -> RunPlan:
    """Give a turn out; its `subject` is the `Dispatched`. Arguments as those of `dispatch`.

    Raises:
        Refused: nothing can be dispatched now.
    """
    at = format_time(now)
    state = opened.state or initial(opened.config, at)
    first: tuple[Object, ...] = ()
    starts = state.get("status") == "idle"
    if starts or not is_named(state):
        beginning = (begun if starts else named)(state, new_id("run"), at)
        state, first = beginning.state, beginning.events
    again = _turn_given_again(opened, state, role)
    try:
        if again:
            before = _baseline(opened, state, again, at)
            move = redispatched(opened.config, state, again, now, before)
        else:
            stands = repository.baseline(opened.root).as_object(at)
            move = assigned(opened.config, state, role, new_id("turn"), stands, now)
    except repository.GitFailed as error:
        doubt = f"Changes cannot be read now: {error}. Try again"
        raise Refused(clean_line(doubt, 500)) from None
    move = move._replace(events=(*first, *move.events))
    turn = active_turn(move.state, again or None)
    talk = (content(opened.root, schema.TALK) or b"").decode("utf-8", "replace")
    others = context_of_run(opened.root)
    more = {} if others is None else {CONTEXT_NAME: others}
    files = prompts.bundle(opened.run, move.state, turn, at, talk, more)
    turn[MARK] = hashlib.sha256(files[MANIFEST]).hexdigest()  # an agent may rewrite the manifest
    id, taker, home = turn["turn_id"], turn["assigned_role"], bundle_folder(turn["turn_id"])
    adapter = _runtime(opened.config, turn).adapter
    given = Dispatched(
        id, taker, text(turn, "runtime_id", 200), adapter, home, prompts.staged(id),
        turn["attempt"], bool(again), starts,
    )  # fmt: skip
    written = [Write(opened.root / home / n, REPLACE, data) for n, data in files.items()]
    stale = removing(opened.root, home) if again else []
    written += [each for each in stale if each.path not in {w.path for w in written}]
    hooked: Object = {"turn_id": id, "role": taker, "attempt": turn["attempt"]}
    noting = None
    if taken_by is not None and adapter != "manual":  # before anybody sees it, and thinks it lost
        noting = partial(note_program, opened.root, id, taken_by)
    return RunPlan(
        f"step ({taker}, {id})",
        f"Assign the turn {'again ' if again else ''}to {taker}",
        "",
        move,
        written,
        before=given._asdict(),
        words=existing_program.words(opened.run, "step", role=role or ""),
        first=noting,
        asked=hooked,
        told=[("after_dispatch", hooked)],
        subject=given,
    )


def _baseline(opened: Opened, state: Object, turn_id: str, at: str) -> Object | None:
    """How the repository stands before another attempt; None where the attempt before left no word."""
    turn = turns_of(state)[turn_id]
    if not isinstance(turn.get(AT_END), dict):
        return None
    return repository.taken_anew(opened.root, obj(turn, "baseline"), turn[AT_END], at)


def _runtime(config: Object, turn: Object) -> Runtime:
    """What takes a turn."""
    return decode(Programs, config).runtimes.get(text(turn, "runtime_id", 200)) or Runtime()


def _turn_given_again(opened: Opened, state: Object, role: str | None) -> str:
    """The turn that is to be dispatched again, "" where a new one is to be assigned.

    Raises:
        Refused: a turn is at work.
    """
    for id, turn in turns_of(state).items():
        its = text(turn, "assigned_role", 80)
        if role is not None and role != its:
            raise Refused(f"Turn already assigned: {id} to {its}")
        place = schema.inside(opened.root, prompts.staged(id))
        if place is not None and place.exists():
            raise Refused(f"the result of {its} is staged: accept or reject it ({id})")
        by_hand = _runtime(opened.config, turn).adapter == "manual"
        room = schema.inside(opened.root, bundle_folder(id))
        if text(turn, "status", 40) in AGAIN or (room is not None and not room.is_dir()):
            return id
        if not by_hand and not is_program_running(opened.root, id):
            return id  # its program, or the command that was to start it, is gone
        other = runs_elsewhere(opened.root, id)
        by = f"; {other.sentence}" if other else ""
        raise Refused(f"Turn already assigned: {id} to {its}{by}")
    return ""


def note_failed_start(
    root: str | Path, turn_id: str, reason: str, now: datetime, dispatched_at: object = None
) -> None:
    """Say in the state that a turn's program came to nothing.

    Args:
        root: the repository.
        turn_id: the turn.
        reason: why.
        now: the time.
        dispatched_at: when the program got the turn: one that was given out again since is left
            alone.

    Where the turn is not under way any more, or the run is damaged, nothing is said.
    """
    with contextlib.suppress(Refused), locked(root, guard.NOTING) as opened:
        turn = active_turn(opened.state, turn_id)
        if text(turn, "status", 40) not in ("dispatched", "running", "starting"):
            return
        if dispatched_at is not None and turn.get("dispatched_at") != dispatched_at:
            return
        seen = repository.observe(opened.root, obj(turn, "baseline"))
        move = ended(failed_start(opened.state, turn_id, reason, now), turn_id, seen)
        commit(opened, f"step (failed, {turn_id})", move)


def stop_turn(root: str | Path, turn_id: str | None, now: datetime) -> str:
    """End the program of a turn; you can reassign the turn. Returns the turn's id.

    Raises:
        Refused: no turn is under way, or no program of it runs.
        OSError: the program does not end.
    """
    opened = read_unlocked(root)
    id = str(active_turn(opened.state, turn_id)["turn_id"])
    if not end_program(opened.root, id):
        raise Refused(f"no program of the turn {id} is running on this machine")
    note_failed_start(root, id, "a human stopped the program", now)
    return id


# --- the program that takes a turn: who it is, what it prints, its end

PROGRAM_GRACE = (
    5.0  # seconds between asking a program to end and making it, and then for it to be gone
)


def fresh_program_logs(root: Path, turn_id: str) -> tuple[Path, ...]:
    """The same, without what an earlier attempt printed: that is kept beside them.

    Raises:
        OSError: the state folder cannot be written.
    """
    found = program_logs(root, turn_id)
    for path in found:
        with contextlib.suppress(FileNotFoundError):
            os.replace(path, path.with_suffix(".before.log"))
    return found


def note_program(root: Path, turn_id: str, identity: Identity) -> None:
    """Write down which process takes the turn.

    Raises:
        OSError: the state folder cannot be written.
    """
    record = asdict(identity) | {"root": os.fspath(root), "turn_id": turn_id}
    folder = program_folder(root, turn_id)
    atomic.private_folder(folder)
    atomic.replace(folder / "process.json", json.dumps(record).encode(), sync=False, private=True)
    try:
        claims.note(root, of_turn(turn_id), identity.pid, about=turn_id)
    except ClaimError as error:
        raise OSError(errno.EPERM, str(error)) from None


def note_program_end(root: Path, turn_id: str, how: str) -> None:
    """Write down how the program ended that staged the turn's result; "" for well.

    Raises:
        OSError: the state folder cannot be written.
    """
    path = program_folder(root, turn_id) / "ended"
    if how:
        atomic.replace(path, how.encode(errors="replace"), sync=False, private=True)
    else:
        path.unlink(missing_ok=True)


def forget_program(root: Path, turn_id: str) -> None:
    """Say that the turn's program has ended."""
    with contextlib.suppress(OSError, ClaimError):
        claims.note(root, of_turn(turn_id), None, about=turn_id)
    with contextlib.suppress(OSError):
        (program_folder(root, turn_id) / "process.json").unlink()


def end_program(root: Path, turn_id: str) -> bool:
    """End the turn's program with everything that it started; returns whether it ran.

    Raises:
        OSError: it may not be ended, or does not end.
    """
    identity = read_program_note(root, turn_id)
    if identity is None or not identity.alive():
        seen = claims.seen(root, of_turn(turn_id))
        known = _stoppable(seen) if seen.child is not None else None
        identity = known or unrecorded_program(root, turn_id, seen)
    if identity is None:
        return False
    if not end([identity], PROGRAM_GRACE, groups=True, patience=PROGRAM_GRACE):
        raise OSError(errno.EBUSY, "the program does not exit")
    return True


def _stoppable(found: Seen) -> Identity | None:
    """The program that a claim shows, None where there is none.

    Raises:
        OSError: it belongs to another account, which alone may end it.
    """
    if found.child is None or found.owner is None:
        return None
    if not found.mine:
        raise OSError(errno.EPERM, f"{found.owner.account} started it and has to stop it")
    return identify(found.child.pid)


class TakenTurn(NamedTuple):
    """What became of a turn that was handed over: its result is staged, or why it is not.

    ``reason`` of a staged one says how its program ended, where that was not well.
    ``waits`` says that a human takes the turn, so that nothing is wrong.
    """

    staged: bool
    reason: str = ""
    waits: bool = False


class Task(NamedTuple):
    """A turn to be taken: its run, its bundle, and the runtime that takes it."""

    root: Path
    state: Object
    turn: Object
    runtime: Runtime
    config: Object

    @property
    def turn_id(self) -> str:
        """The turn's id."""
        return str(self.turn["turn_id"])

    @property
    def folder(self) -> Path:
        """Where its bundle lies."""
        return self.root / bundle_folder(self.turn_id)

    @property
    def own(self) -> Path:
        """Where what its program prints is kept, in the user's state folder."""
        return program_folder(self.root, self.turn_id)

    @property
    def staged(self) -> Path:
        """Where its result belongs."""
        return self.root / prompts.staged(self.turn_id)

    def seconds_left(self) -> float | None:
        """Seconds until the turn's deadline, None where it has none."""
        deadline = decode(TurnState, self.turn).deadline
        return (deadline - datetime.now(UTC)).total_seconds() if deadline else None


def task(root: str | Path, turn_id: str) -> Task:
    """The turn as it is to be taken.

    Raises:
        Refused: it is not under way, or its runtime cannot be used here.
    """
    place = Path(os.path.abspath(root))
    run = read_run(place)
    turn = active_turn(run.state.value, turn_id)
    if schema.inside(place, bundle_folder(turn_id)) is None:
        raise Refused(f"{turn_id!r} is not a turn id")
    name = text(turn, "runtime_id", 200)
    runtime = run.settings.runtimes.get(name)
    if runtime is None:
        raise Refused(f'the runtime "{name}" is not configured')
    return Task(place, run.state.value, turn, runtime, run.config.value)
