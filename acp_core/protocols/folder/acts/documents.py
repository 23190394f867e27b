"""Documents changed on a person's word: parts that a turn writes, answers to reviews, gates and questions.

What is no turn appends no event: it is previewed, done under the lock, and a copy of what stood there
is kept. An answer stands below its question in review.md, where the format leaves room. Source: folder
protocol specification, "Review Format", "Readiness Gate" and "Final Conclusion".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime

from acp_core.files import markdown
from acp_core.files.markdown import normalise
from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.model.action_spec import ActionSpec, Field, Kind
from acp_core.model.errors import Refused
from acp_core.model.text import clean_name
from acp_core.protocols.folder.acts.opened import OpenFolder, open_folder, title
from acp_core.protocols.folder.acts.previewing import file_change
from acp_core.protocols.folder.acts.table import ANSWER_QUESTION, CHECK_GATES, SETTLE_QUESTIONS
from acp_core.protocols.folder.matters.gates import gate_fields, nearest_line
from acp_core.protocols.folder.schema import documents, records
from acp_core.protocols.folder.schema.documents import ANSWER, OVER, Asked, Readiness, Review
from acp_core.protocols.folder.schema.records import path_of
from acp_core.protocols.folder.view.build import named
from acp_core.protocols.folder.write import edits
from acp_core.protocols.folder.write.edits import Edit, content
from acp_core.protocols.folder.write.gates import READINESS, document_text
from acp_core.protocols.folder.write.opened import Opened, lock
from acp_core.protocols.kit.binding import Context, Narrowed, bound
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe

_BOX = re.compile(r"^([^\S\n]*)- \[ \] ([^\n]*)$", re.MULTILINE)
_ITEM = re.compile(r"(?:- )?\[(?P<word>[a-z_]+)\]\s*(?P<text>.*)")
_NUMBER = re.compile(r"D([0-9]{1,9})\.")
_PLACEHOLDERS = ("tbd", "none yet.", "none yet", "")


def plan_edit(
    folder: str, name: str, change: Callable[[str], str], path: str | None = None
) -> Edit:
    """A document's change by a function of its text; its line ends are kept.

    Args:
        folder: the collaboration.
        name: the document as people know it.
        change: makes the new text of the old one ("\\n" as its only line end).
        path: where it lies, if not in the folder itself.

    Raises:
        Refused: it cannot be read, or is not UTF-8.
    """
    path = path or path_of(folder, name)
    before = content(name, path)
    try:
        text = before.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"{name} is not UTF-8 at byte {error.start + 1}") from None
    old = normalise(text)
    new = change(old)
    if new == old:
        return Edit(name, path, before, before)
    if "\r\n" in text:
        new = new.replace("\n", "\r\n")
    try:
        after = new.encode()
    except UnicodeEncodeError:
        raise Refused("the text is not UTF-8") from None
    if len(after) > records.MAX_DOCUMENT:
        raise Refused(f"{name} would be larger than {records.MAX_DOCUMENT} bytes")
    return Edit(name, path, before, after)


def section(text: str, title: str) -> str:
    """What stands under a heading of level 2; "" where nothing or only a placeholder does."""
    found = next((part for part in markdown.sections(text, 2) if part.title == title), None)
    body = found.body.strip() if found else ""
    return "" if body.lower() in _PLACEHOLDERS else body


def with_section(text: str, title: str, body: str) -> str:
    """``text`` with ``body`` under the heading ``title``, which is added where it is missing."""
    lines = text.split("\n")
    found = next((part for part in markdown.sections(text, 2) if part.title == title), None)
    if found is None:
        return f"{text.rstrip()}\n\n## {title}\n\n{body.strip()}\n".lstrip("\n")
    end = found.line + found.body.count("\n")
    rest = lines[end - 1 :] if found.body.endswith("\n") else lines[end:]
    new = [*lines[: found.line], "", body.strip(), ""]
    return "\n".join([*new, *rest] if any(rest) else new)


def list_items(text: str) -> list[str]:
    """The classified questions of readiness.md, one line each: ``[word] text``."""
    return [f"[{item.word}] {item.text}".rstrip() for item in documents.scan_readiness(text).items]


def with_items(text: str, wanted: Sequence[str]) -> str:
    """readiness.md with these classified questions in place of those that stand there.

    Raises:
        Refused: one of them has no class that exists, no text, or no reason where one is due.
    """
    new = [_item(line) for line in wanted if line.strip()]
    old = documents.scan_readiness(text).items
    lines: list[str | None] = [*text.split("\n")]
    for item, line in zip(old, new, strict=False):
        if f"- [{item.word}] {item.text}" != line:
            _put_item(lines, item, line)
    for item in old[len(new) :]:
        _put_item(lines, item, None)
    more = new[len(old) :]
    if not more:
        return "\n".join(line for line in lines if line is not None)
    if old:
        lines[old[-1].text_line - 1 : old[-1].text_line] = [lines[old[-1].text_line - 1], *more]
        return "\n".join(line for line in lines if line is not None)
    title = "Open Question Classification"
    body = "\n".join([section(text, title), "", *more]).strip()
    return with_section(text, title, body)


def _put_item(lines: list[str | None], item: documents.Item, line: str | None) -> None:
    for number in range(item.line, item.text_line + 1):
        lines[number - 1] = None
    lines[item.line - 1] = line


def _item(line: str) -> str:
    match = _ITEM.fullmatch(line.strip())
    if match is None or match["word"] not in documents.CLASSES:
        classes = ", ".join(f"[{word}]" for word in documents.CLASSES)
        raise Refused(f"{line.strip()!r} must begin with its class: {classes}")
    text = match["text"].strip()
    if not text:
        raise Refused(f"{line.strip()!r} names no question")
    if match["word"] == "deferred_nonblocking" and "reason:" not in text.lower():
        raise Refused(f"{line.strip()!r} is deferred: add `Reason: ...` to the line")
    return f"- [{match['word']}] {text}"


def with_boxes(text: str, labels: Sequence[str], title: str) -> str:
    """readiness.md with these boxes checked; those that are missing are added under ``title``."""
    scan = documents.scan_readiness(text)
    missing = []
    for label in labels:
        if label in scan.checked or (label == documents.READY and scan.ready):
            continue
        changed = _checked(text, label)
        if changed is None:
            missing.append(f"- [x] {label}")
        else:
            text = changed
    if not missing:
        return text
    return with_section(text, title, "\n".join([section(text, title), *missing]).strip())


def _checked(text: str, label: str) -> str | None:
    """The text with the first empty box of this label checked; None where there is none."""
    for match in _BOX.finditer(text):
        exact = match.group(2) == label
        if exact or (label == documents.READY and match.group(2).startswith(label)):
            return f"{text[: match.start()]}- [x] {match.group(2)}{text[match.end() :]}"
    return None


def with_decisions(text: str, decisions: Sequence[str], reference: str) -> str:
    """decisions.md with more decisions; with ``reference`` (dialect v2) numbered and reflected."""
    given = [" ".join(decision.split()) for decision in decisions if decision.strip()]
    if not given:
        return text
    if reference:
        scan = documents.scan_decisions(text)
        number = max((decision.number for decision in scan.decisions), default=0)
        blocks = [
            f"### D{number + position}. {_title(decision)}\n\n- Decision: {decision}\n"
            f"- Reflected in: `{reference}`\n"
            for position, decision in enumerate(given, 1)
        ]
        return text.rstrip() + "\n\n" + "\n".join(blocks)
    bullets = [f"- {decision}" for decision in given]
    title = "Accepted Decisions"
    old = section(text, title)
    keep = "" if old.lower().startswith("none yet") else old
    if not any(part.title == title for part in markdown.sections(text, 2)):
        return text.rstrip() + "\n\n" + "\n".join(bullets) + "\n"
    return with_section(text, title, "\n".join(filter(None, [keep, *bullets])))


def _title(decision: str) -> str:
    first = re.split(r"(?<=[.;:])\s", decision, maxsplit=1)[0].rstrip(".;:")
    return first if len(first) <= 80 else first[:79].rstrip() + "…"


def conclusion(outcome: str, reason: str, parts: Mapping[str, str]) -> str:
    """conclusion.md: the outcome, then a section for each of ``parts`` in their order."""
    line = " ".join(reason.split()) or "See the rationale."
    sections = "".join(
        f"\n## {title}\n\n{body.strip() or 'None.'}\n" for title, body in parts.items()
    )
    return f"# Conclusion\n\n## Decision Outcome\n\n- [{outcome}] {line}\n{sections}"


def review(
    submitted: int,
    position: str,
    concerns: str,
    changes: str,
    questions: str,
    *,
    reference: str = "",
) -> str:
    """The text of a review; ``submitted`` is the seq of the proposal that was read."""
    scope = ""
    context = f"- Read `proposal.md` after event seq `{submitted}`."
    if reference:
        context += f"\n- Read the primary deliverable `{reference}`."
        scope = (
            f"Reviewed primary deliverable: `{reference}`\n\n"
            "Review Scope:\n- Primary deliverable completeness\n\n"
        )
    parts = (
        ("Position", position),
        ("Concerns", concerns),
        ("Required Changes", changes),
        ("Questions", questions),
    )
    body = "\n\n".join(f"{title}:\n{_bullets(text)}" for title, text in parts)
    return f"{scope}Context:\n{context}\n\n{body}\n"


def _bullets(text: str) -> str:
    """Each line as a bullet; what already is a list, or indented below one, stays as it is."""
    lines = [line.rstrip() for line in normalise(text).strip().split("\n")]
    if lines == [""]:
        return "- None."
    return "\n".join(
        line if not line or line.startswith(("- ", "* ", " ", "\t", "```")) else f"- {line}"
        for line in lines
    )


Change = Callable[[str, Values], str]
"""The new text of the old one and of what the person gave; raises Refused."""


def changing(
    spec: ActionSpec,
    here: OpenFolder,
    document: str,
    change: Change,
    *,
    fields: tuple[Field, ...] | None = None,
    narrowed: Narrowed | None = None,
) -> Action:
    """The action that changes one of the folder's documents.

    Args:
        spec: its description.
        here: the collaboration.
        document: the document's name.
        change: makes the new text.
        fields, narrowed: what is asked otherwise than in the description now.
    """
    folder = here.opened.folder

    def edit(values: Values) -> Edit:
        made = plan_edit(folder, document, lambda text: change(text, values))
        if made.before == made.after:
            raise Refused("nothing would change")
        return made

    def preview(values: Values) -> Preview:
        made = edit(values)
        shown = file_change(made.path, made.name, made.before, made.after)
        sentence = f"Change {document} and keep a copy of the old version."
        return Preview(sentence, changes=(shown,), warnings=_at_work(here.opened, document))

    def perform(values: Values) -> Outcome:
        with lock(folder):
            made = edit(values)
            edits.keep(folder, document, made.before, datetime.now(UTC))
            made.apply()
        return Outcome(OutcomeState.DONE, f"Changed {document}.")

    return bound(spec, here, preview, perform, fields=fields, narrowed=narrowed)


def _at_work(opened: Opened, document: str) -> tuple[str, ...]:
    """Who may be writing the document just now, because it is their turn."""
    writes = {"reviewing": "review.md", "decision_review": "readiness.md"}
    if writes.get(opened.machine.phase) != document or not opened.machine.waiting:
        return ()
    names = ", ".join(clean_name(name, 60) for name in opened.machine.waiting)
    return (
        f"{names} may be writing {document} now: check that your change is still there afterwards",
    )


REVIEW = "review.md"


def answering(context: Context, now: datetime) -> Action:
    """Answer a review's question, whoever's turn it is.

    Raises:
        Refused: none is open, or the collaboration cannot be read.
    """
    here = open_folder(context, now)
    review = here.collaboration.facts.review
    over = here.opened.machine.phase in OVER
    waiting = {} if over or review is None else open_questions(here.opened, review)
    if not waiting:
        raise Refused("there is no open review question")

    def change(text: str, values: Values) -> str:
        asked = open_questions(here.opened, documents.scan_review(text)).get(values.question)
        if asked is None:
            raise Refused("the question was answered or removed from review.md")
        return with_answer(text, asked, values.answer)

    narrowed = {"question": {"choices": tuple(waiting), "default": next(iter(waiting))}}
    return changing(ANSWER_QUESTION, here, REVIEW, change, narrowed=narrowed)


def open_questions(opened: Opened, review: Review) -> dict[str, Asked]:
    """The questions of this round that nobody answered, by the name that a choice has."""
    revised = opened.machine.last.get("proposal_revised") or 0
    known = opened.machine.reviews
    return {
        named(each): each
        for each in review.questions
        if not each.answered and each.seq > revised and each.seq in known
    }


def with_answer(text: str, asked: Asked, answer: str) -> str:
    """review.md with an answer below a question; its lines are indented, as the question's own.

    Raises:
        Refused: there is no answer.
    """
    words = [line.strip() for line in answer.splitlines() if line.strip()]
    if not words:
        raise Refused("write an answer")
    added = [f"  {ANSWER} {words[0]}", *(f"  {line}" for line in words[1:])]
    lines = text.split("\n")
    return "\n".join((*lines[: asked.end], *added, *lines[asked.end :]))


def checking(context: Context, now: datetime) -> Action:
    """Check a gate in its exact words, once a person says that it is met.

    Raises:
        Refused: it is too early or too late for that, or the collaboration cannot be read.
    """
    here = open_folder(context, now)
    unmet = open_gates(here.opened)
    if here.opened.machine.phase != "readiness_check" or not unmet:
        raise Refused("there is no gate to check now")
    every = gate_fields(here.opened.protocol).values()
    scan = documents.scan_readiness(_text(here.opened))

    def change(text: str, values: Values) -> str:
        met = [gate for name, gate in unmet.items() if getattr(values, name)]
        if not met:
            raise Refused("choose the gates that are met")
        for gate in met:
            text = with_gate(text, gate, every)
        return text

    fields = tuple(_switch(name, gate, scan, every) for name, gate in unmet.items())
    return changing(CHECK_GATES, here, READINESS, change, fields=fields)


def _switch(name: str, gate: str, scan: Readiness, every: Collection[str]) -> Field:
    about = f"Writes the line `- [x] {safe(gate)}` to readiness.md."
    near = nearest_line(gate, scan, every)
    if near is not None and near.text != gate:
        about += f" Closest now, line {near.line}: {safe(near.text)}"
    return Field(name, title(f"Met: {gate}"), about, Kind.FLAG)


def open_gates(opened: Opened) -> dict[str, str]:
    """Field name -> gate, of those that are not checked."""
    scan = documents.scan_readiness(_text(opened))
    return {
        name: gate
        for name, gate in gate_fields(opened.protocol).items()
        if gate not in scan.checked and not (gate == documents.READY and scan.ready)
    }


def with_gate(text: str, gate: str, every: Collection[str]) -> str:
    """readiness.md with a gate checked: its box, the nearest line reworded, or a new line."""
    scan = documents.scan_readiness(text)
    near = nearest_line(gate, scan, every)
    exact = any(box.text == gate and not box.checked for box in scan.boxes)
    if near is None or exact:
        ready = gate == documents.READY
        title = "Final Design Document Checklist" if ready else "Completion Gates"
        return with_boxes(text, [gate], title)
    lines = text.split("\n")
    lines[near.line - 1] = f"- [x] {gate}"
    return "\n".join(lines)


def is_due(opened: Opened) -> bool:
    """Whether the run cannot go on before readiness.md is settled."""
    accepting = opened.machine.phase == "decision_review" and opened.machine.classified
    return accepting or opened.machine.phase == "readiness_check"


def settling(context: Context, now: datetime) -> Action:
    """Give open questions their class and their reason, without an event.

    Raises:
        Refused: there is nothing to settle, or the collaboration cannot be read.
    """
    here = open_folder(context, now)
    if not is_unsettled(here.opened):
        raise Refused("readiness.md has no open question")

    def change(text: str, values: Values) -> str:
        settled = with_items(text, values.questions)
        if settled == text:
            raise Refused("classify each open question (--questions)")
        return settled

    items = [safe(item) for item in list_items(_text(here.opened))]
    narrowed = {"questions": {"default": items}}
    return changing(SETTLE_QUESTIONS, here, READINESS, change, narrowed=narrowed)


def is_unsettled(opened: Opened) -> bool:
    """Whether readiness.md holds questions that are open, block, or were put off without a reason."""
    if opened.machine.phase in OVER:
        return False
    scan = documents.scan_readiness(_text(opened))
    due = opened.machine.phase in ("decision_review", "readiness_check")
    asked = any(scan.awaits(item, due=due) for item in scan.unresolved)
    return bool(asked or scan.unreasoned or scan.blocking)


def _text(opened: Opened) -> str:
    try:
        return document_text(opened.folder, READINESS)
    except Refused:
        return ""
