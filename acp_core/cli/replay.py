"""``acp replay`` and ``acp diff``: what happened, moment by moment, how it stood at one of them, and what
became of a document between two.

First what the commands about the past share: opening one, and naming a moment of it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from acp_core.cli import fields
from acp_core.cli.output import Terminal, dump, say, terminal
from acp_core.cli.show import View, page
from acp_core.cli.start import load_settings, open_one
from acp_core.history import versions
from acp_core.history.moments import DOCUMENT, EVENT, FINDINGS, Moment, end_of, written
from acp_core.history.past import AS_RECORDED, Past, Then, chain, gaps
from acp_core.history.store import BadRecording
from acp_core.history.versions import (
    NEW,
    OLD,
    Known,
    Line,
    Touched,
    bytes_of,
    describe_version,
    text_of,
    touched,
)
from acp_core.model import SourceState, format
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.discovery import DiscoveredCollaboration
from acp_core.protocols.kit.values import Values
from acp_core.protocols.locations import find, is_link

_ZONE = re.compile(r" ([+-]\d\d:?\d\d)$")
"""The zone of a time as people are shown it."""


@contextmanager
def past_of(folder: str, *, empty: bool = False) -> Iterator[Past]:
    """The past of the collaboration in a folder.

    Args:
        folder: as it was given.
        empty: whether one in which nothing has happened will do.

    Raises:
        CommandError: there is none, it has no past, or its recording cannot be read.
    """
    found = (None if is_link(folder) else find(os.path.abspath(folder))) or find_collaboration(
        folder
    )
    try:
        past = Past(found, utc_now())
    except BadRecording as error:
        raise CommandError(str(error)) from None
    try:
        if past.present.source.state is SourceState.UNREACHABLE:
            open_one(folder)  # says why
        if not (past.moments or empty):
            raise CommandError(f"{folder}: nothing has happened yet")
        yield past
    except BadRecording as error:
        raise CommandError(str(error)) from None
    finally:
        past.close()


def find_collaboration(folder: str) -> DiscoveredCollaboration:
    """The collaboration in a folder.

    Raises:
        CommandError: there is none.
    """
    _, snapshot = open_one(folder)
    found = find(snapshot.key)
    if found is None:
        raise CommandError(f"{folder}: no collaboration")
    return found


def chain_of(folder: str) -> list[str]:
    """The folders of the chain to which a collaboration belongs, oldest first.

    Raises:
        CommandError: there is none in this folder.
    """
    return [found.key for found in chain(find_collaboration(folder), utc_now())]


def place_of(past: Past, given: str) -> tuple[int, datetime | None]:
    """The moment that is meant by its id, an event's id, or a time (ISO 8601; local without a zone).

    Returns:
        The place of the moment, and the time where one was given.

    Raises:
        CommandError: there is no such event, or it is no time, or nothing had happened by then.
    """
    place = past.place(given)
    if place is not None:
        return place, None
    try:
        at = datetime.fromisoformat(_ZONE.sub(r"\1", given.replace(" UTC", "Z")))
    except ValueError:
        first, last = past.present.events[:1], past.present.events[-1:]
        ids = f"{first[0].id} to {last[0].id}" if first else "none yet"
        raise CommandError(
            f"{given!r} is neither an event ({ids}) nor a time such as 2026-05-03T14:00"
        ) from None
    if at.tzinfo is None:
        at = at.astimezone()
    place = past.nearest(at)
    if place is None:
        began = written(past.moments[0].time)
        raise CommandError(f"{given} is before the beginning: {began}")
    return place, at


REPLAY_SCHEMA = "acp.replay/1"

_SIGNS = {EVENT: "●", DOCUMENT: "≡", FINDINGS: "!"}
_SHOWN = 5  # gaps, and files that are not known, that are named


def replay(given: Values) -> int:
    """Print the moments, or how it stood at one of them.

    Raises:
        CommandError: the options do not go together, or there is no such moment.
    """
    folder = given.folder
    utc = given.utc or load_settings().utc
    if given.chain and (given.at or given.json):
        raise CommandError(
            "--chain cannot be combined with --at or --json: name the folder instead"
        )
    if given.chain:
        for each in chain_of(folder):
            say(terminal().paint(clean_line(each), "head"))
            with past_of(each) as past:
                for line in _story(past, terminal(), utc):
                    say(line)
            say()
        return 0
    with past_of(folder) as past:
        if given.at:
            place, when = place_of(past, given.at)
            then = past.at(place, when)
            if given.json:
                say(dump(_then_fields(past.ids[place], then)))
            else:
                _show(then, utc)
        elif given.json:
            say(dump(_replay_fields(past)))
        else:
            for line in _story(past, terminal(), utc):
                say(line)
    return 0


def _story(past: Past, shown_on: Terminal, utc: bool) -> Iterator[str]:
    yield shown_on.paint(past.present.name, "head")
    for line in coverage(past, utc):
        yield shown_on.paint(line, "dim")
    yield ""
    last = None
    width = max(len(format.instant(moment.time)) for moment in past.moments)
    for moment in past.moments:
        at = format.zoned(moment.time, utc)
        if last is None or at.date() != last:
            last = at.date()
            yield shown_on.paint(f"{at:%A, %d %B %Y}", "dim")
        sign = _SIGNS.get(moment.kind, "·")
        number = f"{moment.name:>5} " if moment.kind == EVENT else " " * 6
        style = {EVENT: "", DOCUMENT: "live", FINDINGS: "warning"}.get(moment.kind, "dim")
        what = clean_line(moment.what, 200)
        yield f"{format.instant(at):<{width}} {number}{sign} {shown_on.paint(what, style)}"


def coverage(past: Past, utc: bool) -> list[str]:
    """How much is known of the past, in sentences."""
    if not past.recorded:
        return [
            "Not recorded: only the present content of the documents is known"
            + (", and what was committed." if _committed(past) else ".")
        ]
    start, end = past.moments[0].at, past.moments[-1].at
    holes = [hole for hole in gaps(past.spans, start, end) if hole[1] - hole[0] > 1]
    if not holes:
        return ["Recorded from its beginning to its end."]
    words = [
        f"{format.moment(_at(left), _at(end), utc)} to {format.moment(_at(right), _at(end), utc)}"
        for left, right in holes[:_SHOWN]
    ]
    more = f" and {len(holes) - _SHOWN} more times" if len(holes) > _SHOWN else ""
    return [
        f"Not recorded: {', '.join(words)}{more}. Of several changes in that time, acp knows only the last."
    ]


def _committed(past: Past) -> bool:
    return any(
        each.source == "committed"
        for document in past.present.documents
        for each in past.versions(document.id)
    )


def _show(then: Then, utc: bool) -> None:
    moment = then.moment
    at = format.exact(moment.time, utc)
    say(terminal().paint(f"{at}: {clean_line(moment.what, 200)}", "dim"))
    view = View(then.snapshot.as_of, terminal(), needs=then.snapshot.needs, utc=utc)
    for line in page(then.snapshot, view):
        say(line)
    for cause in then.snapshot.causes:
        if not cause.wanted:  # the others stand above
            say(f"{AS_RECORDED}: {cause.sentence}")
    for participant, said in then.alive.items():
        say(f"loop of {clean_name(participant, 100)}: {clean_line(_loop(said), 200)}")
    if then.missing:
        names = [clean_name(name, 100) for name in then.missing]
        more = f" and {len(names) - _SHOWN} more (--json lists them)" if len(names) > _SHOWN else ""
        say(f"not recorded: {', '.join(names[:_SHOWN])}{more}")


def _loop(said: str) -> str:
    facts = json.loads(said)
    words = "died" if facts.get("died") else str(facts.get("phase", "")).replace("_", " ")
    return f"{words}  {facts.get('program', '')}".strip()


def _at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _replay_fields(past: Past) -> fields.Fields:
    return {
        "schema": REPLAY_SCHEMA,
        "collaboration": past.key,
        "snapshot": fields.summary(past.present),
        "recorded": past.recorded,
        "known": coverage(past, True),
        "moments": [
            _moment_fields(name, moment)
            for name, moment in zip(past.ids, past.moments, strict=True)
        ],
    }


def _moment_fields(name: str, moment: Moment) -> fields.Fields:
    told = {"id": name, "at": written(moment.time)}
    return told | fields.picked(moment, "kind name what events exact")


def _then_fields(name: str, then: Then) -> fields.Fields:
    return {
        "schema": REPLAY_SCHEMA,
        "moment": _moment_fields(name, then.moment),
        "collaboration": then.snapshot.key,
        "snapshot": fields.detail(then.snapshot)
        | {"needs": fields.needs(then.snapshot, then.snapshot.needs)},
        "sources": then.sources,
        "not_recorded": list(then.missing),
        "loops": {name: json.loads(said) for name, said in then.alive.items()},
    }


DIFF_SCHEMA = "acp.diff/1"

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
        found = versions.compare_lines(text_of(old), text_of(new))
        before, after = bytes_of(old), bytes_of(new)
        same, notes = before == after, versions.unseen(before, after, found)
        answered = touched(past.requests(old, new), found)
    if given.json:
        say(
            dump(
                _diff_fields(document, old, new, found, answered) | {"unseen": notes, "same": same}
            )
        )
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
    titles = versions.changed_sections(found)
    if titles:
        yield shown.paint(f"changed below: {', '.join(clean_line(t, 80) for t in titles)}", "dim")
    for each in answered:
        who = f"{each.request.participant}, event {each.request.event}"
        text = f"addressed (inferred): {who}: {each.request.text} ({each.reason})"
        yield shown.paint(clean_line(text, 400), "dim")
    for hunk in versions.hunks(found):
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
        say(dump({"schema": DIFF_SCHEMA, "versions": [_version(each) for each in known]}))
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


def _diff_fields(
    document: str,
    old: Known | None,
    new: Known | None,
    found: list[Line],
    answered: list[Touched],
) -> fields.Fields:
    return {
        "schema": DIFF_SCHEMA,
        "document": document,
        "from": _version(old),
        "to": _version(new),
        "sections": versions.changed_sections(found),
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
            fields.picked(line, "sign old new")
            | {"pieces": [{"text": text, "changed": changed} for text, changed in line.pieces]}
            for line in found
            if line.sign != " "
        ],
    }
