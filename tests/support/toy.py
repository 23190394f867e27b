"""A complete sixth protocol: people who talk in a folder until somebody says that it is done.

It lives in the tests and proves that a protocol needs nothing but itself: nothing in the
product knows it. A conversation is a folder with

* ``toy.json``: ``{"name", "objective", "people": [...]}`` and, where wanted,
  ``"remind_after"`` (seconds until an unanswered question is overdue), ``"parts"`` and
  ``"continues"`` (relative folders), ``"may_end"`` (who may end it for all), ``"deliverable"`` (a relative file, perhaps elsewhere)
  and ``"bug"`` (reading it raises, as a faulty protocol would);
* ``toy.log``: a line ``TIME WHO KIND TEXT`` per event, KIND being said, asked, answered or
  done; an answer settles the oldest open question;
* ``notes.md``: what they write down.

Tests make one with `make`, write with `say`, and install the protocol with `register`.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core import model
from acp_core.model.action_spec import ActionSpec, Field, Intent, Kind
from acp_core.model.errors import Refused
from acp_core.model.matter import decision
from acp_core.protocols import registry
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit.binding import (
    Context,
    Location,
    bind_all,
    bind_named,
    bound,
    planned,
)
from acp_core.protocols.kit.command import Commands
from acp_core.protocols.kit.values import Values

SETTINGS, LOG, NOTES = "toy.json", "toy.log", "notes.md"
TONES = {
    "said": model.Tone.SUBMIT,
    "asked": model.Tone.REVIEW,
    "answered": model.Tone.ACCEPT,
    "done": model.Tone.DONE,
}

PROTOCOL = registry.Protocol(
    name="toy",
    title="Toy conversation",
    markers=(SETTINGS,),
    detect="tests.support.toy:detect",
    open="tests.support.toy:open_toy",
    create="tests.support.toy:create",
    commands=(
        registry.Command(
            name="toy-say",
            summary="say something in a toy conversation",
            target="tests.support.toy:main_say",
            parser="tests.support.toy:parser_say",
            group="Toy",
        ),
        registry.group("toy", "talk until all is said", "tests.support.toy:COMMANDS", "Toy"),
    ),
    manual="tests.support.toy:COMMANDS.manual",
)

Stat = tuple[int, int, int] | None


# --- what tests do with it -----------------------------------------------------------------


def register(
    monkeypatch: pytest.MonkeyPatch, folder: Path, *, alone: bool = False
) -> dict[str, str]:
    """Install the protocol as another distribution would: by an entry point.

    Args:
        monkeypatch: Undoes it after the test.
        folder: An empty folder that becomes a part of the import path.
        alone: Leave out the protocols that come with acp.

    Returns:
        Environment variables that make it known to a child process too.
    """
    information = folder / "acp_toy-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: acp-toy\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(
        "[acp.protocols]\ntoy = tests.support.toy:PROTOCOL\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    if alone:
        monkeypatch.setattr(registry, "NAMES", ())
    repository = Path(__file__).resolve().parent.parent.parent
    path = [str(folder), str(repository), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, path))}


def make(folder: Path, objective: str = "Choose a colour", **settings: object) -> Path:
    """A new conversation of ann and ben in ``folder``, with notes; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / LOG).write_text("")
    (folder / NOTES).write_text(f"# {objective}\n\nNothing yet.\n")
    described = {"name": folder.name, "objective": objective, "people": ["ann", "ben"]} | settings
    # last: a folder is a conversation from the moment that this file stands there
    (folder / SETTINGS).write_text(json.dumps(described))
    return folder


def say(
    folder: Path, who: str, kind: str, text: str, at: datetime | str = "2026-01-02T03:04:05Z"
) -> None:
    """Append an event to the log of a conversation."""
    if isinstance(at, datetime):
        at = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    with (folder / LOG).open("a", encoding="utf-8") as log:
        log.write(f"{at} {who} {kind} {text}\n")


# --- the protocol --------------------------------------------------------------------------


def detect(folder: Path | str) -> bool:
    """Whether the folder is a conversation."""
    return (Path(folder) / SETTINGS).is_file()


def open_toy(location: str) -> Toy:
    """Open the conversation in the folder ``location``."""
    return Toy(location)


class Toy(Collaboration):
    """One conversation."""

    protocol = "toy"

    def __init__(self, location: str) -> None:
        self.key = location
        self._folder = Path(location)
        self._stats: dict[str, Stat] = {}
        self._settings: dict[str, object] = {}
        self._unreadable = ""
        self._last: model.Snapshot | None = None
        self._events: tuple[model.Event, ...] = ()

    def refresh(self, now: datetime) -> model.Snapshot:
        settings = _stat(self._folder / SETTINGS)
        if settings != self._stats.get(SETTINGS) or not self._settings:
            self._read_settings()
        stats = {name: _stat(path) for name, path in self._texts().items()} | {SETTINGS: settings}
        due = self._last is not None and self._last.recheck_at
        if self._last and stats == self._stats and not (due and due <= now):
            return self._last
        if "bug" in self._settings:
            raise RuntimeError(str(self._settings["bug"]))
        events, findings = _events(self._folder / LOG)
        if events != self._events:
            self._events = events
        self._last, self._stats = self._snapshot(now, findings, stats), stats
        return self._last

    def watched(self) -> frozenset[Path]:
        return frozenset({self._folder, *(path.parent for path in self._texts().values())})

    def load(self, document: str) -> model.DocumentText:
        known = self._last.document(document) if self._last else None
        if known is None or known.path is None:
            raise KeyError(document)
        text = _text(Path(known.path))
        headings = tuple(
            model.Heading(len(line) - len(line.lstrip("#")), line.strip("# "), number)
            for number, line in enumerate(text.split("\n"), 1)
            if line.startswith("#")
        )
        return model.DocumentText(known.id, known.version, text, headings)

    def raw_event(self, event: str) -> str:
        known = next((e for e in self._events if e.id == event), None)
        return json.dumps(known._asdict(), default=str) if known else ""

    def actions(self, now: datetime) -> Sequence[model.Action]:
        return bind_all(ACTS, self, now)

    def action(self, name: str, now: datetime) -> model.Action | None:
        return bind_named(ACTS, name, self, now)

    # the snapshot

    def _read_settings(self) -> None:
        try:
            settings = json.loads((self._folder / SETTINGS).read_text(encoding="utf-8"))
            if not isinstance(settings, dict):
                raise ValueError("not an object")
        except (OSError, ValueError, RecursionError) as error:
            self._unreadable = f"{SETTINGS} cannot be read: {_clean(str(error))}"
        else:
            self._settings, self._unreadable = settings, ""

    def _snapshot(
        self, now: datetime, findings: list[model.Finding], stats: dict[str, Stat]
    ) -> model.Snapshot:
        events, questions = self._events, _open_questions(self._events)
        done = any(event.kind == "done" for event in events)
        people = [str(person) for person in _list(self._settings.get("people"))]
        remind = self._settings.get("remind_after")
        due = [
            question.at + timedelta(seconds=remind)
            for question in questions
            if question.at and isinstance(remind, int | float)
        ]
        overdue = sum(at <= now for at in due)
        waits = f"waiting for an answer to “{questions[0].summary}”" if questions else ""
        headline = "Done." if done else f"Talking{', ' + waits if waits else ''}."
        return model.Snapshot(
            key=self.key,
            protocol=self.protocol,
            dialect="1",
            name=_clean(str(self._settings.get("name", self._folder.name))),
            objective=_clean(str(self._settings.get("objective", ""))),
            location=_clean(self.key),
            as_of=now,
            headline=headline + (f" {overdue} overdue." if overdue else ""),
            status=model.Status.COMPLETED if done else model.Status.ACTIVE,
            phase="done" if done else "talking",
            source=model.Source(model.SourceState.STALE, self._unreadable)
            if self._unreadable
            else model.Source(),
            verdict=model.Verdict.INVALID if findings else model.Verdict.VALID,
            progress=1.0 if done else 0.5,
            phases=_phases(done, events),
            participants=tuple(
                model.Participant(_clean(person), "agent", "talker") for person in people
            ),
            turns=tuple(model.Turn(q.actor, "wait for an answer", q.at, q.id) for q in questions),
            next_actions=tuple(
                model.NextAction(_clean(person), "talk", not done) for person in people
            ),
            events=events,
            documents=self._documents(stats),
            gates=(model.Gate("every question is answered", not questions, LOG),),
            findings=tuple(findings),
            needs=tuple(
                decision(
                    f"question:{q.id}",
                    "TOY_ASKED",
                    f"{q.actor} asks: {q.summary}",
                    q.actor,
                    q.at,
                    "answer",
                )
                for q in questions
            ),
            panels=(_panel(events, questions),),
            parts=tuple(
                str(self._folder / str(part)) for part in _list(self._settings.get("parts"))
            ),
            lineage=self._lineage(),
            started=events[0].at if events else None,
            changed=events[-1].at if events else None,
            recheck_at=min((at for at in due if at > now), default=None),
        )

    def _texts(self) -> dict[str, Path]:
        names = [NOTES, LOG, SETTINGS]
        deliverable = self._settings.get("deliverable")
        if isinstance(deliverable, str):
            names.insert(1, deliverable)
        return {name: Path(os.path.normpath(self._folder / name)) for name in names}

    def _documents(self, stats: dict[str, Stat]) -> tuple[model.Document, ...]:
        described = {
            SETTINGS: ("Settings", "json", "state"),
            LOG: ("Log", "text", "state"),
            NOTES: ("Notes", "markdown", "document"),
        }
        documents = []
        for name, path in self._texts().items():
            title, kind, group = described.get(name, (_clean(name), "markdown", "deliverable"))
            stat = stats[name]
            documents.append(
                model.Document(
                    id=_clean(name),
                    title=title,
                    kind=kind,
                    group=group,
                    path=str(path),
                    size=stat[1] if stat else None,
                    changed=datetime.fromtimestamp(stat[0] / 1e9, UTC) if stat else None,
                    version="/".join(map(str, stat or ())),
                    state="present" if stat else "missing",
                )
            )
        return tuple(documents)

    def _lineage(self) -> tuple[model.Link, ...]:
        before = self._settings.get("continues")
        if not isinstance(before, str):
            return ()
        folder = Path(os.path.normpath(self._folder / before))
        return (model.Link("continues", str(folder), _clean(folder.name), detect(folder)),)


# --- its acts ------------------------------------------------------------------------------

ANSWER = ActionSpec(
    "answer",
    "Answer",
    "Answer the oldest open question.",
    "tests.support.toy:bind_answer",
    (
        Field("who", "Who", "In whose name.", default="you", required=True),
        Field("text", "Answer", "What you say to it.", required=True),
    ),
    Intent.ANSWER,
    command="toy answer",
    examples=('acp toy answer talk --text "Blue"',),
)
CREATE = ActionSpec(
    "create",
    "New conversation",
    "Start a conversation.",
    "tests.support.toy:bind_create",
    (Field("objective", "Objective", "What it is about.", required=True),),
    Intent.CREATE,
    command="toy create",
    examples=('acp toy create talk --objective "Choose a colour"',),
)


def bind_answer(context: Context, now: datetime) -> model.Action:
    """Answer the oldest question, as long as one is open."""
    log = Path(context.key) / LOG
    asked = _open_questions(_events(log)[0])

    def plan(values: Values) -> str:
        if not _open_questions(_events(log)[0]):
            raise Refused("nothing is asked any more")
        return _line(values.who, "answered", values.text)

    def perform(values: Values) -> model.Outcome:
        _append(log, plan(values))
        return model.Outcome(model.OutcomeState.DONE, "Answered.")

    def preview(values: Values) -> model.Preview:
        change = model.Change(str(log), "append", f"+{plan(values)}")
        return model.Preview(f"Answers as {_clean(values.who)}.", (change,))

    sentence = f"Answer “{asked[0].summary}”." if asked else ""
    return bound(ANSWER, context, preview, perform, sentence=sentence, offered=bool(asked))


def create(folder: Path | str) -> model.Action:
    """The action that starts a conversation in ``folder``."""
    return bind_create(Location(str(folder)), datetime.now(UTC))


def bind_create(context: Context, now: datetime) -> model.Action:
    """Start a conversation in a folder that holds none."""
    place = Path(context.key)

    def preview(values: Values) -> model.Preview:
        if detect(place):
            raise Refused("there is a conversation already")
        change = model.Change(str(place / SETTINGS), "create", f"+{_clean(values.objective)}\n")
        return model.Preview(f"Starts a conversation in {_clean(str(place))}.", (change,))

    def perform(values: Values) -> model.Outcome:
        preview(values)
        make(place, values.objective)
        return model.Outcome(model.OutcomeState.DONE, "Started.", str(place))

    return bound(CREATE, context, preview, perform)


# An act as contributors add one: this is all that it takes.
END = ActionSpec(
    "end",
    "End",
    "End the conversation for all.",
    "tests.support.toy:bind_end",
    (
        Field("who", "Who", "Name who ends it.", Kind.CHOICE, required=True, position=True),
        Field("reason", "Reason", "Say why.", Kind.LINES, required=True, aliases=("--because",)),
    ),
    Intent.STOP_EVERYTHING,
    risky=True,
    command="toy end",
    aliases=("close_down",),
    examples=('acp toy end talk ann --reason "All is said"',),
)


def bind_end(context: Context, now: datetime) -> model.Action:
    """End a conversation whose people may do that."""
    log, settings = Path(context.key) / LOG, _settings(context.key)
    people = tuple(map(str, _list(settings.get("may_end"))))

    def plan(values: Values) -> str:
        if values.who not in people:
            raise Refused(f"{values.who} may not end it")
        return _line(values.who, "done", values.reason)

    def show(line: str) -> model.Preview:
        return model.Preview("Ends it.", (model.Change(str(log), "append", f"+{line}"),))

    return planned(
        END,
        context,
        plan,
        show,
        lambda again: _append(log, again()),
        narrowed={"who": {"choices": people}},
        offered=bool(people),
    )


ACTS = (ANSWER, END)
COMMANDS = Commands("toy", "Talk until all is said.", (CREATE, *ACTS), "acp.toy/1")


def _append(log: Path, line: str) -> str:
    with log.open("a", encoding="utf-8") as file:
        file.write(line)
    return line


def _settings(location: str) -> dict[str, object]:
    try:
        settings = json.loads((Path(location) / SETTINGS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return settings if isinstance(settings, dict) else {}


def parser_say() -> argparse.ArgumentParser:
    """The arguments of ``acp toy-say``."""
    parser = argparse.ArgumentParser(prog="acp toy-say", description="Say something.")
    parser.add_argument("folder", help="the conversation's folder")
    parser.add_argument("text", help="what to say")
    return parser


def main_say(arguments: Sequence[str]) -> int:
    """``acp toy-say FOLDER TEXT``: 0, or 2 where the folder is no conversation."""
    given = parser_say().parse_args(list(arguments))
    folder = Path(given.folder)
    if not detect(folder):
        print(f"{_clean(given.folder)} is no conversation")
        return 2
    say(folder, "you", "said", given.text)
    print("said")
    return 0


def _panel(events: tuple[model.Event, ...], questions: list[model.Event]) -> model.Panel:
    waiting = {question.id for question in questions}
    rows = tuple(
        model.Row(
            (event.actor, event.summary),
            checked=event.id not in waiting,
            target=model.Target(event=event.id),
        )
        for event in events
        if event.kind == "asked"
    )
    return model.Panel(
        "questions", "Questions", "checklist", ("who", "question"), rows, "Nobody asked anything."
    )


def _phases(done: bool, events: tuple[model.Event, ...]) -> tuple[model.Phase, ...]:
    start = events[0].at if events else None
    end = next((event.at for event in events if event.kind == "done"), None)
    talking, over = (
        (model.PhaseState.DONE, model.PhaseState.CURRENT)
        if done
        else (model.PhaseState.CURRENT, model.PhaseState.AHEAD)
    )
    return (
        model.Phase("talking", "talking", talking, (model.Visit(start, end),)),
        model.Phase("done", "done", over, (model.Visit(end, None),) if done else ()),
    )


def _open_questions(events: tuple[model.Event, ...]) -> list[model.Event]:
    waiting: list[model.Event] = []
    for event in events:
        if event.kind == "asked":
            waiting.append(event)
        elif event.kind == "answered" and waiting:
            waiting.pop(0)
    return waiting


def _events(log: Path) -> tuple[tuple[model.Event, ...], list[model.Finding]]:
    events: list[model.Event] = []
    findings: list[model.Finding] = []
    complete = _text(log).split("\n")[:-1]  # what follows the last newline is not there yet
    for number, line in enumerate(complete, 1):
        words = line.split(" ", 3)
        try:
            at = datetime.fromisoformat(words[0])
            _, who, kind, text = words
            tone = TONES[kind]
            if at.tzinfo is None:
                raise ValueError("a time without its zone")
        except (ValueError, KeyError):
            message = f"line {number} is not TIME WHO KIND TEXT"
            findings.append(model.Finding("TOY001", model.Severity.ERROR, message, LOG, number))
            continue
        events.append(
            model.Event(
                id=str(number),
                order=number,
                source=LOG,
                kind=kind,
                tone=tone,
                actor=who,
                at=at,
                at_source="recorded",
                summary=text,
                document=LOG,
                line=number,
            )
        )
    return tuple(events), findings


def _line(who: str, kind: str, text: str) -> str:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{now} {''.join(who.split()) or 'you'} {kind} {' '.join(text.split())}\n"


def _stat(path: Path) -> Stat:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def _text(path: Path) -> str:
    try:
        return _clean(path.read_bytes().decode("utf-8", "replace"), keep="\n\t")
    except OSError:
        return ""


def _clean(text: str, keep: str = "") -> str:
    return "".join(c if c.isprintable() or c in keep else "\ufffd" for c in text)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
