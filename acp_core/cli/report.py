"""``acp report``: tell what happened to somebody who was not there.

First a report as JSON, and the JSON Schema that it keeps to.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from acp_core.cli import fields
from acp_core.cli.output import dump, say
from acp_core.cli.replay import coverage, past_of
from acp_core.cli.start import load_settings, open_one
from acp_core.cli.stats import figures
from acp_core.diagnosis.observer import Observer
from acp_core.files import atomic
from acp_core.history.metrics import measured
from acp_core.history.moments import tool_uses_panel
from acp_core.history.reports import html, markdown
from acp_core.history.reports.report import (
    Report,
    redacted,
    replay_versions,
    texts,
    trace,
    turns_csv,
)
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError
from acp_core.person import journal
from acp_core.person.settings import Working
from acp_core.protocols.kit.values import Values

SCHEMA = "acp.report/1"


def fields_of(made: Report) -> fields.Fields:
    """The report; what is not recorded is null."""
    return {
        "schema": SCHEMA,
        "made": fields.time(made.made),
        "known": list(made.known),
        "collaboration": made.snapshot.key,
        "outcome": list(made.snapshot.outcome),
        "snapshot": fields.detail(made.snapshot),
        "metrics": figures(made.metrics, made.findings, made.counts),
        "turns": [
            fields.picked(turn, "participant since since_event ended event kind phase round")
            for turn in made.turns
        ],
        "documents": [
            {"id": text.document}
            | fields.picked(text, "title changed text")
            | {
                "versions": [
                    fields.picked(version, "event since source text note")
                    for version in made.versions
                    if version.document == text.document
                ]
            }
            for text in made.texts
        ],
    }


def _of(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, **more}


def _or_null(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": [kind, "null"], **more}


def _object(properties: dict[str, Any], *, open_: bool = False) -> dict[str, Any]:
    """An object with all of these; ``open_`` lets others stand beside them."""
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "additionalProperties": open_,
    }


def _list(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


_TEXT, _NUMBER, _COUNT = _of("string"), _or_null("number", minimum=0), _of("integer", minimum=0)
_TIME = _or_null("string", description="ISO 8601 in UTC")
_SPAN = {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/span"}]}
_EVENT = _object(
    {
        "id": _TEXT, "order": _of("integer"), "source": _TEXT, "kind": _TEXT, "tone": _TEXT,
        "actor": _TEXT, "at": _TIME, "at_source": _TEXT, "summary": _TEXT,
        "reply_to": _or_null("string"), "document": _or_null("string"), "line": _or_null("integer"),
        "problem": _TEXT,
    }
)  # fmt: skip
_PERSON = _object(
    {
        "participant": _TEXT, "turns": _COUNT, "waited_for_now": _of("boolean"),
        "median_seconds": _NUMBER, "longest_seconds": _NUMBER, "waited_for": _SPAN,
        "parked": _SPAN, "critical": _SPAN,
        "critical_share": _or_null("number", minimum=0, maximum=1),
    }
)  # fmt: skip
_METRICS = _object(
    {
        "name": _TEXT, "status": _TEXT, "lead": _SPAN,
        "phases": _list(_object({
            "phase": _TEXT, "total": _SPAN,
            "rounds": _list(_object({"round": _of("integer"), "time": _SPAN})),
        })),
        "participants": _list(_PERSON),
        "events": _COUNT, "rounds": _or_null("integer"), "reviews": _COUNT,
        "counts": _list(_object({
            "what": _TEXT, "value": _or_null("integer", minimum=0), "event": _or_null("string"),
            "participant": _or_null("string"),
        })),
        "findings": _object({"errors": _COUNT, "warnings": _COUNT}),
        "findings_over_time": _list(_object({"at": _TIME, "errors": _COUNT, "warnings": _COUNT})),
        "counts_over_time": _list(_object({
            "at": _TIME, "what": _TEXT, "count": _or_null("integer", minimum=0),
        })),
        "human_acts": _COUNT, "retries": _or_null("integer", minimum=0),
        "tokens": {"anyOf": [{"type": "null"}, _object({"in": _COUNT, "out": _COUNT})]},
        "cost": _or_null("number", minimum=0, description="US dollars"),
        "estimated": _of("boolean"),
    }
)  # fmt: skip
_METRICS["properties"]["cost_unknown"] = {
    **_list(_TEXT),
    "description": "Whose cost is not in the sum; left out where it is complete",
}
_METRICS["properties"]["uncertain"] = {
    **_TEXT,
    "description": ("Why the durations are null; left out otherwise"),
}
JSON_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": SCHEMA,
    "description": "What happened in a collaboration. null: not recorded.",
    "$defs": {
        "span": {
            **_object({"seconds": _of("number"), "working_seconds": _of("number")}),
            "description": "A duration, and how much of it was working time",
        }
    },
    **_object(
        {
            "schema": {"const": SCHEMA},
            "made": _TIME,
            "known": _list(_TEXT),
            "collaboration": _TEXT,
            "outcome": {
                **_list(_TEXT),
                "description": "Ids of the panels and documents that say what came out",
            },
            "snapshot": _object({
                "key": _TEXT, "protocol": _TEXT, "name": _TEXT, "status": _TEXT,
                "events": _list(_EVENT), "findings": _list(_of("object")),
                "documents": _list(_of("object")), "phases": _list(_of("object")),
                "participants": _list(_of("object")),
            }, open_=True),
            "metrics": _METRICS,
            "turns": _list(_object({
                "participant": _TEXT, "since": _TIME, "since_event": _or_null("string"),
                "ended": _TIME, "event": _or_null("string"), "kind": _TEXT, "phase": _TEXT,
                "round": _of("integer"),
            })),
            "documents": _list(_object({
                "id": _TEXT, "title": _TEXT, "changed": _TIME, "text": _TEXT,
                "versions": _list(_object({
                    "event": _TEXT, "since": _TIME, "source": _TEXT, "text": _or_null("string"),
                    "note": _TEXT,
                })),
            })),
        }
    ),
}  # fmt: skip

FORMS = {
    ".md": "md", ".markdown": "md", ".html": "html", ".htm": "html", ".json": "json", ".csv": "csv",
}  # fmt: skip


def report(given: Values) -> int:
    """Print the report, or write it.

    Raises:
        CommandError: no folder is named, no form has the file's ending, or it cannot be written.
    """
    output = given.output
    if given.schema:
        say(dump(JSON_SCHEMA))
        return 0
    if not given.folder:
        raise CommandError("name a FOLDER, for example: acp report . -o report.html")
    chosen = given.format or ("json" if given.json else _form(output))
    found = make(given.folder, utc=given.utc, redact=not given.no_redact)
    if output:
        write(found, chosen, output, utc=given.utc)
        say(f"written: {output}")
    else:
        say(_text(found, chosen, _is_utc(given.utc)).rstrip("\n"))
    return 0


def make(folder: str, *, utc: bool = False, redact: bool = True) -> Report:
    """The report of a collaboration as it is now.

    Args:
        folder: its path, or an address.
        utc: Show times in UTC, whatever the settings say.
        redact: Leave out what looks like a secret or a mail address.

    Raises:
        CommandError: there is none, nothing has happened, or its recording cannot be read.
    """
    found = _report(folder, Working.of(load_settings().working), _is_utc(utc))
    return redacted(found) if redact else found


def write(found: Report, form: str, output: str, *, utc: bool = False) -> None:
    """Write a report to a file, whole or not at all.

    Raises:
        CommandError: the file cannot be written.
    """
    text = _text(found, form, _is_utc(utc))
    try:
        atomic.replace(output, text.encode(errors="replace"))
    except OSError as error:
        raise CommandError(f"{output}: {error.strerror or error}") from None


def _is_utc(asked: bool) -> bool:
    return asked or load_settings().utc


def _form(output: str) -> str:
    """The form that a file's ending asks for; Markdown where nothing is said.

    Raises:
        CommandError: no form has that ending.
    """
    suffix = Path(output).suffix.lower() if output else ""
    form = FORMS.get(suffix, "" if suffix else "md")
    if not form:
        known = ", ".join(FORMS)
        raise CommandError(
            f"{output}: unknown report format {suffix} (supported: {known}); use --format"
        )
    return form


def _report(folder: str, working: Working, utc: bool) -> Report:
    now = utc_now()
    fleet, snapshot = open_one(folder)
    documents = fleet.call_sync(
        snapshot.key, lambda collaboration: texts(snapshot, collaboration.load)
    )
    with past_of(folder) as past:
        loops = Observer().loops(snapshot.key)
        acts = journal.read(snapshot.key)
        found = measured(past, loops, acts, now, working, snapshot)
        sentences = tuple(coverage(past, utc))
        held = replay_versions(past, documents)
        did = tool_uses_panel(past.loops, utc)
    return Report(
        snapshot, found.story.turns, found.metrics, documents, sentences, now, held, found.drawn,
        found.findings, found.counts, did,
    )  # fmt: skip


def _text(made: Report, form: str, utc: bool) -> str:
    if form == "md":
        return markdown.render(made, utc=utc)
    if form == "html":
        return html.render(made, utc=utc)
    if form == "csv":
        return turns_csv(made)
    told = trace(made) if form == "otlp" else fields_of(made)
    return json.dumps(told, ensure_ascii=True, indent=2) + "\n"
