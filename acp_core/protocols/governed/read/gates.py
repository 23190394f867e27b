"""The predicates of a gate: required files with their content, verification, a human.

Source: governed protocol specification, "Phase model"; what a planning file must say follows
the shapes that the existing program writes and checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from acp_core import model
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.schema import Config, Object, decode
from acp_core.protocols.governed.state import Predicate

BY_A_HUMAN = "approved by a human"
MET = {True: "met", False: "not met", None: "cannot be known"}
_LIMIT = 1 << 20

_SECTIONS = {
    "SYSTEM_SPEC.md": ("Purpose", "Interface", "Acceptance Tests"),
    "IMPLEMENTATION_NOTES.md": ("Changes", "Verification"),
    "RELEASE_NOTES.md": ("User Impact", "Verification Summary"),
}

_PLACEHOLDER = re.compile(r"^(?:\(.*\)|<.*>|\[.*\]|_.*_|TBD.*|-)?$", re.I)


def predicates(
    root: Path, config: Object, gate: str, verification: str | None
) -> tuple[Predicate, ...]:
    """What a gate demands besides a human's approval, each met or not.

    Args:
        root: the repository.
        config: the configuration.
        gate: the gate's name.
        verification: what the latest accepted turn says of it; None where there is none.
    """
    rule = decode(Config, config).gates.get(gate)
    if rule is None:
        return ()
    found = [_file(root, name) for name in rule.requires_files[:50]]
    if rule.requires_verification_pass:
        said = "no turn was accepted yet"
        if verification is not None:
            said = f"the latest accepted turn says {verification or 'nothing about verification'}"
        met = verification in ("pass", "attested_pass")
        found.append(Predicate("verification", "verification passed", met, said))
    return tuple(found)


def unknown(demanded: Iterable[Predicate]) -> str:
    """Why it cannot be found out now what of a gate is met, "" where it can."""
    said = [f"{each.name}: {each.reason}" for each in demanded if each.unknown]
    return f"files that the gate requires cannot be read now: {', '.join(said)}" if said else ""


def gates(run: Run, phase: str = "") -> tuple[model.Gate, ...]:
    """The predicates of the gate that ends a phase (by default the current one), met or not."""
    gate = run.settings.route(phase or run.phase).exit_gate
    rule = run.settings.gates.get(gate)
    if rule is None:
        return ()
    found = []
    for each in predicates(run.root, run.config.value, gate, latest_verification(run, phase)):
        name = clean_line(each.name, 200)
        document = name if each.kind == "file" else None
        met = None if each.unknown else each.met
        found.append(model.Gate(name, met, document, evidence=clean_line(each.reason, 400)))
    if rule.requires_human_approval:
        passed = schema.obj(run.state.value, "phase_gate_status").get(gate) == "passed"
        found.append(model.Gate(f"{gate}: {BY_A_HUMAN}", passed))
    return tuple(found)


def lacking(run: Run, phase: str = "") -> tuple[model.Gate, ...]:
    """The predicates that are not met, besides the approval itself; as `gates`."""
    return tuple(
        gate
        for gate in gates(run, phase)
        if gate.met is False and not gate.label.endswith(BY_A_HUMAN)
    )


def latest_verification(run: Run, phase: str = "") -> str | None:
    """What the latest accepted turn (of a phase) says of its verification; None without one."""
    accepted = reversed(run.accepted)
    last = next((turn for turn in accepted if not phase or turn.phase == phase), None)
    return None if last is None else last.normalized_verification or last.verification


def _file(root: Path, name: str) -> Predicate:
    path = schema.inside(root, name)
    if path is None:
        return Predicate("file", name, False, "leads out of the repository")
    try:
        content = read_bounded(path, _LIMIT).decode("utf-8", "replace")
    except Unreadable as error:
        return Predicate("file", name, False, error.reason, error.missing, error.passing)
    lacking = lacks(path.name, content)
    return Predicate("file", name, not lacking, lacking)


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
