"""A scenario: who takes part, what they decide, and every step with the texts that it writes.

One TOML file each. With it, what somebody who plays it reads before writing, and how a text becomes
another one in front of a reader.

For pictures of the dashboard and for tests that want real data also a fleet of collaborations that stand
at different points, made in a moment by the very acts that agents use, with times that go back from a
given one. Nothing runs afterwards.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import SequenceMatcher
from itertools import accumulate, cycle, islice
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.deliverables import DEFAULT_DIR
from acp_core.protocols.folder.schema.records import V1, list_in
from acp_core.protocols.folder.write.append import Request, append
from acp_core.protocols.folder.write.init import Wish, initialise

SCENARIOS = Path(__file__).with_name("scenarios")
"""The ones that a demo plays."""

FLEET = Path(__file__).with_name("fleet")
"""Shorter ones, for a fleet in which collaborations stand at different points."""


@dataclass(frozen=True, slots=True)
class Write:
    """One change of one file, made in stages that take ``seconds`` in all.

    ``text`` is the whole new content; or ``find`` is replaced by ``replace``; or, with
    ``tick``, every empty check box is checked.
    """

    file: str
    text: str | None = None
    find: str = ""
    replace: str = ""
    tick: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Step:
    """One turn: think, write, append the event.

    ``reply_to`` names a kind of event: the latest of that kind is replied to. ``review`` is
    a text that goes into review.md together with the event. ``freeze`` records the
    document's SHA-256 with the event.
    """

    by: str
    event: str
    reply_to: str
    doc: str
    summary: str
    think: float = 0.0
    writes: tuple[Write, ...] = ()
    review: str | None = None
    role: str | None = None
    freeze: bool = False


@dataclass(frozen=True, slots=True)
class Deliverable:
    """The primary deliverable of a scenario in dialect v2; ``file`` is relative to ``deliverables``."""

    type: str
    file: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """A whole collaboration, as it is going to happen."""

    name: str
    objective: str
    dialect: str
    participants: tuple[str, ...]
    gates: tuple[str, ...]
    steps: tuple[Step, ...]
    deliverable: Deliverable | None = None

    def steps_of(self, participant: str) -> tuple[Step, ...]:
        """The steps of one participant, in order."""
        return tuple(step for step in self.steps if step.by == participant)


def names() -> list[str]:
    """The scenarios that a demo can play, by name."""
    return sorted(path.stem for path in SCENARIOS.glob("*.toml"))


def load(name: str, folder: Path = SCENARIOS) -> Scenario:
    """The scenario of this name, out of `SCENARIOS` or `FLEET`.

    Raises:
        FileNotFoundError: there is none.
        KeyError: a step names a text that the file does not hold.
        TypeError: the file has a field that no scenario has.
    """
    with (folder / f"{name}.toml").open("rb") as file:
        return _scenario(name, tomllib.load(file))


def _scenario(name: str, data: dict[str, Any]) -> Scenario:
    texts: Mapping[str, str] = data.pop("texts", {})
    deliverable = data.pop("deliverable", None)
    return Scenario(
        name=name,
        objective=data.pop("objective"),
        dialect=data.pop("dialect", V1),
        participants=tuple(data.pop("participants")),
        gates=tuple(data.pop("gates")),
        steps=tuple(_step(step, texts) for step in data.pop("steps")),
        deliverable=Deliverable(**deliverable) if deliverable else None,
        **data,
    )


def _step(data: dict[str, Any], texts: Mapping[str, str]) -> Step:
    writes = tuple(_write(write, texts) for write in data.pop("writes", ()))
    review = data.pop("review", None)
    return Step(writes=writes, review=texts[review] if review else None, **data)


def _write(data: dict[str, Any], texts: Mapping[str, str]) -> Write:
    text = data.pop("text", None)
    return Write(text=texts[text] if text else None, **data)


class PlayedScenario:
    """A scenario beside the folder in which it is played."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self._scenario = scenario
        self._folder = folder

    def events(self) -> list[tuple[int, str, str]]:
        """Seq, kind and author of every event.

        Raises:
            OSError, ValueError, KeyError: the log cannot be read, or is not what the commands write.
        """
        lines = (self._folder / records.LOG_FILE).read_bytes().split(b"\n")[:-1]
        events: list[dict[str, Any]] = [json.loads(line) for line in lines if line.strip()]
        return [(event["seq"], event["event"], event["from"]) for event in events]

    def latest(self, event: str) -> int:
        """The seq of the latest event of a kind.

        Raises:
            LookupError: there is none.
        """
        found = [seq for seq, kind, _ in self.events() if kind == event]
        if not found:
            raise LookupError(f"there is no {event} to reply to")
        return found[-1]

    def edit(self, write: Write, reply_to: int) -> tuple[Path, str, str]:
        """The file that ``write`` changes, its text now, and its text afterwards.

        Raises:
            OSError, ValueError: the file is not what the scenario expects.
        """
        path = self._folder / write.file
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        return path, old, result(write, old, self._values(reply_to))

    def fill(self, text: str, reply_to: int) -> str:
        """A text of the scenario with its ``$names`` filled in."""
        return fill(text, self._values(reply_to))

    def sha256(self) -> str:
        """The SHA-256 of the primary deliverable as it stands; "" where there is none."""
        deliverable = self._scenario.deliverable
        if deliverable is None:
            return ""
        path = self._folder / DEFAULT_DIR / deliverable.file
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""

    def _values(self, reply_to: int) -> dict[str, str]:
        """What the ``$names`` of a text stand for, now."""
        protocol = records.decode_protocol((self._folder / records.PROTOCOL_FILE).read_bytes())
        return {
            **gate_lists(protocol),
            "objective": self._scenario.objective,
            "reply_to": str(reply_to),
            "sha256": self.sha256(),
        }


_EMPTY_BOX = re.compile(r"^(\s*- )\[ \]", re.MULTILINE)


def result(write: Write, text: str, values: Mapping[str, str]) -> str:
    """What ``write`` makes of a file that holds ``text``; ``values`` fill in its ``$names``.

    Raises:
        KeyError: a text names a value that there is none of.
        ValueError: what is to be replaced does not stand in the file.
    """
    if write.tick:
        return _EMPTY_BOX.sub(r"\1[x]", text)
    if write.text is not None:
        return fill(write.text, values)
    if not write.find or write.find not in text:
        raise ValueError(f"{write.file} does not hold {write.find!r}")
    return text.replace(write.find, fill(write.replace, values), 1)


def fill(text: str, values: Mapping[str, str]) -> str:
    """``text`` with its ``$names`` filled in.

    Raises:
        KeyError: it names a value that there is none of.
    """
    return Template(text).substitute(values)


def stages(old: str, new: str) -> list[str]:
    """The texts between ``old`` and ``new``, from the top down; the last one is ``new``.

    Lines that change one for one change one at a time; what is new comes paragraph by
    paragraph. Empty where nothing changes.
    """
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    found: list[str] = []
    done: list[str] = []
    for tag, i, i_end, j, j_end in SequenceMatcher(None, before, after, False).get_opcodes():
        if tag == "equal":
            done += after[j:j_end]
            continue
        one_for_one = i_end - i == j_end - j
        pieces = ([line] for line in after[j:j_end]) if one_for_one else _paragraphs(after[j:j_end])
        gone = i
        for piece in pieces:
            done += piece
            gone = gone + 1 if one_for_one else i_end
            found.append("".join(done + before[gone:]))
        if tag == "delete":
            found.append("".join(done + before[i_end:]))
    return found


def _paragraphs(lines: Iterable[str]) -> Iterator[list[str]]:
    """Lines up to and with the blank ones that end each paragraph."""
    paragraph: list[str] = []
    ended = False
    for line in lines:
        if ended and line.strip():
            yield paragraph
            paragraph = []
        paragraph.append(line)
        ended = not line.strip()
    if paragraph:
        yield paragraph


def gate_lists(protocol: dict[str, Any]) -> dict[str, str]:
    """The completion gates of a protocol.json as check lists, by the names that texts use.

    ``gates`` are all of them; in dialect v2 ``objective_gates``
    and ``generated_gates`` are those of each source.
    """
    gates = [
        (item.get("source", ""), item.get("text", "")) if isinstance(item, dict) else ("", item)
        for item in list_in(protocol, "completionGates")
    ]
    lists = {
        "gates": [text for _, text in gates],
        "objective_gates": [text for source, text in gates if source == "objective"],
        "generated_gates": [text for source, text in gates if source == "generated"],
    }
    return {name: "\n".join(f"- [ ] {text}" for text in texts) for name, texts in lists.items()}


GAPS = (11, 7, 16, 4, 9, 23, 3, 14)  # minutes between two events, over and over


class Exhibit(NamedTuple):
    """One collaboration of the fleet.

    Attributes:
        name: of its folder and of its scenario.
        source: the folder that holds the scenario.
        ago: minutes since its last event.
        steps: how many steps have happened; None for all.
        humans: participants who are people.
        finish: what happens to the folder afterwards, given the time of the last event.
        spoil: what happens around the last step: given the folder before it, returns what to do after.
    """

    name: str
    source: Path
    ago: int
    steps: int | None = None
    humans: tuple[str, ...] = ()
    finish: Callable[[Path, datetime], None] | None = None
    spoil: Callable[[Path], Callable[[], None]] | None = None


def lag(folder: Path) -> Callable[[], None]:
    """Let protocol.json stay behind the log, as a kill between the two leaves it."""
    path = folder / records.PROTOCOL_FILE
    before = path.read_bytes()
    return lambda: _put(path, before)


def write_by_hand(folder: Path, last: datetime) -> None:
    """Append an event by hand: a number left out, and no heading in review.md."""
    at = last + timedelta(minutes=12)
    event = {
        "seq": 4,
        "from": "dashboards",
        "event": "review_submitted",
        "at": records.format_time(at),
        "summary": "Looks good to me.",
        "doc": "review.md",
        "reply_to": 2,
    }
    with (folder / records.LOG_FILE).open("ab") as log:
        log.write(records.encode_event(event))
    _stamp(folder / records.LOG_FILE, at)


def change_conclusion(folder: Path, last: datetime) -> None:
    """Change conclusion.md although the collaboration is completed."""
    at = last + timedelta(minutes=95)
    path = folder / "conclusion.md"
    text = path.read_text(encoding="utf-8")
    _put(path, text.replace("once per request.", "once per request, or once a minute.").encode())
    _stamp(path, at)


EXHIBITS = (
    Exhibit("session-tokens", FLEET, ago=47),
    Exhibit("index-rebuild", FLEET, ago=26, humans=("lead",)),
    Exhibit("metric-names", FLEET, ago=33, finish=write_by_hand),
    Exhibit("log-retention", FLEET, ago=9, spoil=lag),
    Exhibit("order-retries", SCENARIOS, ago=8, steps=5),
    Exhibit("webhook-signatures", FLEET, ago=6),
    Exhibit("build-cache", FLEET, ago=2),
    Exhibit("page-cursors", SCENARIOS, ago=190),
    Exhibit("config-reload", FLEET, ago=1_520, finish=change_conclusion),
    Exhibit("column-rename", FLEET, ago=4_300),
)


def make_fleet(folder: Path, now: datetime) -> dict[str, Path]:
    """Make every collaboration of `EXHIBITS` below ``folder``; returns their folders by name.

    Args:
        folder: where; it need not exist.
        now: the time from which their times go back.
    """
    return {each.name: make(each, folder / each.name, now) for each in EXHIBITS}


def make(exhibit: Exhibit, folder: Path, now: datetime) -> Path:
    """Make one collaboration in ``folder``, which must not exist yet; returns ``folder``."""
    scenario = load(exhibit.name, exhibit.source)
    steps = scenario.steps[: exhibit.steps]
    times = _times(now - timedelta(minutes=exhibit.ago), len(steps))
    start(scenario, folder, times[0], exhibit.humans)
    for step, at in zip(steps, times[1:], strict=True):
        spoil = exhibit.spoil if step is steps[-1] else None
        after = spoil(folder) if spoil else None
        take(step, scenario, folder, at)
        if after:
            after()
    _stamp(folder / records.PROTOCOL_FILE, times[-1])
    _stamp(folder / records.LOG_FILE, times[-1])
    if exhibit.finish:
        exhibit.finish(folder, times[-1])
    return folder


def _times(last: datetime, steps: int) -> list[datetime]:
    """When it began and when each step happened, up to ``last``."""
    gaps = islice(cycle(GAPS), steps)
    back = list(accumulate(gaps, initial=0))
    return [last - timedelta(minutes=minutes) for minutes in reversed(back)]


def start(scenario: Scenario, folder: Path, at: datetime, humans: tuple[str, ...] = ()) -> None:
    """Start the collaboration of a scenario at a given time."""
    deliverable = scenario.deliverable
    wish = Wish(
        objective=scenario.objective,
        participants=scenario.participants,
        gates=scenario.gates,
        type=deliverable.type if deliverable else None,
        file=deliverable.file if deliverable else None,
    )
    initialise(str(folder), wish, now=lambda: at)
    path = folder / records.PROTOCOL_FILE
    if humans:
        protocol = json.loads(path.read_bytes())
        for participant in protocol["participants"]:
            if participant["id"] in humans:
                participant["kind"] = "human"
        _put(path, records.encode_protocol(protocol))
    for file in folder.rglob("*"):
        _stamp(file, at)


def take(step: Step, scenario: Scenario, folder: Path, at: datetime) -> None:
    """Do one step of a scenario at a given time."""
    played = PlayedScenario(scenario, folder)
    reply_to = played.latest(step.reply_to)
    for write in step.writes:
        path, _, text = played.edit(write, reply_to)
        _put(path, text.encode())
        _stamp(path, at)
    request = Request(
        folder=str(folder),
        participant=step.by,
        event=step.event,
        summary=step.summary,
        doc=step.doc,
        reply_to=reply_to,
        role=step.role,
        sha256=played.sha256() if step.freeze else None,
        review=None if step.review is None else played.fill(step.review, reply_to),
    )
    append(request, now=lambda: at)
    if step.review is not None:
        _stamp(folder / "review.md", at)


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)


def _stamp(path: Path, at: datetime) -> None:
    seconds = at.astimezone(UTC).timestamp()
    os.utime(path, (seconds, seconds))
