"""``acp report``: tell what happened to somebody who was not there."""

from __future__ import annotations

import json
from pathlib import Path

from acp_core.cli import report_json
from acp_core.cli.opening import open_one
from acp_core.cli.output import dump, say
from acp_core.cli.past import past_of
from acp_core.cli.replay import known
from acp_core.cli.start import load_settings
from acp_core.diagnosis.observer import Observer
from acp_core.files import atomic
from acp_core.history.measured import measured
from acp_core.history.moments import tool_uses_panel
from acp_core.history.reports import exports, html, markdown
from acp_core.history.reports.report import Report, redacted, replay_versions, texts
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError
from acp_core.person import journal
from acp_core.person.working_hours import Working
from acp_core.protocols.kit.values import Values

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
        say(dump(report_json.JSON_SCHEMA))
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
        sentences = tuple(known(past, utc))
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
        return exports.turns_csv(made)
    told = exports.trace(made) if form == "otlp" else report_json.fields_of(made)
    return json.dumps(told, ensure_ascii=True, indent=2) + "\n"
