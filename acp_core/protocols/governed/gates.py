"""The predicates of a gate: required files with their content, verification, a human.

Source: governed protocol specification, "Phase model"; what a planning file must say follows
the shapes that the existing program writes and checks.
"""

from __future__ import annotations

import re
from pathlib import Path

from acp_core import model
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.run import Run

_LIMIT = 1 << 20
_SECTIONS = {
    "SYSTEM_SPEC.md": ("Purpose", "Interface", "Acceptance Tests"),
    "IMPLEMENTATION_NOTES.md": ("Changes", "Verification"),
    "RELEASE_NOTES.md": ("User Impact", "Verification Summary"),
}
_PLACEHOLDER = re.compile(r"^(?:\(.*\)|<.*>|\[.*\]|_.*_|TBD.*|-)?$", re.I)


def gates(run: Run) -> tuple[model.Gate, ...]:
    """The predicates of the gate that ends the current phase, each met or not."""
    rule = schema.objects(schema.obj(run.config.value, "gates")).get(run.gate)
    if rule is None:
        return ()
    found = [_file(run.root, name) for name in schema.strings(rule, "requires_files")[:50]]
    if rule.get("requires_verification_pass") is True:
        found.append(_verification(run))
    if rule.get("requires_human_approval") is True:
        passed = schema.obj(run.state.value, "phase_gate_status").get(run.gate) == "passed"
        found.append(model.Gate(f"{run.gate}: approved by a human", passed))
    return tuple(found)


def _verification(run: Run) -> model.Gate:
    last = run.history.lines[-1].value if run.history.lines else {}
    status = schema.text(schema.obj(last, "normalized_verification"), "status", 40)
    status = status or schema.text(schema.obj(last, "verification"), "status", 40)
    said = f"the latest accepted turn says {status}" if status else "no turn was accepted yet"
    return model.Gate("verification passed", status in ("pass", "attested_pass"), evidence=said)


def _file(root: Path, name: str) -> model.Gate:
    shown = clean_line(name, 200)
    path = schema.inside(root, name)
    if path is None:
        return model.Gate(shown, False, evidence="leads out of the repository")
    try:
        content = read_bounded(path, _LIMIT).decode("utf-8", "replace")
    except Unreadable as error:
        return model.Gate(shown, False, shown, evidence=error.reason)
    lacking = lacks(path.name, content)
    return model.Gate(shown, not lacking, shown, evidence=lacking)


def lacks(name: str, content: str) -> str:
    """What a planning file lacks so that its gate is met, "" where nothing."""
    lines = [line.strip() for line in content.splitlines()]
    if name == "PM_SIGNOFF.md":
        met = any(re.fullmatch(r"approved:\s*yes", line, re.I) for line in lines)
        return "" if met else "no line says “Approved: YES”"
    if name == "ship-verdict.md":
        met = any(re.fullmatch(r"## verdict:\s*(yes|ship|ship it)", line, re.I) for line in lines)
        return "" if met else "no line says “## Verdict: YES”"
    if name == "acceptance-matrix.md":
        return _matrix(lines)
    missing = [title for title in _SECTIONS.get(name, ()) if not _filled(lines, title)]
    return f"not filled in: {', '.join(missing)}" if missing else ""


def _filled(lines: list[str], title: str) -> bool:
    within = False
    for line in lines:
        if line.startswith("## "):
            within = line[3:].strip().casefold() == title.casefold()
        elif within and not line.startswith("#") and not _PLACEHOLDER.match(line):
            return True
    return False


def _matrix(lines: list[str]) -> str:
    rows: list[list[str]] = []
    header: list[str] | None = None
    for line in lines:
        if not line.startswith("|"):
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if header is None:
            header = cells if cells[0].casefold() == "req #" else None
        elif len(cells) > 1 and set("".join(cells)) - set("-: ") and not cells[0].startswith("("):
            rows.append(cells)
    if header is None or not rows:
        return "no requirement has a row"
    at = next((i for i, cell in enumerate(header) if cell.casefold() == "status"), len(header) - 1)
    bad = [row[0] for row in rows if len(row) <= at or row[at].upper() not in _GOOD]
    return f"not passed: {clean_line(', '.join(bad), 200)}" if bad else ""


_GOOD = ("PASS", "PASSED", "OK", "YES")
