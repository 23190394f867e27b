"""Going on in a new folder where a collaboration has ended, as a form and as a command do it."""

from __future__ import annotations

from datetime import datetime

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.actions.common import open_folder
from acp_core.protocols.folder.actions.display import file_change, new_file
from acp_core.protocols.folder.actions.table_files import CONTINUATION
from acp_core.protocols.folder.read.location import path_of
from acp_core.protocols.folder.write import continuation
from acp_core.protocols.folder.write.opened import Opened, open_unlocked
from acp_core.protocols.kit.binding import Context, Narrowed, bound
from acp_core.protocols.kit.command_line import say, say_json
from acp_core.protocols.kit.parser import show
from acp_core.protocols.kit.starting import followed, starter, with_start
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe


def continuing(context: Context, now: datetime) -> Action:
    """Go on in a new folder, once the collaboration has ended.

    Raises:
        Refused: the collaboration cannot be read.
        OSError: the same.
    """
    here = open_folder(context, now)
    narrowed = _narrowed(here.opened, here.key)
    return bound(
        CONTINUATION,
        here,
        lambda values: _preview(here.key, values),
        lambda values: _continued(here.key, values),
        narrowed=narrowed,
        offered=narrowed is not None,
    )


def _narrowed(opened: Opened, key: str) -> Narrowed | None:
    """What is asked now; None where it cannot be continued, and the plan says why."""
    phase = continuation.left_in(opened)
    if not phase:
        return None
    try:
        target = continuation.new_folder(opened, None)
    except Refused:
        return None
    about = "Your answer, placed at the top of the new proposal."
    answer = {"needed": phase == "blocked", "help": about}
    return {
        "answer": answer,
        "folder": {"default": target, "help": "Must not exist yet."},
        "start": _same_programs(key),
    }


def _same_programs(source: str) -> dict[str, object]:
    """Whether the programs that ran here are started in the new folder: yes, where any did."""
    begin = starter()
    ran = begin.ran(source) if begin else ()
    if not ran:
        return {"asked": False}
    return {"default": True, "help": f"Starts the agents of {', '.join(ran)} in the new folder."}


def _preview(source: str, values: Values) -> Preview:
    opened = open_unlocked(source, full=True)
    plan = continuation.prepare(
        opened, values.folder or None, values.answer, objective=values.objective, now=utc_now()
    )
    old, before = path_of(source, schema.PROTOCOL_FILE), schema.encode_protocol(opened.protocol)
    made = Preview(
        sentence=safe(
            f"Start {plan.folder} with the documents and decisions of this collaboration."
        ),
        changes=(
            *(new_file(file.path, file.data) for file in plan.files),
            file_change(old, schema.PROTOCOL_FILE, before, plan.old_protocol),
        ),
    )
    begin = starter() if values.start else None
    if begin and begin.ran(source):
        return with_start(made, begin.preview_same(source, plan.folder))
    return made


def _continued(source: str, values: Values) -> Outcome:
    made = continuation.continue_in_new_folder(
        source, values.folder or None, values.answer, objective=values.objective
    )
    return _started(values, source, made)


def _started(values: Values, source: str, made: continuation.Continued) -> Outcome:
    """How it ended, once the programs that ran before are started where that is asked for."""
    words = "Already continued in" if made.existed else "Continued in"
    sentence = safe(f"{words} {made.folder}.")
    begin = starter() if values.start else None
    if begin and begin.ran(source):
        return followed(sentence, made.folder, begin.start_same(source, made.folder))
    return Outcome(OutcomeState.DONE, sentence, location=made.folder)


def continue_in_new_folder(values: Values) -> int:
    """Go on in a new folder, as ``acp continue`` does; the exit code."""
    if values.answer_file:
        values.answer = _text_of(values.answer_file)
    if values.dry_run:
        preview = _preview(values.source, values)
        return show("acp.continue/1", "continue", preview, as_json=values.json)
    made = continuation.continue_in_new_folder(
        values.source,
        values.folder or None,
        values.answer,
        objective=values.objective,
        force=values.unlocked,
    )
    outcome = _started(values, values.source, made)
    if values.json:
        done = outcome.done.data if outcome.done else {}
        say_json({"schema": "acp.continue/1", "from": values.source, **made._asdict(), **done})
    else:
        say(outcome.sentence.removesuffix("."))
    return 1 if outcome.failed else 0


def _text_of(path: str) -> str:
    try:
        return read_bounded(path, schema.MAX_DOCUMENT).decode()
    except Unreadable as error:
        raise Refused(f"{path}: {error}") from None
    except UnicodeDecodeError as error:
        raise Refused(f"{path}: not UTF-8 at byte {error.start + 1}") from None
