"""A program that takes one turn of a story, as an agent's program would; or gets into trouble.

A loop runs it and gives it the turn's prompt on its standard input. Who it is and where it works
it takes from the commands that the prompt names, so that it can take anybody's turn. It prints
records as agents' programs do. With ``--alone`` it waits for its turns itself, as older programs
did: by what protocol.json says.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from acp_core.files import atomic
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.rehearsal.participant import ACP, Player, Stuck
from acp_core.protocols.folder.rehearsal.scenario import Scenario, Step, load

STORY = Path(__file__).parent
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
        ended = subprocess.run(
            [*ACP, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        result = {"type": "tool_result", "tool_use_id": "1", "content": ended.stdout}
        record(type="user", message={"content": [result]})
        return ended.returncode, ended.stdout

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
        reply_to = self._desk.latest(step.reply_to)
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
        data = atomic.read_bounded(self.folder / schema.PROTOCOL_FILE, schema.MAX_PROTOCOL)
        return schema.decode_protocol(data)

    def last_seq(self) -> int:
        """The seq of the last event."""
        return self._desk.events()[-1][0]

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
            awaited = protocol.get("waitingFor")
            names = awaited if isinstance(awaited, list) else []
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


def told(prompt: str) -> tuple[str, str]:
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
    from acp_core.protocols.folder.rehearsal.stuck import troubles

    while True:
        blind = trouble == "belief" and is_first(once)
        if alone and not part.wait_as_believed(look_again=not blind):
            return
        step = part.next_step()
        if step is None:
            speak("There is nothing for me to do.")
            return
        if trouble in troubles.TROUBLES and step.event == at and is_first(once):
            troubles.TROUBLES[trouble](part, step)
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


def main(argv: Sequence[str] | None = None) -> int:
    """Run once. Returns 1 where an event was refused."""
    parser = argparse.ArgumentParser(description="A participant of a rehearsal that gets stuck.")
    parser.add_argument("--drafts", required=True, type=Path, help="folder for private drafts")
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--trouble", default="")
    parser.add_argument("--at", default="", help="the event at which the trouble comes")
    parser.add_argument("--once", type=Path, help="a file that says that it came already")
    parser.add_argument("--alone", action="store_true")
    given = parser.parse_args(argv)
    record(type="system", subtype="init", model="none", session_id="rehearsal")
    try:
        folder, name = told(sys.stdin.read())
        speak(f"I am {name}. I read the documents.")
        part = Part(load("story", STORY), name, Path(folder), given.drafts, given.speed)
        play(part, given.trouble, given.at, given.once, given.alone)
    except (Stuck, OSError, ValueError, LookupError) as error:
        speak(f"I cannot go on: {error}")
        finish("My event is not recorded.")
        return 1
    finish("Done.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
