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
from acp_core.history.reports import csv_turns, html, markdown, otlp
from acp_core.history.reports.replay_data import versions
from acp_core.history.reports.report import Report, redacted, texts
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
    settings = load_settings()
    utc = given.utc or settings.utc
    chosen = given.format or ("json" if given.json else _form(output))
    made = _report(given.folder, Working.of(settings.working), utc)
    made = made if given.no_redact else redacted(made)
    text = _text(made, chosen, utc)
    if not output:
        say(text.rstrip("\n"))
        return 0
    try:
        atomic.replace(output, text.encode(errors="replace"))
    except OSError as error:
        raise CommandError(f"{output}: {error.strerror or error}") from None
    say(f"written: {output}")
    return 0


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
        held = versions(past, documents)
    return Report(
        snapshot, found.story.turns, found.metrics, documents, sentences, now, held, found.drawn,
        found.findings, found.counts,
    )  # fmt: skip


def _text(made: Report, form: str, utc: bool) -> str:
    if form == "md":
        return markdown.render(made, utc=utc)
    if form == "html":
        return html.render(made, utc=utc)
    if form == "csv":
        return csv_turns.render(made)
    told = otlp.trace(made) if form == "otlp" else report_json.fields_of(made)
    return json.dumps(told, ensure_ascii=True, indent=2) + "\n"
