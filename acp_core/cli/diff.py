"""``acp diff``: what became of a document between two moments."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from acp_core.cli import fields
from acp_core.cli.output import Terminal, dump, say, terminal
from acp_core.cli.past import past_of, place_of
from acp_core.cli.start import load_settings
from acp_core.history import diff as differ
from acp_core.history.diff import NEW, OLD, Line, Touched, touched
from acp_core.history.moments import DOCUMENT, end_of
from acp_core.history.past import Past
from acp_core.history.versions import Known, bytes_of, describe_version, text_of
from acp_core.model import format
from acp_core.model.errors import CommandError
from acp_core.model.text import clean_line
from acp_core.protocols.kit.values import Values

SCHEMA = "acp.diff/1"
SAME, DIFFERENT = 0, 1
"""Exit codes, as of diff itself."""
_TAB = "→   "


def diff(given: Values) -> int:
    """Print the difference; `DIFFERENT` where there is one.

    Raises:
        CommandError: there is no such document, or moment.
    """
    utc = given.utc or load_settings().utc
    with past_of(given.folder) as past:
        document = _meant(past, given.document)
        known = past.versions(document)
        if not known:
            names = ", ".join(each.id for each in past.present.documents)
            raise CommandError(f"unknown document {document!r}; documents: {names}")
        if given.versions:
            _list(known, given.json, utc)
            return SAME
        new = _chosen(past, known, given.until) if given.until else known[-1]
        old = _chosen(past, known, given.since) if given.since else _before(known, new)
        found = differ.lines(text_of(old), text_of(new))
        before, after = bytes_of(old), bytes_of(new)
        same, notes = before == after, differ.unseen(before, after, found)
        answered = touched(past.requests(old, new), found)
    if given.json:
        say(dump(_fields(document, old, new, found, answered) | {"unseen": notes, "same": same}))
    else:
        for line in _render(document, old, new, found, answered, terminal(), utc):
            say(line)
        for note in notes:
            say(terminal().paint(note, "dim"))
    return SAME if same else DIFFERENT


def _meant(past: Past, given: str) -> str:
    """The document of this name, else the only one whose name ends so in its folders."""
    ids = [each.id for each in past.present.documents]
    near = [each for each in ids if each.endswith(f"/{given}")]
    return near[0] if given not in ids and len(near) == 1 else given


def _chosen(past: Past, known: list[Known], given: str) -> Known | None:
    """The version at a moment; None where there was no such file."""
    place, when = place_of(past, given)
    moment = past.moments[place]
    if when is None and moment.kind == DOCUMENT and moment.name == known[0].file:
        before = past.moments[: place + 1]
        return known[sum((each.kind, each.name) == (DOCUMENT, moment.name) for each in before) - 1]
    until = datetime.fromtimestamp(moment.at, UTC) if when is None else end_of(when)
    earlier = [each for each in known if datetime.fromtimestamp(each.since, UTC) <= until]
    if not earlier and known[0].source != "recorded":
        raise CommandError(f"no version is recorded for {given}")
    return earlier[-1] if earlier else None


def _before(known: list[Known], new: Known | None) -> Known | None:
    place = known.index(new) if new in known else len(known)
    return known[place - 1] if place else None


def _render(
    document: str,
    old: Known | None,
    new: Known | None,
    found: list[Line],
    answered: list[Touched],
    shown: Terminal,
    utc: bool,
) -> Iterator[str]:
    name = clean_line(document, 200)
    yield shown.paint(f"--- {name}  {describe_version(old, utc, precise=True)}", "head")
    yield shown.paint(f"+++ {name}  {describe_version(new, utc, precise=True)}", "head")
    titles = differ.changed_sections(found)
    if titles:
        yield shown.paint(f"changed below: {', '.join(clean_line(t, 80) for t in titles)}", "dim")
    for each in answered:
        who = f"{each.request.participant}, event {each.request.event}"
        text = f"addressed (inferred): {who}: {each.request.text} ({each.reason})"
        yield shown.paint(clean_line(text, 400), "dim")
    for hunk in differ.hunks(found):
        first = hunk[0]
        yield shown.paint(f"@@ line {first.new or first.old} @@", "live")
        for line in hunk:
            yield _line(line, shown)


def _line(line: Line, shown: Terminal) -> str:
    style, marks = {OLD: ("error", ("[-", "-]")), NEW: ("good", ("{+", "+}"))}.get(
        line.sign, ("", ("", ""))
    )
    whole = all(changed for _, changed in line.pieces)
    parts = []
    for text, changed in line.pieces:
        text = clean_line(text.replace("\t", _TAB if changed else " " * 4), 4 * len(text) + 1)
        marked = f"{marks[0]}{text}{marks[1]}" if changed and not whole else text
        parts.append(shown.paint(marked, style) if changed else text)
    return f"{shown.paint(line.sign, style)}{''.join(parts)}"


def _list(known: list[Known], as_json: bool, utc: bool) -> None:
    if as_json:
        say(dump({"schema": SCHEMA, "versions": [_version(each) for each in known]}))
        return
    for each in known:
        size = format.size(each.size) if each.size is not None else "removed"
        say(f"{describe_version(each, utc, precise=True)}  {size}")


def _version(known: Known | None) -> fields.Fields | None:
    if known is None:
        return None
    return {
        "since": fields.time(datetime.fromtimestamp(known.since, UTC)),
        "source": known.source,
        "bytes": known.size,
        "sha256": known.key or None,
        "commit": known.note or None,
    }


def _fields(
    document: str,
    old: Known | None,
    new: Known | None,
    found: list[Line],
    answered: list[Touched],
) -> fields.Fields:
    return {
        "schema": SCHEMA,
        "document": document,
        "from": _version(old),
        "to": _version(new),
        "sections": differ.changed_sections(found),
        "touched": [
            {
                "event": each.request.event,
                "participant": each.request.participant,
                "text": each.request.text,
                "section": each.section or None,
                "words": list(each.words),
                "inferred": True,
            }
            for each in answered
        ],
        "lines": [
            {
                "sign": line.sign,
                "old": line.old,
                "new": line.new,
                "pieces": [{"text": text, "changed": changed} for text, changed in line.pieces],
            }
            for line in found
            if line.sign != " "
        ],
    }
