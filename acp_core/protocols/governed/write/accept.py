"""Accepting a staged turn result: checked, compared with the repository, and entered.

Source: governed protocol specification, "Commands" and "Files".
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, NoReturn

from acp_core.files.transaction import APPEND, REPLACE, Write
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.governed import prompts, schema
from acp_core.protocols.governed.read import gates, own_writes, repository, turn_files
from acp_core.protocols.governed.rules import guard, results
from acp_core.protocols.governed.rules.results import (
    Correction,
    Verdict,
    apply_corrections,
    artifact_corrections,
)
from acp_core.protocols.governed.schema import Object, exit_gate, items, obj, objects, strings, text
from acp_core.protocols.governed.state import (
    Move,
    Observed,
    acceptance_failed,
    accepted,
    active_turn,
    ended,
    verified,
)
from acp_core.protocols.governed.write import hooks
from acp_core.protocols.governed.write.opened import (
    Opened,
    commit,
    content,
    json_document,
    locked,
    permitted,
    read_unlocked,
    refuse_agents,
    removing,
    write,
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


class Accepted(NamedTuple):
    """A turn that is in the history now; ``status`` and ``phase`` are the run's after it.

    ``news`` is what the coordinator says, where the run belongs to an initiative.
    """

    turn_id: str
    role: str
    status: str
    phase: str
    waiting_gate: str
    warnings: tuple[str, ...]
    news: tuple[str, ...] = ()


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
        if turn_files.is_program_running(opened.root, turn["turn_id"]):
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
    if altered and turn.get(turn_files.MARK):
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
    found = turn_files.bundle_differences(opened.root, id, turn.get(turn_files.MARK))
    home = turn_files.bundle_folder(id)
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


def reserved_changed(opened: Opened) -> tuple[str, ...]:
    """The run's own files that somebody but acp wrote, in a run that acp made."""
    return guard.changed(opened.run) if guard.is_tampered(opened.run) else ()


def accept(
    root: str | Path, turn_id: str | None, now: datetime, excluded: Iterable[str] = ()
) -> Accepted:
    """Enter a staged result into the history.

    Raises:
        NotAccepted: it did not pass; the turn says so from now on.
        Refused: nothing can be accepted now, or an agent asks. Nothing was written.
    """
    refuse_agents()
    asked = _ask(root, turn_id, excluded)
    with locked(root, schema.ACCEPT, excluded=excluded) as opened:
        judged = judge(opened, turn_id, excluded)
        id = judged.turn["turn_id"]
        if not judged.verdict.ok:
            move = acceptance_failed(
                opened.state, id, judged.verdict.stage, judged.verdict.errors, now
            )
            commit(opened, f"accept-turn (failed, {id})", ended(move, id, judged.observed))
            raise NotAccepted(judged.verdict)
        taken = [name for name in reserved_changed(opened) if name in judged.observed.excluded]
        if taken:  # a human said so
            take_as_they_are(opened, taken)
        move, more = prepare(opened, judged, now)
        commit(opened, f"accept-turn ({id})", move, more)
        done = outcome_of(judged, move)
    from acp_core.protocols.governed.write.initiative_decide import (
        after_turn,  # late: most have none
    )

    said = _hooks(root, done, move)
    return done._replace(warnings=(*asked, *done.warnings, *said), news=tuple(after_turn(root)))


def _ask(root: str | Path, turn_id: str | None, excluded: Iterable[str]) -> list[str]:
    """Ask the hooks that may stop an acceptance; of a result that does not pass they are not asked.

    Raises:
        Refused: as `asked_hooks.ask`.
    """
    opened = read_unlocked(root)
    if not schema.asked_before(opened.config, schema.ACCEPT):
        return []
    judged = judge(permitted(opened, schema.ACCEPT, excluded=excluded), turn_id, excluded)
    if not judged.verdict.ok:
        return []
    about: Object = {"role": judged.turn["assigned_role"], "turn_id": judged.turn["turn_id"]}
    return hooks.ask_hooks(root, schema.ACCEPT, about | {"turn_result": judged.result})


def _hooks(root: str | Path, done: Accepted, move: Move) -> list[str]:
    """Tell the hooks that a turn was accepted, and what came of it."""
    turn: Object = {"turn_id": done.turn_id, "role": done.role}
    said = hooks.fire(root, "after_acceptance", turn | {"turn": move.history[0]})
    if done.waiting_gate:
        said += hooks.fire(root, "before_gate", turn | {"gate": done.waiting_gate})
    elif done.status == "blocked" and not move.state.get("barrier_request"):  # to wait is normal
        reason = move.state.get("blocked_reason")
        said += hooks.fire(root, "on_escalation", turn | {"blocked_reason": reason})
    return said


def take_as_they_are(opened: Opened, names: Iterable[str]) -> None:
    """A human takes the run's own files as they are, whoever wrote them."""
    sealed = own_writes.sound(opened.root, names)
    if sealed is not None:
        write(opened, "accept the run's files as they are", [sealed])


def prepare(opened: Opened, judged: Judged, now: datetime) -> tuple[Move, list[Write]]:
    """What accepting a sound result writes. Writes nothing.

    Raises:
        Refused: the run cannot take a result now, or the gate's files cannot be read.
    """
    assert isinstance(judged.result, dict)  # else the verdict is not ok
    id = judged.turn["turn_id"]
    gate = exit_gate(opened.config, text(opened.state, "phase", 200))
    status = text(verified(judged.result), "status", 40)
    demanded = gates.predicates(opened.root, opened.config, gate, status)
    if doubt := gates.unknown(demanded):
        raise Refused(doubt)
    move = accepted(
        opened.config, opened.state, judged.result, judged.observed, demanded,
        opened.objections, now,
    )  # fmt: skip
    more = [
        Write(opened.root / schema.TALK, APPEND, _talk(move.history[0])),
        *removing(opened.root, f"{prompts.STAGING}/{id}"),
        *removing(opened.root, turn_files.bundle_folder(id)),
    ]
    return move, more


def outcome_of(judged: Judged, move: Move) -> Accepted:
    """The outcome in its words."""
    waits = obj(move.state, "pending_phase_transition") or obj(move.state, "pending_run_completion")
    return Accepted(
        judged.turn["turn_id"],
        judged.turn["assigned_role"],
        str(move.state["status"]),
        str(move.state["phase"]),
        text(waits, "gate", 200),
        judged.verdict.warnings,
    )


def preview(
    root: str | Path, turn_id: str | None, now: datetime, excluded: Iterable[str] = ()
) -> tuple[Judged, Move | None]:
    """What `accept` would do, looked at without the lock; no move where it would not pass.

    Raises:
        Refused: nothing can be accepted now.
    """
    opened = read_unlocked(root)
    judged = judge(opened, turn_id, excluded)
    return judged, prepare(opened, judged, now)[0] if judged.verdict.ok else None


def correct(root: str | Path, turn_id: str | None) -> tuple[str, ...]:
    """Apply the corrections that are proposed for a staged result; returns which.

    Raises:
        Refused: none is proposed, or the result is no JSON object. Nothing was written.
    """
    with locked(root, schema.CORRECT) as opened:
        judged = judge(opened, turn_id)
        new, done = corrected(judged)
        id = judged.turn["turn_id"]
        path = opened.root / prompts.staged(id)
        write(opened, f"correct ({id})", [Write(path, REPLACE, json_document(new))])
        return done


def corrected(judged: Judged) -> tuple[Object, tuple[str, ...]]:
    """The result with the proposed corrections, and what they set.

    Raises:
        Refused: there are none.
    """
    if not judged.verdict.corrections or not isinstance(judged.result, dict):
        raise Refused("no correction is proposed for the staged result")
    new = apply_corrections(judged.result, judged.verdict.corrections)
    return new, tuple(each.field for each in judged.verdict.corrections)


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
