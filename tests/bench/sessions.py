"""What live sessions cost the dashboard: ten participants with thirty updates a second each."""

from __future__ import annotations

import contextlib
import json
import statistics
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path

from acp_core.agents import codec
from acp_core.agents.loop_directory import LoopDirectory, place
from acp_core.agents.processes import myself
from acp_core.agents.state import Phase, Run, Saved
from acp_core.files import atomic
from acp_core.model.clock import utc_now
from acp_core.person.paths import key_of
from tests.bench.bench import Bench
from tests.bench.collaborations import begin
from tests.bench.figures import Aim, Figure
from tests.bench.programs import EMPTY, acp, terminal, used
from tests.support.terminal import NotShown, Terminal

SESSIONS, UPDATES = 10, 30
PROCESSOR = Aim("below 15 % of a core", 15.0)
NONE = Aim("none dropped", 0.0)
TEXT = "pack my box with five dozen jugs"  # letters that mean something where nothing is written
SETTLE, WATCHED = 4.0, 12.0  # s
BESIDE = "an empty Textual program"


def measure(bench: Bench) -> Iterator[Figure]:
    """The screen of one participant is open; the time watched is cut into as many parts as runs."""
    names = [f"agent{number}" for number in range(SESSIONS)]
    folder = begin(bench.path("sessions"), *names)
    costs, beside = [], []
    shown = terminal([*acp(), str(folder)])
    with Sessions(folder, names), terminal(EMPTY) as empty, shown:
        shown.wait_for("agent0", timeout=120)
        shown.send("p")
        shown.wait_for("of 200k tokens", timeout=120)
        shown.run(SETTLE)
        for _ in range(bench.runs):
            before = used(shown.pid).processor, used(empty.pid).processor
            begun = time.perf_counter()
            shown.run(WATCHED)
            taken = time.perf_counter() - begun
            costs.append(100 * (used(shown.pid).processor - before[0]) / taken)
            beside.append(100 * (used(empty.pid).processor - before[1]) / taken)
        dropped = typed(shown)
    name = f"{SESSIONS} live sessions with {UPDATES} updates a second, processor of the dashboard"
    cost, other = statistics.median(costs), statistics.median(beside)
    yield Figure("sessions", name, "%", cost, BESIDE, other, PROCESSOR)
    keys = f"keys of {len(TEXT)} that were dropped meanwhile"
    yield Figure("sessions", keys, "", dropped, "none", 0.0, NONE)


def typed(shown: Terminal) -> int:
    """Write a message to the participant on the screen, key by key; the keys that were dropped."""
    shown.send("m")
    shown.wait_for("Message", timeout=120)
    shown.run(1.0)
    for key in TEXT:
        shown.send(key)
        shown.run(0.05)
    with contextlib.suppress(NotShown):
        shown.wait_for(TEXT, timeout=60)
    lines = (
        SequenceMatcher(None, TEXT, line).get_matching_blocks() for line in shown.text.splitlines()
    )
    return len(TEXT) - max(sum(block.size for block in blocks) for blocks in lines)


class Sessions:
    """Writes what the runners and loops of some participants write, while the block runs."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        self._loops = [_Loop(folder, name) for name in names]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def __enter__(self) -> Sessions:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _write(self) -> None:
        due, number = time.monotonic(), 0
        while not self._over.is_set():
            for loop in self._loops:
                loop.update(number)
            number, due = number + 1, due + 1 / UPDATES
            self._over.wait(max(0.0, due - time.monotonic()))


class _Loop:
    """One participant's loop in the middle of a turn."""

    def __init__(self, folder: Path, name: str) -> None:
        self._where: LoopDirectory = place(str(folder), name)
        self._where.make()
        atomic.private_folder(self._where.runs)
        self._journal = self._where.runs / "00001.out"
        run = Run(1, myself(), utc_now(), out=str(self._journal), live=True, tool="Bash")
        self._saved = Saved(
            key_of(str(folder)), name, myself(), utc_now(), program="claude", live="yes",
            phase=Phase.RUNNING, since=utc_now(), attempt=1, attempts=4, run=run,
        )  # fmt: skip

    def update(self, number: int) -> None:
        """One more update: mostly a piece of text, now and then a call; the state each second."""
        call = f"c{number // UPDATES}"
        at = number % UPDATES
        if at == 0:
            self._append(sessionUpdate="usage_update", used=100 * number % 200_000, size=200_000)
            self._append(sessionUpdate="tool_call", toolCallId=call, kind="execute",
                         status="in_progress", rawInput={"command": f"make part-{number}"})  # fmt: skip
            assert self._saved.run is not None
            run = replace(self._saved.run, tokens_in=number, lines=(f"part {number}",))
            codec.write(self._where.state, replace(self._saved, run=run))
        elif at == UPDATES - 1:
            output = [{"type": "content", "content": {"type": "text", "text": f"ok {number}"}}]
            self._append(sessionUpdate="tool_call_update", toolCallId=call, status="completed",
                         content=output)  # fmt: skip
        else:
            text = {"type": "text", "text": f"word {number} and more. "}
            self._append(sessionUpdate="agent_message_chunk", messageId=call, content=text)

    def _append(self, **update: object) -> None:
        message = {"method": "session/update", "params": {"update": update}}
        record = {"at": round(time.time(), 3), "direction": "agent", "message": message}
        with self._journal.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
