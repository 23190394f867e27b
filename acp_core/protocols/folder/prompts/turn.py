"""What a program is told so that it takes a participant's turn: pure functions, no files.

Source: folder protocol specification, "Phases", "Review Format", "Readiness Gate", "Final
Conclusion" and "Polling And Watchers".
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from typing import NamedTuple

from acp_core.model.turn import Brief, Mode
from acp_core.protocols.folder.read.current_state import Step
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.documents import CLASSES, OUTCOMES, READY, conclusion_sections
from acp_core.protocols.folder.schema.records import V1, V2

SCRIPTS = {script.command: script.name for script in records.SCRIPTS}
_SENTENCE = "<one short sentence>"


class Situation(NamedTuple):
    """A collaboration, as far as a prompt tells of it. ``deliverable`` is a path or ""."""

    folder: str
    participant: str
    participants: tuple[str, ...]
    owner: str
    objective: str
    gates: tuple[str, ...]
    phase: str
    round: int
    last_seq: int
    recent: tuple[str, ...]
    deliverable: str
    v2: bool


def prompt(situation: Situation, steps: tuple[Step, ...], brief: Brief) -> str:
    """The whole prompt. A program that cannot append is told of the next event only."""
    if brief.mode is Mode.CHANGE:
        steps = tuple(step for step in steps if not step.optional)[:1]
    parts = [_who(situation)]
    if brief.message:
        parts.append(_section("A message from the person in charge", [brief.message]))
    if brief.correction:
        parts.append(_section("Your last attempt did not count", [brief.correction]))
    parts.append(_where(situation))
    if brief.mode is Mode.ALONE:
        parts.append(_alone(situation, brief))
    else:
        parts.append(_turn(situation, steps, brief))
    parts.append(_rules(situation, steps, brief))
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(title: str, lines: Iterable[str]) -> str:
    return "\n".join([f"## {title}", "", *lines])


def _bullets(items: Iterable[str]) -> list[str]:
    return [f"- {item}" for item in items]


def _who(situation: Situation) -> str:
    others = ", ".join(
        f"`{name}`" for name in situation.participants if name != situation.participant
    )
    role = "You own the proposal." if situation.participant == situation.owner else ""
    role = role or f"`{situation.owner}` owns the proposal."
    lines = [
        f"You are `{situation.participant}`, a participant of a collaboration with {others}. {role}",
        "You cannot message them; you share only this folder.",
        "",
        f"    {situation.folder}",
    ]
    objective = _section("The objective", [situation.objective])
    gates = (
        _section("What must be true at the end", _bullets(situation.gates))
        if situation.gates
        else ""
    )
    return "\n\n".join(filter(None, ["\n".join(lines), objective, gates]))


def _where(situation: Situation) -> str:
    lines = [
        f"Phase `{situation.phase}`, round {max(1, situation.round)}, after event {situation.last_seq}."
    ]
    if situation.recent:
        lines += ["The last events:", *_bullets(situation.recent)]
    return _section("Current state", lines)


def _turn(situation: Situation, steps: tuple[Step, ...], brief: Brief) -> str:
    lines = ["It is your turn. Read first:", *_bullets(_documents(situation))]
    for number, step in enumerate(steps, 1):
        lead = f"{number}. " if len(steps) > 1 else ""
        lines += ["", f"{lead}{_capital(step.what)}."]
        lines += [f"   Write it into {path}" for path in step.needs]
        lines += _details(situation, step, brief)
        if brief.mode is Mode.TURN:
            lines += [
                "   Then run exactly this, with your own sentence:",
                "",
                f"    {_append(situation, step, brief)}",
            ]
    if situation.phase == "revising" and brief.mode is Mode.TURN:
        lines += [
            "",
            "If the reviewers should review it again, append `proposal_submitted` instead of",
            "`proposal_revised`.",
        ]
    return _section("Your turn", lines)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _details(situation: Situation, step: Step, brief: Brief) -> list[str]:
    """What the documents of this step must hold."""
    if step.event == "review_submitted":
        lines = [f"   Write the review into {step.draft_path(brief)}, with the parts", ""]
        if situation.v2:
            lines += [
                f"    Reviewed primary deliverable: `{situation.deliverable}`",
                "    Review Scope:",
                "    - Primary deliverable completeness",
            ]
        names = ("Context", "Position", "Concerns", "Required Changes", "Questions")
        lines += [f"    {name}:\n    - ..." for name in names]
        return [*lines, "", "   and no heading: acp adds it for you."]
    if step.event == "decision_accepted" and brief.mode is Mode.CHANGE:
        return [f"   Say in one sentence why you accept them, in {step.draft_path(brief)}"]
    if step.event == "question_classified":
        words = ", ".join(f"`- [{word}] ...`" for word in CLASSES[:3])
        return [
            f"   Each question is one line: {words}. A deferred one has `Reason: ...` on its line.",
            "   No question may stay blocking or unresolved: otherwise the decisions cannot be accepted.",
        ]
    if step.event == "readiness_passed":
        return [
            f"   That line is exactly `- [x] {READY}`, and nothing blocking or unresolved is left."
        ]
    if step.event == "completed":
        sections = ", ".join(conclusion_sections(V2 if situation.v2 else V1))
        outcomes = ", ".join(f"`- [{word}] ...`" for word in OUTCOMES[:3])
        return [
            f"   It must have these headings of the second level: {sections}.",
            f"   Below Decision Outcome, write exactly one of {outcomes}.",
            "   The file must not contain the words TBD, TODO or unresolved.",
            "   In readiness.md, exactly these lines, once they are true:",
            *(f"    - [x] {gate}" for gate in situation.gates),
        ]
    return []


def _documents(situation: Situation) -> list[str]:
    names = ["proposal.md", "review.md", "decisions.md", "readiness.md"]
    if situation.phase == "readiness_check":
        names.append("conclusion.md")
    paths = [os.path.join(situation.folder, name) for name in names]
    return [*paths, situation.deliverable] if situation.deliverable else paths


def _alone(situation: Situation, brief: Brief) -> str:
    def run(name: str, *options: str) -> str:
        return _command(brief, name, situation, *options)

    return _section(
        "What to do, again and again until the collaboration is over",
        [
            "1. Wait for your turn. This may take long; run it again when it says timeout:",
            "",
            f"    {run('wait')}",
            "",
            "2. When it says that the phase is completed or blocked, stop.",
            "3. See what to do, read the documents that it names, and do it:",
            "",
            f"    {run('next')}",
            "",
            "4. Append your event. EVENT, DOC and SEQ are what `next` and the events say; a review",
            "   goes with `--review-file FILE` instead of being written into review.md by hand:",
            "",
            f"    {run('append', '--event EVENT', f'--summary {shlex.quote(_SENTENCE)}', '--doc DOC', '--reply-to SEQ')}",
            "",
            "5. If the command is refused, fix what it names and run it again. Then go back to 1.",
            "",
            f"Put your drafts in {brief.drafts}.",
        ],
    )


def _rules(situation: Situation, steps: tuple[Step, ...], brief: Brief) -> str:
    written = {os.path.basename(path) for step in steps for path in step.needs}
    names = ("proposal.md", "review.md", "decisions.md", "readiness.md", "conclusion.md")
    untouched = ["events.jsonl", "protocol.json"]
    if brief.mode is not Mode.ALONE:
        untouched += [name for name in names if name not in written]
    lines = [f"Change none of these by hand: {', '.join(untouched)}."]
    if brief.mode is Mode.CHANGE:
        lines.append("Run no commands: acp appends your event after the document has changed.")
        return _section("Rules", lines)
    blocked = _command(
        brief,
        "append",
        situation,
        "--event blocked",
        f"--summary {shlex.quote('<what is missing, and who can provide it>')}",
        f"--reply-to {max(1, situation.last_seq)}",
    )
    lines += [
        f"If your sentence holds quotes, `$` or backticks, write it into a file in {brief.drafts}",
        "and pass `--summary-file FILE` instead of `--summary`.",
        "Only an event records your work: if you end without one, your turn does not count.",
        "A refusal names what is missing. Fix this, and run the command again.",
        "If a person must decide before the work can continue, append `blocked`, which ends the collaboration:",
        "",
        f"    {blocked}",
    ]
    if brief.tools:
        lines += ["", *_tools(brief)]
    if brief.mode is Mode.TURN:
        lines += ["", "When your last event is appended, you are done: do not wait for the others."]
    return _section("Rules", lines)


def _tools(brief: Brief) -> list[str]:
    """Which tools the program was given; not each program hands them to its model."""
    names = ", ".join(f"`{name}`" for name in brief.tools)
    lines = [
        f"If you have tools of the MCP server `acp` ({names}):",
        "`append` does the same as the command; use either.",
    ]
    if "ask_human" in brief.tools:
        lines.append("`ask_human` gets an answer from a person and ends nothing.")
    return lines


def _append(situation: Situation, step: Step, brief: Brief) -> str:
    options = [
        f"--event {step.event}",
        f"--summary {shlex.quote(_SENTENCE)}",
        f"--doc {shlex.quote(step.doc)}",
        f"--reply-to {step.reply_to}",
    ]
    if step.role:
        options.append(f"--role {step.role}")
    if step.event == "review_submitted":
        options.append(f"--review-file {shlex.quote(step.draft_path(brief))}")
    return _command(brief, "append", situation, *options)


def _command(brief: Brief, name: str, situation: Situation, *options: str) -> str:
    """One of the protocol's commands, as this program runs it."""
    program = brief.commands.replace("{command}", name).replace("{script}", SCRIPTS[name])
    who = (
        f"--folder {shlex.quote(situation.folder)}",
        f"--participant {shlex.quote(situation.participant)}",
    )
    return " ".join([program, *who, *options])
