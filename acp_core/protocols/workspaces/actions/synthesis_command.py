"""``acp workspaces synthesise`` and ``edit``: a program, or the person's editor, on the draft."""

from __future__ import annotations

import os
import shlex
import subprocess
import time

from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.kit.binding import Location
from acp_core.protocols.kit.command_line import say
from acp_core.protocols.kit.parser import say_object
from acp_core.protocols.kit.values import Values
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.actions.common import open_run
from acp_core.protocols.workspaces.actions.integrating import begin
from acp_core.protocols.workspaces.actions.table import SCHEMA
from acp_core.protocols.workspaces.conduct import agent_choice, synthesis
from acp_core.protocols.workspaces.read.manifest import layout, read_json
from acp_core.protocols.workspaces.schema import DRAFT_ACT, Dispatch, Layout
from acp_core.protocols.workspaces.write import integration, step

_STEP = 0.1  # seconds between two looks


def synthesise(values: Values) -> int:
    """Let a program write the draft, and wait for it; the exit code."""
    place = layout(values.folder)
    if values.dry_run:
        prompt = integration.synthesis_prompt(place)
        say(prompt) if not values.json else _tell(False, prompt=prompt)
        return 0
    choice = agent_choice.choice(values.program, values.words, str(place.root), values.model)
    begin(open_run(Location(str(place.root)), utc_now()), choice)
    while not values.detach and synthesis.is_running(place):
        time.sleep(_STEP)
    return _conclude(place, values)


def _conclude(place: Layout, values: Values) -> int:
    how = schema.decode_object(Dispatch, read_json(place.draft / "synthesis.json")).exit
    draft = integration.draft_file(place)
    there = draft.is_file()
    if values.json:
        _tell(there, exit=how, draft=str(draft))
    elif values.detach:
        say("A program is writing the draft.")
    else:
        say(f"{how}; the draft is {draft}" if there else how)
    return 0 if there or values.detach else 1


def _tell(done: bool, **facts: str) -> None:
    say_object(SCHEMA, "integrate", done=done, **facts)


def edit(values: Values) -> int:
    """Open the person's editor on the draft, which is prepared where there is none; the exit code."""
    place = layout(values.folder)
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if not command:
        raise Refused("no editor set: set EDITOR, or edit the file that `draft` prepares")
    path = integration.draft_file(place)
    if values.dry_run:
        say(f"would run {command[0]} on {path}")
        return 0
    if not path.exists():
        step.carry_out_act(place, DRAFT_ACT, lambda: integration.write_draft(place))
    try:
        ended = subprocess.run([*command, str(path)], check=False)
    except OSError as error:
        raise Refused(f"{command[0]}: {error.strerror or error}") from None
    if ended.returncode:
        raise Refused(f"{command[0]} ended with exit code {ended.returncode}; the draft is {path}")
    say(f"The draft is {path}; `acp workspaces finish` publishes it.")
    return 0
