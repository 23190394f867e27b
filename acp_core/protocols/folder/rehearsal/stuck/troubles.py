"""The troubles that a program of a rehearsal gets into: real ones, in real processes and files."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable

from acp_core.agents.identity import waiting_processes
from acp_core.files import atomic
from acp_core.model.clock import utc_now
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.rehearsal.scenario import Step
from acp_core.protocols.folder.rehearsal.stuck.part import Part, finish, record, speak
from acp_core.protocols.folder.write.append import Request, prepare
from acp_core.protocols.folder.write.opened import lock, open_locked

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
    with (part.folder / schema.LOG_FILE).open("ab") as file:
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
    wanted = schema.gate_texts(part.believed())[0]
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
