"""A program that asks for a permission and does as it is answered: a process of its own in tests.

``python -m tests.agents.live.publisher FOLDER PARTICIPANT PROGRAM COMMAND [unattended] [new=TEXT]``:
runs the command where it is allowed, and prints what became of it. ``edit PATH`` asks to change a
file instead, to the text where one is given; ``question TEXT`` asks the person, with an answer of that text.
"""

from __future__ import annotations

import subprocess
import sys
import time

from acp_core.agents.live import answers
from acp_core.agents.live.requests import parse
from acp_core.model.clock import utc_now
from acp_core.person.permissions import Verdict
from tests.agents.live import messages


def main(folder: str, participant: str, program: str, command: str, *how: str) -> None:
    """Ask, wait, and do."""
    made = messages.shell(program, command)
    if command.startswith("edit "):
        new = next(
            (each.removeprefix("new=") for each in how if each.startswith("new=")), "three\n"
        )
        made = messages.edit(program, command.removeprefix("edit "), "two\n", new)
    if command.startswith("question"):
        text = command.removeprefix("question").strip()
        made = messages.question(text, text) if text else messages.question()
    opened = answers.publish(
        folder,
        participant,
        parse(made),
        attended="unattended" not in how,
        turn="write the review",
        program=program,
        ends_turn=program in ("codex", "opencode", "qwen"),
        why=_why(command),
    )
    print(opened.id, flush=True)
    while (given := answers.taken(opened, utc_now())) is None:
        time.sleep(0.02)
    answers.close(opened, given)
    if given.verdict is Verdict.ALLOW:
        subprocess.run(["sh", "-c", command], check=True, cwd=folder)
    print(f"{given.verdict.value} by {given.by}: {given.message}", flush=True)


def _why(command: str) -> str:
    """Why the policy asks a person, as it says so itself."""
    if command.startswith("question"):
        return "it is a question to a person"
    if command.startswith("edit "):
        return "it changes something other than the turn's documents and drafts"
    return "it is no command of acp"


if __name__ == "__main__":
    main(*sys.argv[1:])
