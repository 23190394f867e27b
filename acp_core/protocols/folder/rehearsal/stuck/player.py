"""A program that takes one turn of a story, as an agent's program would; or gets into trouble.

A loop runs it and gives it the turn's prompt on its standard input. Who it is and where it works
it takes from the commands that the prompt names, so that it can take anybody's turn. It prints
records as agents' programs do. With ``--alone`` it waits for its turns itself, as older programs
did: by what protocol.json says.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from acp_core.model.action_spec import Field, Kind, QuerySpec
from acp_core.protocols.folder.rehearsal.participant import Stuck
from acp_core.protocols.folder.rehearsal.scenario import load
from acp_core.protocols.folder.rehearsal.stuck.part import Part, finish, record, speak
from acp_core.protocols.folder.rehearsal.stuck.troubles import TROUBLES
from acp_core.protocols.kit.parser import parse

STORY = Path(__file__).parent


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


if __name__ == "__main__":
    sys.exit(main())
