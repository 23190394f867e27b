"""The act that saves a report of a collaboration to a file: `acp report -o`, from the dashboard."""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.diagnosis.personal import Noted
from acp_core.diagnosis.personal_table import REPORT
from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.values import Values

_ENDINGS = {"md": ".md", "html": ".html", "json": ".json", "csv": ".csv", "otlp": ".json"}
_UNSAFE = re.compile(r"[^\w.-]+")


class _Target(NamedTuple):
    """Where a report goes, and in which format."""

    path: Path
    form: str


def bind_report(context: Context, now: datetime) -> Action:
    """Save a report to a file."""
    noted = Noted.of(context)

    def preview(values: Values) -> Preview:
        target = _target(noted, values)
        there = target.path.exists()
        warnings = ("The file exists and will be replaced.",) if there else ()
        command = ["acp", "report", noted.key, "-o", str(target.path), "--format", target.form]
        return Preview(
            clean_line(f"Saves the report to {target.path}.", 4_096),
            warnings=warnings,
            command=tuple(clean_line(word, 4_096) for word in command),
        )

    def perform(values: Values) -> Outcome:
        from acp_core.cli.report import make, write

        target = _target(noted, values)
        write(make(noted.key), target.form, str(target.path))
        sentence = clean_line(f"Saved the report: {target.path}", 4_096)
        return Outcome(OutcomeState.DONE, sentence)

    return bound(REPORT, noted, preview, perform, offered=bool(noted.snapshot.events))


def _target(noted: Noted, values: Values) -> _Target:
    """The file that is named, or one beside the work.

    Raises:
        Refused: its ending is that of another format, or its folder is not there.
    """
    from acp_core.cli.report import FORMS  # reports cost much to import: not to offer the act

    form = values.format
    named = values.file.strip()
    path = Path(named).expanduser() if named else Path(_name(noted.snapshot.name) + _ENDINGS[form])
    if not path.is_absolute():
        path = _folder(noted.key) / path
    if path.is_dir():
        path = path / (_name(noted.snapshot.name) + _ENDINGS[form])
    meant = FORMS.get(path.suffix.lower())
    if meant is not None and _ENDINGS[meant] != _ENDINGS[form]:
        raise Refused(f"{path.name} is not a file of the format {form}: end it in {_ENDINGS[form]}")
    if not path.parent.is_dir():
        raise Refused(f"{path.parent}: no such folder")
    return _Target(path, form)


def _name(name: str) -> str:
    return f"{_UNSAFE.sub('-', name).strip('-.')[:60] or 'collaboration'}-report"


def _folder(key: str) -> Path:
    """The folder in which one works; beside the collaboration, where that is inside of it."""
    here = Path.cwd()
    inside = os.path.isabs(key) and here.is_relative_to(key)
    return Path(key).parent if inside else here
