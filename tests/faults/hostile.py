"""Hostile text in every text of every protocol, through every export and every screen."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from acp_core.protocols.discovery import identify
from acp_core.protocols.registry import bundled
from tests.faults import places
from tests.faults.campaign import Campaign, Case, mixed
from tests.faults.looking import acp, look
from tests.faults.mutations import HOSTILE
from tests.support.terminal import Terminal

# What a terminal, a browser or a spreadsheet obeys; a text may hold none of it.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069"
    "\ud800-\udfff\ufff9-\ufffb\U000e0000-\U000e007f]|[\u0300-\u036f]{9}"
)
ALONE = ".".join(
    chr(code)
    for code in (
        *range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0), 0xAD, 0x61C, 0x200B, 0x200E,
        0x200F, *range(0x2028, 0x202F), 0x2060, *range(0x2066, 0x206A), 0xD800, 0xFFF9, 0xE0041,
    )
)  # fmt: skip
"""Each sign that does harm by itself: one that passes alone passes in no company unseen."""
EXPORTS: tuple[tuple[str, ...], ...] = (
    ("status",), ("status", "--json"), ("show", "--all"), ("show", "--json"), ("validate",),
    ("validate", "--json"), ("why",), ("why", "--json"), ("stats",), ("stats", "--json"),
    ("chart",), ("replay",), ("replay", "--json"), ("act",), ("act", "--json"), ("report",),
    *(("report", "--format", form) for form in ("html", "json", "csv", "otlp")),
)  # fmt: skip
_PARTS = 4  # of the exports, of which each text goes through one
_STATES = frozenset(
    [
        "status",
        "phase",
        "current_phase",
        "event",
        "from",
        "at",
        "seq",
        "agent",
        "role",
        "type",
        "kind",
        "id",
        "turn_id",
        "run_id",
        "version",
        "timestamp",
        "schema_version",
        "assigned_role",
        "severity",
        "category",
        "event_type",
        "decision",
        "path",
        "repo",
        "branch",
        "config_path",
        "runtime",
        "entry_role",
        "exit_gate",
        "cycle_id",
        "current_iteration",
        "waitingFor",
        "currentPhase",
        "proposalOwner",
        "participants",
        "file",
        "output_files",
        "files_written",
        "depends_on",
        "super_run_id",
        "name",
    ]
)  # what decides how the rest is read: texts in them would only make the whole unreadable
_KEYS = ("\t", "\r", "\x1b", "]", "]", "]", "]", "[", "\x1b[B", "\r", "\x1b", "r", "\x1b[C", "\x1b[C", "\x1b",
         "?", "\x1b", "i", "\x1b[B", "\r", "\x1b", "\x10", "pwned", "\x1b", "/", "CLICK", "\r", "\x1b", "m", "\x1b",
         "f", "z", "z", "b")  # fmt: skip


def poison(root: Path, text: str, everything: bool) -> None:
    """Put ``text`` into what the files of a collaboration hold, keys but those that decide included."""
    for name in list(places.files(root)):
        path = root / name
        if "sqlite" in name or path.name in ("lock", ".gitignore"):
            continue
        data = path.read_bytes()
        if path.suffix in (".json", ".jsonl", ".ndjson"):
            path.write_bytes(_json(data, text, everything))
        else:
            path.write_bytes(data + _document(text))
    if (root / "wire.sqlite3").exists():
        _store(root / "wire.sqlite3", text, everything)


def _json(data: bytes, text: str, everything: bool) -> bytes:
    try:
        return _dumped(_changed(json.loads(data), text, everything)) + b"\n"
    except ValueError:
        lines = [
            _dumped(_changed(json.loads(line), text, everything)) for line in data.splitlines()
        ]
        return b"".join(line + b"\n" for line in lines)


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


def _changed(value: Any, text: str, everything: bool, key: str = "") -> Any:
    if isinstance(value, dict):
        made = {k: _changed(v, text, everything, k) for k, v in value.items()}
        return made | {f"note {text}": text}
    if isinstance(value, list):
        return [_changed(inner, text, everything, key) for inner in value]
    if isinstance(value, str) and (everything or key not in _STATES):
        return f"{value} {text}"
    return value


def _document(text: str) -> bytes:
    body = (
        f"\n# {text}\n\nVISIBLE {text}\n\n- [unresolved] {text}\n- [x] {text}\n\n```\n{text}\n```\n\n"
        f"| a | b |\n|---|---|\n| {text} | x |\n\n[link](vscode://{text}) ![i](http://127.0.0.1:9/x)\n"
        f"<b>{text}</b>\n- Q1: {text}\n- Blocker: {text}\n"
    )
    return body.encode("utf-8", "surrogatepass")


def _store(path: Path, text: str, everything: bool) -> None:
    """The texts in an agent's database: what it was sent."""
    from acp_core.protocols.wire.write import connect

    db = connect(path)
    tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type='table'")]
    for table in tables:
        columns = db.execute(f"PRAGMA table_info({table})").fetchall()
        names = [column[1] for column in columns]
        keys = " AND ".join(f"{column[1]}=?" for column in columns if column[5])
        for row in db.execute(f"SELECT * FROM {table}").fetchall():
            key = [value for value, column in zip(row, columns, strict=True) if column[5]]
            for name, value in zip(names, row, strict=True):
                held = value.decode() if isinstance(value, bytes) else value
                if isinstance(held, str) and held.startswith("{"):
                    made = _dumped(_changed(json.loads(held), text, everything))
                    new = made if isinstance(value, bytes) else made.decode()
                    db.execute(f"UPDATE {table} SET {name}=? WHERE {keys}", (new, *key))
    db.close()


def assert_text(printed: str, where: str) -> None:
    """Nothing in what was printed is more than text."""
    found = UNSAFE.search(printed)
    assert found is None, f"{where}: {printed[max(0, found.start() - 40) : found.end() + 20]!r}"
    printed.encode()


def cases(place: Path, seed: int) -> Iterator[Case]:
    """Each sign alone in each protocol, then all texts in an order of chance."""
    yield from alone(place)
    yield from mixed(_cases(place), seed)


def alone(place: Path) -> Iterator[Case]:
    """Each sign that does harm by itself, in each protocol, through every export."""
    for kind in places.MAKERS:
        for number in range(_PARTS):
            yield Case(
                f"{kind}: signs alone, part {number + 1}",
                lambda k=kind, n=number: _exports(place, k, ALONE, False, n),
            )


def _cases(place: Path) -> Iterator[Case]:
    """Each text, in each protocol, through every export; then all of them through the screens."""
    for kind in places.MAKERS:
        for number, text in enumerate(HOSTILE):
            for everything in (False, True):
                how = "in every text" if everything else "in texts that decide nothing"
                yield Case(
                    f"{kind}: {text[:24]!r} {how}",
                    lambda k=kind, t=text, e=everything, n=number: _exports(place, k, t, e, n),
                )


def _exports(place: Path, kind: str, text: str, everything: bool, number: int) -> None:
    root = places.copied(kind, place, place / "hostile" / kind)
    poison(root, text, everything)
    snapshot = look(root)
    documents = [document.id for document in snapshot.documents[:3]] if snapshot else []
    # all of them for one text after the other, each text through some of them
    for position, words in enumerate(EXPORTS):
        if position % _PARTS == number % _PARTS:
            _printed(acp(words[0], str(root), *words[1:]), words)
    for document in documents:
        _printed(acp("diff", str(root), document), ("diff",))
    picture = root.parent / "chart.svg"
    if acp("chart", str(root), "--output", str(picture)).code == 0:
        assert_text(picture.read_text(encoding="utf-8"), "chart.svg")


def _printed(ran: Any, words: tuple[str, ...]) -> None:
    for text in (ran.out, ran.err):
        assert_text(text.replace("\r\n", "\n"), " ".join(words))
    if "html" in words and ran.out:
        _Markup().feed(ran.out)
    if "csv" in words:
        assert not re.search(r'(?:^|,)"?[=+@]', ran.out, re.M), "a formula in the CSV report"


class _Markup(HTMLParser):
    """A page as a browser takes it: no element and no attribute of it comes from a text."""

    def __init__(self) -> None:
        super().__init__()
        self._code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("img", "iframe", "object", "embed"), (tag, attrs)
        assert not any(name.startswith("on") for name, _ in attrs), (tag, attrs)
        self._code = tag == "script" and ("type", "application/json") not in attrs

    def handle_data(self, data: str) -> None:
        assert not self._code or "alert(1)" not in data, data[:200]


def screens(place: Path, seed: int) -> Iterator[Case]:
    """All of them, in an order of chance."""
    yield from mixed(_screens(place), seed)


def _screens(place: Path) -> Iterator[Case]:
    """The dashboard and each command on a real pseudo-terminal, with all texts at once."""
    texts = [text for text in HOSTILE if text not in ("\x00", "\ud800")]
    for kind in places.MAKERS:
        for size in ((120, 36), (80, 24)):
            yield Case(
                f"{kind}: the dashboard at {size[0]}x{size[1]}",
                lambda k=kind, s=size: _dashboard(place, k, " ".join(texts), s),
            )
        yield Case(f"{kind}: commands", lambda k=kind: _commands(place, k, " ".join(texts)))
        yield Case(f"{kind}: its folder's name", lambda k=kind: _named(place, k))


def _environment(place: Path) -> dict[str, str]:
    return {"ACP_STATE": str(place / "state"), "ACP_CONFIG": str(place / "config")}


def _on_terminal(
    words: list[str], place: Path, size: tuple[int, int], act: Callable[[Terminal], None]
) -> None:
    command = [sys.executable, "-m", "acp_tui", *words]
    columns, rows = size
    with Terminal(command, env=_environment(place), columns=columns, rows=rows) as terminal:
        act(terminal)
        harmless(bytes(terminal.raw))


def harmless(raw: bytes) -> None:
    """Nothing that a terminal obeys came from the text: no title, no clipboard, no reset."""
    assert b"\x1b]52" not in raw and b"\x1bc" not in raw and b"Traceback" not in raw
    for found in re.finditer(rb"\x1b\][^\x07\x1b]*", raw):
        assert b"pwned" not in found.group(), found.group()
    text = raw.decode("utf-8", "replace")
    for bad in "\x9b\x9d\u202e\u2066\u2069\u200f\u061c\u2028\u2029\x85\x0b\x0c\x1c":
        assert bad not in text, hex(ord(bad))


def _dashboard(place: Path, kind: str, text: str, size: tuple[int, int]) -> None:
    root = places.copied(kind, place, place / "screens" / kind)
    poison(root, text, everything=False)

    def walk(terminal: Terminal) -> None:
        terminal.wait_for("Timeline", timeout=60)
        for keys in _KEYS:
            terminal.send(keys)
            terminal.run(0.15)
            assert not terminal.ended, f"after {keys!r}:\n{terminal.text}"

    _on_terminal([str(root)], place, size, walk)


def _commands(place: Path, kind: str, text: str) -> None:
    root = places.copied(kind, place, place / "screens" / kind)
    poison(root, text, everything=False)
    for words in (
        ["show", str(root)],
        ["status", str(root)],
        ["replay", str(root)],
        ["act", str(root)],
    ):
        _on_terminal(words, place, (100, 30), lambda terminal: _ends(terminal))


def _ends(terminal: Terminal) -> None:
    assert terminal.wait_for_end(60) in (0, 1, 2)


def _named(place: Path, kind: str) -> None:
    """A folder whose name is hostile, seen in the fleet and printed by commands."""
    name = "a[@click=app.quit]b\x1b]0;pwned\x07\u202e\x9b2J\n\udcff"
    if kind == "wire":
        name = "a%1B]0;pwned%07"
    root = places.copied(kind, place, place / "names" / kind / name)
    assert identify(root, bundled()) is not None
    assert_text(acp("status", str(root.parent)).out, "status")
    assert_text(acp("status", str(root.parent), "--json").out, "status --json")
    for command in ("show", "why", "validate", "report", "act", "stats"):
        ran = acp(command, str(root))
        assert_text(ran.out + ran.err, command)

    def walk(terminal: Terminal) -> None:
        terminal.wait_for(" done", timeout=60)
        for keys in ("\x1b[B", "\r", "\x1b", "/", "pwned", "\r", "\x1b"):
            terminal.send(keys)
            terminal.run(0.2)
            assert not terminal.ended, f"after {keys!r}:\n{terminal.text}"

    _on_terminal([str(root.parent)], place, (120, 30), walk)


HOSTILE_TEXT = Campaign(
    "hostile", "hostile text in every field, through every command and export", cases
)
SCREENS = Campaign("screens", "hostile text on every screen of a real pseudo-terminal", screens)
