"""One participant of a story at work: what it can do, and how its records sound."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path

from acp_core.files import atomic
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.rehearsal.participant import Player, run
from acp_core.protocols.folder.rehearsal.scenario import Scenario, Step
from acp_core.protocols.folder.schema import list_in

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
        data = atomic.read_bounded(self.folder / schema.PROTOCOL_FILE, schema.MAX_PROTOCOL)
        return schema.decode_protocol(data)

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
