"""The first figures, each beside a baseline of the same run: ``python -m tests.bench``.

Latencies are medians of interleaved runs in a real pseudo-terminal of 120 x 40. The load of
the machine at the start is printed, because wall times mean little without it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from acp_core.protocols.folder import schema
from tests.terminal import Terminal

ACP = [sys.executable, "-m", "acp_tui"]
EMPTY = [
    sys.executable,
    "-c",
    (
        "from textual.app import App\n"
        "from textual.widgets import Static\n"
        "class Empty(App):\n"
        "    def compose(self):\n"
        "        yield Static('painted')\n"
        "Empty().run()"
    ),
]


def make_log(folder: Path, events: int) -> None:
    """A valid collaboration with about ``events`` events: review rounds without end."""
    run(
        [
            *ACP,
            "init",
            "--folder",
            str(folder),
            "--participant",
            "owner",
            "--participant",
            "reader",
            "--objective",
            "Measure",
            "--completion",
            "measured",
        ]
    )
    protocol = json.loads((folder / "protocol.json").read_text())
    lines = [(folder / "events.jsonl").read_bytes()]
    review: list[str] = []
    at = json.loads(lines[0])["at"]
    for seq in range(2, events + 1):
        event, sender = (
            ("proposal_submitted", "owner") if seq % 2 == 0 else ("review_submitted", "reader")
        )
        doc = "proposal.md" if seq % 2 == 0 else "review.md"
        if sender == "reader":
            review.append(f"## {at} - reader - seq {seq}\n\nPosition:\n- Fine.\n")
        lines.append(
            schema.encode_event(
                {"seq": seq, "from": sender, "event": event, "at": at}
                | {"summary": f"Entry {seq} of a long collaboration about measuring", "doc": doc}
                | {"reply_to": seq - 1}
            )
        )
    (folder / "events.jsonl").write_bytes(b"".join(lines))
    (folder / "review.md").write_text("# Review\n\n" + "\n".join(review))
    even = events % 2 == 0
    protocol["currentPhase"] = "reviewing" if even else "revising"
    protocol["waitingFor"] = ["reader" if even else "owner"]
    (folder / "protocol.json").write_bytes(schema.encode_protocol(protocol))


def run(command: list[str], expect: int | None = 0) -> float:
    """Run a command; returns its wall time in seconds."""
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL)
    taken = time.perf_counter() - start
    if expect is not None and done.returncode != expect:
        raise SystemExit(f"{command} exited {done.returncode}: {done.stderr.decode()}")
    return taken


def medians(runs: int, **measures: Callable[[], float]) -> dict[str, float]:
    """The median of each measure in milliseconds, measured in turn ``runs`` times after a warm-up."""
    taken: dict[str, list[float]] = {name: [] for name in measures}
    for number in range(runs + 1):
        for name, measure in measures.items():
            value = measure()
            if number:
                taken[name].append(value * 1000)
    return {name: statistics.median(values) for name, values in taken.items()}


def first_paint(command: list[str], text: str) -> float:
    """Seconds from start to ``text`` on the screen."""
    start = time.perf_counter()
    with Terminal(command, columns=120, rows=40) as terminal:
        terminal.wait_for(text)
        return time.perf_counter() - start - 0.05  # what the terminal waits before it starts


def change_to_screen(folder: Path, changes: int) -> list[float]:
    """Milliseconds from an appended event to its summary on the screen, one for each change."""
    taken = []
    owner = "owner"
    with Terminal([*ACP, str(folder)], columns=120, rows=40) as terminal:
        terminal.wait_for("Timeline")
        terminal.run(1.5)
        state = json.loads((folder / "events.jsonl").read_bytes().splitlines()[-1])
        for number in range(changes):
            seq = state["seq"] + 1 + number
            sender, event = (
                (owner, "proposal_submitted") if seq % 2 == 0 else ("reader", "review_submitted")
            )
            token = f"token{seq}x"
            line = schema.encode_event(
                {"seq": seq, "from": sender, "event": event, "at": state["at"]}
                | {"summary": token, "doc": "proposal.md", "reply_to": seq - 1}
            )
            start = time.perf_counter()
            with (folder / "events.jsonl").open("ab") as log:
                log.write(line)
            terminal.wait_for(token)
            taken.append((time.perf_counter() - start) * 1000)
            terminal.run(0.4)
    return taken


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures: dict[str, float] = {"load at start": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        os.environ["ACP_STATE"] = str(base / "state")
        os.environ["ACP_CONFIG"] = str(base / "config")
        for events in (10, 10_000, 100_000):
            make_log(base / f"log{events}", events)
        bare = [sys.executable, "-c", "pass"]
        for events in (10, 10_000, 100_000):
            folder = str(base / f"log{events}")
            append = [*ACP, "append", "--folder", folder, "--participant", "owner"]
            append += ["--event", "blocked", "--reply-to", "1", "--summary"]
            number = iter(range(1_000_000))
            found = medians(
                options.runs,
                bare=lambda: run(bare),
                next=lambda folder=folder: run(
                    [*ACP, "next", "--folder", folder, "--participant", "reader"], None
                ),
                validate=lambda folder=folder: run([*ACP, "validate", "--folder", folder], None),
                append=lambda append=append, number=number: run([*append, f"b{next(number)}"]),
            )
            for what, value in found.items():
                figures[
                    f"{what}, {events} events, ms"
                    if what != "bare"
                    else f"python -c pass beside {events} events, ms"
                ] = value
        for events in (10, 10_000, 100_000):
            make_log(base / f"view{events}", events)
        found = medians(
            options.runs,
            empty=lambda: first_paint(EMPTY, "painted"),
            fleet=lambda: first_paint([*ACP, str(base)], " acp "),
            small=lambda: first_paint([*ACP, str(base / "view10")], "Timeline"),
            large=lambda: first_paint([*ACP, str(base / "view10000")], "Entry 10000 "),
            huge=lambda: first_paint([*ACP, str(base / "view100000")], "Entry 100000 "),
        )
        figures["empty Textual program, first paint, ms"] = found["empty"]
        figures["acp, first paint, ms"] = found["fleet"]
        figures["acp, 10 events, screen shown, ms"] = found["small"]
        figures["acp, 10,000 events, newest event shown, ms"] = found["large"]
        figures["acp, 100,000 events, newest event shown, ms"] = found["huge"]
        for events in (10, 100_000):
            taken = sorted(change_to_screen(base / f"view{events}", options.changes))
            figures[f"change to screen, {events} events, p50, ms"] = statistics.median(taken)
            figures[f"change to screen, {events} events, max, ms"] = taken[-1]
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    for what, value in figures.items():
        print(f"{what:<55} {value:10.1f}")


if __name__ == "__main__":
    main()
