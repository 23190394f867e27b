"""Goldens without what stands in them already: each omission names where it stands."""

from __future__ import annotations

from typing import Any

AS_BEFORE = "as in the preview"

Captured = dict[str, Any]


def printed(commands: dict[str, Captured]) -> dict[str, Captured]:
    """The same without what other commands repeat from `show` and `stats`, field by field."""
    (whole, *_), (measured, *_) = _rows(commands["show"]), _rows(commands["stats"])
    for name in ("why", "status", "report"):
        for row in _rows(commands[name]):
            for cause, shown in zip(row.get("causes", ()), whole.get("causes", ()), strict=False):
                if cause != shown:  # with the command that helps
                    _leave_out(cause, shown, "show")
            _leave_out(row, whole, "show")
    out = commands["report"]["out"]
    if isinstance(out, dict) and "metrics" in out:
        _leave_out(out["metrics"], measured, "stats")
    return commands


def _rows(printed: Captured) -> list[Captured]:
    """The collaborations in what was printed; at least an empty one."""
    out = printed["out"] if isinstance(printed["out"], dict) else {}
    rows = [out.get("snapshot"), *out.get("collaborations", ())]
    return [row for row in rows if isinstance(row, dict)] or [{}]


def _leave_out(row: Captured, whole: Captured, source: str) -> None:
    same = [name for name in row if name in whole and row[name] == whole[name]]
    if same and all(row.get(name) == whole.get(name) for name in ("key", "name")):
        for name in same:
            del row[name]
        row[f"as in {source}"] = " ".join(sorted(same))


def action(captured: Captured, name: str, folder: str) -> Captured:
    """An action whose outputs name itself and its collaboration as they should."""
    envelope = {"schema": "acp.act/1", "action": name, "collaboration": folder}
    outputs = [captured[part] for part in ("preview", "performed") if part in captured]
    for out in (each["out"] for each in outputs if isinstance(each["out"], dict)):
        for key in [key for key, value in envelope.items() if out.get(key) == value]:
            del out[key]
    if "performed" in captured:
        _repeat(captured, "preview")
    return captured


def _repeat(captured: Captured, part: str) -> None:
    """Leave out what was done as it was shown before."""
    before, after = captured["preview"], captured["performed"]
    if before == after:
        captured["performed"] = AS_BEFORE
        return
    if not isinstance(before["out"], dict) or not isinstance(after["out"], dict):
        return
    preview = before["out"].get(part)
    if after["out"].get(part) == preview:
        after["out"].pop(part, None)
    for path, file in captured.get("written", {}).items():
        for change in (preview or {}).get("changes", ()):
            if isinstance(file, dict) and _names(change["path"], path):
                _shown(file, change)


def _names(shown: str, path: str) -> bool:
    """Whether a preview's path, whole or relative to the collaboration, may be this file."""
    return f"<sandbox>/{path}".endswith(shown) or path.endswith(f"/{shown}")


def _shown(file: Captured, change: Captured) -> None:
    """Leave out lines of a file that its preview has exactly; the last one has an end."""
    diff = change["diff"] if isinstance(change["diff"], list) else [change["diff"]]
    added = [*(line[1:] for line in diff if line[:1] == "+" and line[:4] != "+++ "), ""]
    for how, lines in (("created", added), ("appended", added), ("changed", diff[2:])):
        if file.get(how) == lines:
            file[how] = AS_BEFORE
