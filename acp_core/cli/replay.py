"""``acp replay``: what happened, moment by moment, and how it stood at one of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

from acp_core.cli import fields
from acp_core.cli.output import Terminal, dump, say, terminal
from acp_core.cli.page import View, page
from acp_core.cli.past import chain_of, past_of, place_of
from acp_core.cli.start import load_settings
from acp_core.history.moments import DOCUMENT, EVENT, FINDINGS, Moment, written
from acp_core.history.past import Past, Then, gaps
from acp_core.model import format
from acp_core.model.errors import CommandError
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.kit.values import Values

SCHEMA = "acp.replay/1"
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
            say(dump(_fields(past)))
        else:
            for line in _story(past, terminal(), utc):
                say(line)
    return 0


def _story(past: Past, shown_on: Terminal, utc: bool) -> Iterator[str]:
    yield shown_on.paint(past.present.name, "head")
    for line in known(past, utc):
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


def known(past: Past, utc: bool) -> list[str]:
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
    for line in page(then.snapshot, View(then.snapshot.as_of, terminal(), utc=utc)):
        say(line)
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


def _fields(past: Past) -> fields.Fields:
    return {
        "schema": SCHEMA,
        "collaboration": past.key,
        "snapshot": fields.summary(past.present),
        "recorded": past.recorded,
        "known": known(past, True),
        "moments": [
            _moment_fields(name, moment)
            for name, moment in zip(past.ids, past.moments, strict=True)
        ],
    }


def _moment_fields(name: str, moment: Moment) -> fields.Fields:
    return {
        "id": name,
        "at": written(moment.time),
        "kind": moment.kind,
        "name": moment.name,
        "what": moment.what,
        "events": moment.events,
        "exact": moment.exact,
    }


def _then_fields(name: str, then: Then) -> fields.Fields:
    return {
        "schema": SCHEMA,
        "moment": _moment_fields(name, then.moment),
        "collaboration": then.snapshot.key,
        "snapshot": fields.detail(then.snapshot),
        "sources": then.sources,
        "not_recorded": list(then.missing),
        "loops": {name: json.loads(said) for name, said in then.alive.items()},
    }
