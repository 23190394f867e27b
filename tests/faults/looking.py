"""Everything that acp reads of a collaboration, asked for at once: it never raises, and all is safe."""

from __future__ import annotations

import contextlib
import dataclasses
import io
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.model import Document, Link, Row, Snapshot
from acp_core.model.text import clean
from acp_core.protocols import registry
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from acp_tui.__main__ import main

FAULT = "this should not happen"  # what acp says where a fault of its own was caught
_UNALTERED = {Snapshot: {"key", "parts"}, Document: {"path"}, Link: {"location"}}


def opened(root: Path) -> Collaboration | None:
    """The collaboration in a folder, found as discovery finds it; None where there is none."""
    names = {path.name for path in root.iterdir()}
    for protocol in registry.bundled():
        if not names.isdisjoint(protocol.markers) and registry.load(protocol.detect)(root):
            collaboration: Collaboration = registry.load(protocol.open)(str(root))
            return collaboration
    return None


def look(root: Path, now: datetime | None = None) -> Snapshot | None:
    """What is read of a folder; None where no collaboration is seen in it.

    Raises:
        Exception: whatever a reader raised, which is a fault.
        AssertionError: something in it is not safe to show, or two looks differ.
    """
    collaboration = opened(root)
    if collaboration is None:
        return None
    try:
        return ask(collaboration, now or datetime.now(UTC))
    finally:
        collaboration.close()


def ask(collaboration: Collaboration, now: datetime) -> Snapshot:
    """Ask an open collaboration for all that it can tell."""
    snapshot = collaboration.refresh(now)
    assert collaboration.refresh(now) == snapshot, "nothing changed, and another Snapshot came"
    collaboration.watched()
    collaboration.tracked_files()
    collaboration.story()
    collaboration.turn_signs()
    list(collaboration.actions(now))
    causes = list(collaboration.causes(DiagnosisContext(snapshot, Clock(now))))
    for event in snapshot.events[-30:]:
        assert_safe(collaboration.raw_event(event.id))
    for document in snapshot.documents:
        loaded = collaboration.load(document.id)
        assert clean(loaded.text) == loaded.text, document.id
    for participant in snapshot.participants[:10]:
        collaboration.durations(participant.id)
        collaboration.turn(participant.id, now)
    for value in (snapshot, causes):
        for text in strings(value):
            assert_safe(text)
    return snapshot


def assert_safe(text: str) -> None:
    """A text of one line that a terminal takes for nothing but text."""
    assert clean(text) == text and "\n" not in text, repr(text[:200])


def strings(value: object) -> Iterator[str]:
    """Every text that is shown; what names things for programs is left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Row):
        yield from strings(value.cells)  # its target names things
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            if field.name not in _UNALTERED.get(type(value), ()):
                yield from strings(getattr(value, field.name))
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from strings(inner)


class Ran(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


def acp(*words: str, most: int = 2) -> Ran:
    """Run ``acp`` in this process.

    Raises:
        AssertionError: a fault of acp's own shows, the exit code is none that it may have, or what
            went wrong is not said.
    """
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(words))
    ran = Ran(code, out.getvalue(), err.getvalue())
    assert FAULT not in ran.err and "Traceback" not in ran.err + ran.out, (words, ran.err)
    assert 0 <= code <= most, (words, ran)
    if code == 2:
        assert ran.err or ran.out, (words, "nothing was said")
    return ran
