"""What can be done to a collaboration's folder, and how a rule must speak of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from acp_core.protocols.folder.rules import codes
from acp_core.protocols.folder.schema.records import ADVICE, ERROR, WARNING, Report
from tests.protocols.folder.support import age, change_protocol, edit, line_of, read_protocol, say

Damage = Callable[[Path], object]


def change(**changes: Any) -> Damage:
    return lambda folder: change_protocol(folder, **changes)


def swap(name: str, old: str, new: str) -> Damage:
    return lambda folder: edit(folder, name, old, new)


def write(name: str, text: str | bytes) -> Damage:
    def damage(folder: Path) -> None:
        data = text.encode() if isinstance(text, str) else text
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
        age(folder, name)

    return damage


def more(name: str, text: str) -> Damage:
    return lambda folder: write(name, (folder / name).read_bytes() + text.encode())(folder)


def gave_way(name: str) -> Damage:
    """A shared folder in which a text of this host gave way to another host's."""

    def damage(folder: Path) -> None:
        (folder / ".acp" / "kept").mkdir(parents=True)
        (folder / ".acp" / "share.json").write_text("{}", encoding="utf-8")
        (folder / ".acp" / "kept" / f"{name}.20260101T000000Z.laptop").write_text("Mine.\n")

    return damage


def remove(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


def event(sender: str, event: str, **fields: Any) -> Damage:
    def damage(folder: Path) -> None:
        say(folder, sender, event, **fields)
        age(folder)

    return damage


def line(index: int, **changes: Any) -> Damage:
    """Change fields of one line of the log; None removes a field."""

    def damage(folder: Path) -> None:
        path = folder / "events.jsonl"
        lines = path.read_bytes().splitlines()
        fields = json.loads(lines[index]) | changes
        kept = {key: value for key, value in fields.items() if value is not None}
        lines[index] = line_of(kept)[:-1]
        write("events.jsonl", b"\n".join(lines) + b"\n")(folder)

    return damage


def declared(**changes: Any) -> Damage:
    """Change the declaration of deliverables."""

    def damage(folder: Path) -> None:
        block = read_protocol(folder)["deliverables"] | changes
        kept = {key: value for key, value in block.items() if value is not None}
        change_protocol(folder, deliverables=kept)

    return damage


def primary(**changes: Any) -> Damage:
    base = {"type": "decision-memo", "file": "decision.md", "checklist": []}
    return declared(primary=base | changes)


def supporting(text: str | None = None, *more: dict[str, Any], **fields: Any) -> Damage:
    """Declare a supporting deliverable notes.md, and write it where ``text`` is given."""

    def damage(folder: Path) -> None:
        item = {"type": "review-report", "file": "notes.md", "checklist": [], "frozen": False}
        declared(supporting=[item | fields, *more])(folder)
        if text is not None:
            write("deliverables/notes.md", text)(folder)

    return damage


def both(*damages: Damage) -> Damage:
    def damage(folder: Path) -> None:
        for each in damages:
            each(folder)

    return damage


def link_out(folder: Path, name: str) -> None:
    target = folder.parent / "elsewhere.md"
    (folder / name).rename(target)
    (folder / name).symlink_to(target)


def check(folder: Path, report: Report, code: str, text: str) -> None:
    found = [finding for finding in report.findings if finding.code == code]
    assert found, [(finding.code, finding.message) for finding in report.findings]
    assert any(f.message.startswith(text) for f in found), [f.message for f in found]
    severity = WARNING if code == "ACP315" else ADVICE if code >= "ACP9" else ERROR
    assert all(finding.severity == severity for finding in found)
    for finding in found:
        assert finding.file is not None
        if finding.line is not None:
            lines = (folder / finding.file).read_bytes().replace(b"\r", b"\n").split(b"\n")
            assert 1 <= finding.line <= len(lines)
        about = codes.about(finding.code)
        assert about.explanation.endswith(".") and about.remedy.endswith(".")
    shown = "\n".join(report.lines())
    word = {ERROR: "ERROR", WARNING: "WARNING"}.get(severity)
    assert (f"{word}: {text}" in shown) if word else (text not in shown)
    assert severity != ADVICE or f"ADVICE: {text}" in "\n".join(report.advice_lines())
    if severity == ERROR:
        assert report.lines()[0] == "ACP validation failed"
        assert report.exit_code() == report.exit_code(strict=True) == 2


def names(cases: list[tuple[str, str, Damage, str]]) -> list[str]:
    return [f"{code}-{upto}-{n}" for n, (code, upto, _, _) in enumerate(cases)]
