"""The document parts that a person's turn writes: changes of one document's text.

Source: folder protocol specification, "Review Format", "Readiness Gate" and "Final
Conclusion". Pure functions of texts, but for `edit`, which reads the document that changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from acp_core.files import markdown
from acp_core.files.markdown import normalise
from acp_core.model.errors import Refused
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.location import path_of
from acp_core.protocols.folder.schema import documents
from acp_core.protocols.folder.write.edits import Edit, content

_BOX = re.compile(r"^([^\S\n]*)- \[ \] ([^\n]*)$", re.MULTILINE)
_ITEM = re.compile(r"(?:- )?\[(?P<word>[a-z_]+)\]\s*(?P<text>.*)")
_NUMBER = re.compile(r"D([0-9]{1,9})\.")
_PLACEHOLDERS = ("tbd", "none yet.", "none yet", "")


def edit(folder: str, name: str, change: Callable[[str], str], path: str | None = None) -> Edit:
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
    if len(after) > schema.MAX_DOCUMENT:
        raise Refused(f"{name} would be larger than {schema.MAX_DOCUMENT} bytes")
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


def items(text: str) -> list[str]:
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
