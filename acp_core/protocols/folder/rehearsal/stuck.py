"""Collaborations that get stuck on purpose, each for another reason, with real loops and programs.

This module is also the program that takes one turn of a story, as an agent's program would; or gets into
trouble. A loop runs it and gives it the turn's prompt on its standard input. Who it is and where it works
it takes from the commands that the prompt names, so that it can take anybody's turn. It prints records as
agents' programs do. The troubles are real ones, in real processes and files. With ``--alone`` it waits for
its turns itself, as older programs did: by what protocol.json says.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from acp_core.agents.presets import Preset
from acp_core.agents.processes import waiting_processes
from acp_core.files import atomic
from acp_core.model.action_spec import Field, Kind, QuerySpec
from acp_core.model.clock import utc_now
from acp_core.person.paths import state_folder
from acp_core.protocols.folder.rehearsal.rehearse import Player, Stuck, begin, run
from acp_core.protocols.folder.rehearsal.scenario import Scenario, Step, load
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.records import list_in
from acp_core.protocols.folder.write.append import Request, prepare
from acp_core.protocols.folder.write.opened import lock, open_locked
from acp_core.protocols.kit.parser import parse
from acp_core.rehearsal import RehearsalError, Role, Story

PLAYER = "acp_core.protocols.folder.rehearsal.stuck"


class _Plot(NamedTuple):
    """What goes wrong in a story.

    Attributes:
        title: for people.
        code: of the cause that is found.
        by, at: whose program gets into trouble, and at which event.
        alone: the reader waits for its turns itself.
        forgotten: the reader is not launched.
        twice: a second process acts for the reader.
        retries: how often a loop tries a turn again.
        answers: what the remedy asks a person for.
    """

    title: str
    code: str
    by: str = "reader"
    at: str = "review_submitted"
    alone: bool = False
    forgotten: bool = False
    twice: bool = False
    retries: int = 0
    answers: Mapping[str, str] = {}


_PLOTS = {
    "killed": _Plot("a loop and its agent are killed", "B2", retries=1),
    "idle": _Plot("an agent ends without doing anything", "B3"),
    "refused": _Plot("an agent may not run commands", "B3"),
    "hanging": _Plot("an agent produces no more output", "B9"),
    "retrying": _Plot("an agent cannot reach its model service", "B5"),
    "login": _Plot("an agent is not logged in", "B4"),
    "lingering": _Plot("an agent does not exit after its work", "B12"),
    "torn": _Plot("a line of the log is half written", "A1"),
    "lagging": _Plot(
        "protocol.json is out of date with the log", "A4", "server", "proposal_submitted", True
    ),
    "heading": _Plot("a review has no heading in review.md", "C2"),
    "gate": _Plot("a completion gate is not checked", "D5", "server", "readiness_passed"),
    "blocked": _Plot(
        "a participant asks for a decision",
        "E1",
        answers={"answer": "Sales says: a minute is fine."},
    ),
    "duplicate": _Plot("two loops act for one participant", "B13", twice=True),
    "belief": _Plot("an agent waits for the wrong participant", "B10", alone=True),
    "forgotten": _Plot("a participant was never started", "B1", forgotten=True),
}

NAMES: Mapping[str, str] = {name: plot.title for name, plot in _PLOTS.items()}
"""Every story by its name, with its title."""


def tell(name: str, folder: Path | None = None, *, speed: float = 1.0) -> Story:
    """Make the collaboration of a story; nobody acts in it yet.

    Args:
        name: one of `NAMES`.
        folder: where; it need not exist. None: in a new temporary folder, which is kept.
        speed: how many times as fast as written in the story.

    Raises:
        RehearsalError: there is no such story, or a folder cannot be written.
    """
    if name not in _PLOTS:
        raise RehearsalError(f"unknown cause {name!r} (causes: {', '.join(_PLOTS)})")
    plot = _PLOTS[name]
    drafts = state_folder() / "demo" / f"{utc_now():%Y-%m-%d-%H%M%S}-{os.getpid()}-{name}"
    try:
        atomic.private_folder(drafts)
        place = folder or Path(tempfile.mkdtemp(prefix="acp-demo-"), f"stuck-{name}")
    except OSError as error:
        raise RehearsalError(f"no folder for a rehearsal: {error}") from None
    place = Path(os.path.abspath(place))
    begin(load("story", STORY), place)
    return Story(
        name=name,
        title=plot.title,
        location=str(place),
        code=plot.code,
        roles=tuple(_role(plot, name, who, drafts, speed) for who in ("server", "reader")),
        answers=plot.answers,
    )


def _role(plot: _Plot, name: str, who: str, drafts: Path, speed: float) -> Role:
    words = ["-P", "-m", PLAYER, "--drafts", str(drafts), "--speed", f"{speed:g}"]
    if plot.by == who:
        words += ["--trouble", name, "--at", plot.at, "--once", str(drafts / "once")]
    alone = plot.alone and who == "reader"
    if alone:
        words.append("--alone")
    preset = Preset(
        "stand-in",
        title="a stand-in for an agent",
        program=sys.executable,
        args=tuple(words),
        stream="claude",
        env={"PYTHONUTF8": "1"},
    )
    return Role(
        participant=who,
        preset=preset,
        alone=alone,
        launched=not (plot.forgotten and who == "reader"),
        twice=plot.twice and who == "reader",
        retries=plot.retries,
    )


STORY = Path(__file__).with_name("troubles")


def read_prompt(prompt: str) -> tuple[str, str]:
    """Folder and participant, as the commands in the prompt have them.

    Raises:
        Stuck: it names none.
    """
    for line in prompt.splitlines():
        if "--participant" in line and "--folder" in line:
            words = shlex.split(line)
            return words[words.index("--folder") + 1], words[words.index("--participant") + 1]
    raise Stuck("the prompt names no command")


def play(part: Part, trouble: str, at: str, once: Path | None, alone: bool) -> None:
    """Take one turn, or (alone) all of them; get into trouble where that is asked for.

    Raises:
        Stuck: an event was refused.
    """
    while True:
        blind = trouble == "belief" and is_first(once)
        if alone and not part.wait_as_believed(look_again=not blind):
            return
        step = part.next_step()
        if step is None:
            speak("There is nothing for me to do.")
            return
        if trouble in TROUBLES and step.event == at and is_first(once):
            TROUBLES[trouble](part, step)
        else:
            part.take(step)
        if not alone:
            return


def is_first(once: Path | None) -> bool:
    """Whether the trouble comes now for the first time."""
    if once is None:
        return False
    try:
        once.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


_SPEC = QuerySpec(
    "rehearsal",
    "Play a participant of a rehearsal that gets stuck.",
    fields=(
        Field("drafts", help="Folder for private drafts.", kind=Kind.FOLDER, required=True),
        Field("speed", help="How many times as fast.", kind=Kind.DECIMAL, default=1.0),
        Field("trouble", help="What goes wrong."),
        Field("at", help="The event at which the trouble comes."),
        Field("once", help="A file that says that it came already.", kind=Kind.FILE),
        Field("alone", help="Take all turns.", kind=Kind.FLAG),
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run once. Returns 1 where an event was refused."""
    given = parse(_SPEC, _SPEC.name, sys.argv[1:] if argv is None else argv)
    record(type="system", subtype="init", model="none", session_id="rehearsal")
    try:
        folder, name = read_prompt(sys.stdin.read())
        speak(f"I am {name}. I read the documents.")
        part = Part(load("story", STORY), name, Path(folder), Path(given.drafts), given.speed)
        once = Path(given.once) if given.once else None
        play(part, given.trouble, given.at, once, given.alone)
    except (Stuck, OSError, ValueError, LookupError) as error:
        speak(f"I cannot continue: {error}")
        finish("My event is not recorded.")
        return 1
    finish("Done.")
    return 0


_OVER = ("completed", "blocked")


class Part(Player):
    """One participant of the story, at work in a folder."""

    def __init__(
        self, scenario: Scenario, name: str, folder: Path, drafts: Path, speed: float
    ) -> None:
        super().__init__(scenario, name, folder, drafts, speed)
        self.name, self.folder, self.speed = name, folder, speed

    def _acp(self, command: str, *options: str) -> tuple[int, str]:
        """Run one command of acp as this participant, and tell of it in records."""
        words = [command, "--folder", str(self.folder), "--participant", self.name, *options]
        use = {"type": "tool_use", "id": "1", "name": "Bash"}
        record(
            type="assistant",
            message={
                "id": "m",
                "content": [use | {"input": {"command": shlex.join(["acp", *words])}}],
            },
        )
        code, output = run(*words)
        result = {"type": "tool_result", "tool_use_id": "1", "content": output}
        record(type="user", message={"content": [result]})
        return code, output

    def next_step(self) -> Step | None:
        """The step that comes next for this participant."""
        return self._next_step()

    def take(self, step: Step) -> None:
        """Do a step.

        Raises:
            Stuck: its event was refused.
        """
        self._take_turn(step)

    def write_up(self, step: Step) -> int:
        """Only the documents of a step; returns the seq that it replies to."""
        self._pause(step.think)
        reply_to = self._played.latest(step.reply_to)
        for write in step.writes:
            self._write(write, reply_to)
        return reply_to

    def append(self, event: str, summary: str, reply_to: int, doc: str) -> None:
        """Append an event.

        Raises:
            Stuck: it was refused.
        """
        self._append(event, summary, "--reply-to", str(reply_to), "--doc", doc)

    def believed(self) -> dict[str, object]:
        """What protocol.json says now."""
        data = atomic.read_bounded(self.folder / records.PROTOCOL_FILE, records.MAX_PROTOCOL)
        return records.decode_protocol(data)

    def last_seq(self) -> int:
        """The seq of the last event."""
        return self._played.events()[-1][0]

    def wait_as_believed(self, *, look_again: bool = True) -> bool:
        """Wait for the turn by protocol.json; False when that says that all is over.

        Args:
            look_again: False: look at it once, and believe that for ever.
        """
        said = ""
        protocol = self.believed()
        while True:
            if look_again:
                protocol = self.believed()
            if protocol.get("currentPhase") in _OVER:
                return False
            names = list_in(protocol, "waitingFor")
            if self.name in names:
                return True
            line = f"waiting: waiting for {', '.join(map(str, names))} after seq {self.last_seq()}"
            if line != said:
                print(line, flush=True)
                said = line
            time.sleep(max(0.1, min(1.0, 1 / self.speed)))


def record(**fields: object) -> None:
    """Print a record, as agents' programs do."""
    print(json.dumps(fields), flush=True)


def speak(text: str) -> None:
    """Say something."""
    record(type="assistant", message={"id": "m", "content": [{"type": "text", "text": text}]})


def finish(text: str, **more: object) -> None:
    """Say the last word."""
    usage = {"input_tokens": 1200, "output_tokens": 80}
    record(**({"type": "result", "is_error": False, "result": text, "usage": usage} | more))


Trouble = Callable[[Part, Step], None]


def killed(part: Part, step: Step) -> None:
    """Somebody kills the loop and the program, as a machine that runs out of memory does."""
    speak("I begin.")
    os.kill(os.getppid(), signal.SIGKILL)
    os.killpg(0, signal.SIGKILL)


def idle(part: Part, step: Step) -> None:
    """It ends well and has done nothing."""
    finish("I have read everything and have nothing to add.")
    sys.exit(0)


def refused(part: Part, step: Step) -> None:
    """It may not run commands, says so at the end, and ends well."""
    command = f"acp append --event {step.event}"
    denial = {"tool_name": "Bash", "tool_input": {"command": command}}
    finish("I was not allowed to append my event.", permission_denials=[denial])
    sys.exit(0)


def hanging(part: Part, step: Step) -> None:
    """It says a word and then nothing any more."""
    speak("Let me think about this.")
    _stay()


def retrying(part: Part, step: Step) -> None:
    """It cannot reach its model service and tries for ever."""
    delay = max(0.5, 20 / part.speed)
    for attempt in range(1, 10_000):
        record(
            type="system",
            subtype="api_retry",
            attempt=attempt,
            max_retries=10,
            retry_delay_ms=int(delay * 1000),
            error_status=529,
            error="overloaded",
        )
        time.sleep(delay)


def login(part: Part, step: Step) -> None:
    """Its credentials have run out."""
    finish("Not logged in. Please run /login", is_error=True)
    sys.exit(1)


def torn(part: Part, step: Step) -> None:
    """It writes its event by itself and is interrupted in the middle of the line."""
    half = f'{{"seq":{part.last_seq() + 1},"from":"{part.name}","event":"{step.event}","at":"20'
    with (part.folder / records.LOG_FILE).open("ab") as file:
        file.write(half.encode())
    sys.exit(3)


def lagging(part: Part, step: Step) -> None:
    """It is cut off after its event is in the log, and before protocol.json says so."""
    request = Request(
        folder=str(part.folder),
        participant=part.name,
        event=step.event,
        summary=step.summary,
        doc=step.doc,
        reply_to=part.write_up(step),
    )
    with lock(request.folder) as held:
        opened = open_locked(request.folder, held.log)
        held.log.append(prepare(opened, request, utc_now()).line, opened.size)


def heading(part: Part, step: Step) -> None:
    """It announces its review and forgets to write it into review.md."""
    reply_to = part.write_up(step)
    part.append(step.event, step.summary, reply_to, step.doc)


def gate(part: Part, step: Step) -> None:
    """It leaves the box of a gate empty."""
    reply_to = part.write_up(step)
    wanted = records.gate_texts(part.believed())[0]
    path = part.folder / "readiness.md"
    text = path.read_text(encoding="utf-8")
    atomic.replace(path, text.replace(f"- [x] {wanted}", f"- [ ] {wanted}").encode(), sync=False)
    part.append(step.event, step.summary, reply_to, step.doc)


def blocked(part: Part, step: Step) -> None:
    """It needs a person to decide."""
    summary = "May a page be a minute old after a price change? Someone from sales must decide."
    part.append("blocked", summary, part.last_seq(), step.doc)


def duplicate(part: Part, step: Step) -> None:
    """It notices that somebody else acts in its name, and does not dare to act as well."""
    speak("Another process acts for me too; I wait until that is resolved.")
    while any(each.participant == part.name for each in waiting_processes(str(part.folder))):
        time.sleep(0.3)
    part.take(step)


def lingering(part: Part, step: Step) -> None:
    """It does its work, says its last word, and stays."""
    part.take(step)
    finish("Done.")
    _stay()


def _stay() -> None:
    while True:
        signal.pause()


TROUBLES: dict[str, Trouble] = {
    trouble.__name__: trouble
    for trouble in (
        killed,
        idle,
        refused,
        hanging,
        retrying,
        login,
        torn,
        lagging,
        heading,
        gate,
        blocked,
        duplicate,
        lingering,
    )
}


if __name__ == "__main__":
    sys.exit(main())
