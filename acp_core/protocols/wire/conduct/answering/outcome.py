"""What a program's end means for the message or task that it was run for.

Exit code 0: it is done, and what it printed is the answer. Exit code `ASKS`: input is needed, and
what it printed is the question. Anything else: it failed. A program that has more to say writes a
JSON object (`Result`) into the file that ``ACP_RESULT_FILE`` names, or prints nothing but such an
object; then that counts instead of the text, where the exit code is 0.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from acp_core.agents import detached_run, output, streams
from acp_core.agents.detached_run import Ended
from acp_core.agents.output import read_end
from acp_core.agents.presets import Preset
from acp_core.files.secrets import mask
from acp_core.model.text import clean_line
from acp_core.protocols.wire.schema import Json, Refusal
from acp_core.protocols.wire.schema.decode import decode
from acp_core.protocols.wire.schema.lenient import fields_of
from acp_core.protocols.wire.schema.parts import check_parts, data_part, text_part
from acp_core.protocols.wire.state import TaskState

ASKS = 100  # the exit code of a program that needs input
RESULT = "result.json"
LONGEST = 512 << 10  # bytes of an answer; of a longer one the end is kept
_ERROR = 500  # characters of an error


class Outcome(NamedTuple):
    """What becomes of a message or task: a state, what is said, and why it failed."""

    status: TaskState
    parts: list[Json]
    error: str = ""


class Result(BaseModel):
    """What a program may say instead of text; fields that are not known are ignored.

    ``parts`` count before ``data``, and ``text`` stands before both.
    """

    model_config = ConfigDict(extra="ignore", strict=True)

    status: Literal["completed", "failed", "input_required"]
    text: str | None = None
    parts: list[Any] | None = None
    data: Any = None
    error: str | None = None


def judge(folder: Path, ended: Ended, preset: Preset, *, live: bool = False) -> Outcome:
    """The outcome of the run in ``folder``.

    Args:
        folder: what the run left.
        ended: how it ended.
        preset: of its program.
        live: it was a turn of a live session, whose exit code says nothing of the program.
    """
    said, trouble = _read_answer(folder, streams.LIVE if live else preset.stream)
    if ended.stopped:
        return failure(ended.stopped)
    if live and ended.exit.code != 0:
        return failure(trouble or "the live session ended before it answered")
    if live and not said and _was_refused(folder):
        return failure("the agent was not allowed to do what it needed for this")
    code = ended.exit.code
    if code not in (0, ASKS):
        meaning = preset.exits.get(code) if code is not None else None
        told = _last_line(folder / detached_run.ERR) or trouble
        words = ", ".join(filter(None, (str(ended.exit), meaning)))
        return failure(f"{words}: {told}" if told else words)
    if code == 0 and trouble:
        return failure(trouble)
    asked = code == ASKS
    given = _read_result(folder, said)
    if given is not None and not asked:
        return _of_result(given)
    parts = [text_part(said)] if said else []
    return Outcome(TaskState.INPUT_REQUIRED if asked else TaskState.COMPLETED, parts)


def failure(why: str) -> Outcome:
    """It could not be done; what looks like a secret is not told."""
    return Outcome(TaskState.FAILED, [], clean_line(mask(why), _ERROR))


def _of_result(given: object) -> Outcome:
    try:
        result = Result.model_validate(given)
        parts = [text_part(result.text)] if result.text else []
        if result.parts:
            parts += check_parts(result.parts)
        elif "data" in fields_of(given):
            parts.append(data_part(result.data))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(each) for each in first["loc"]) or "it"
        return failure(f"the program's result is invalid: {where}: {first['msg']}")
    except Refusal as refusal:
        return failure(f"the program's result is invalid: {refusal.message}")
    if result.status == "failed":
        return Outcome(TaskState.FAILED, parts, failure(result.error or result.text or "").error)
    return Outcome(TaskState(result.status), parts)


def _read_result(folder: Path, said: str) -> object:
    """The result that a program wrote, or printed alone; None where there is none."""
    written = read_end(folder / RESULT, LONGEST + 1)
    if written:
        if len(written) > LONGEST:
            return {"status": "too large"}
        try:
            return decode(written)
        except Refusal as refusal:
            return {"status": refusal.message}
    plain = said.strip()
    if plain.startswith("```") and plain.endswith("```"):
        plain = plain[3:-3].removeprefix("json").strip()
    if not plain.startswith("{"):
        return None
    try:
        found = fields_of(decode(plain))
    except Refusal:
        return None
    states = ("completed", "failed", "input_required")
    return found if found.get("status") in states else None


def _read_answer(folder: Path, stream: str) -> tuple[str, str]:
    """What a program said at the end, and what went wrong as its stream tells it."""
    data = read_end(folder / detached_run.OUT)
    if stream == "text":
        return _cut(data.decode(errors="replace").strip("\n")), ""
    progress = output.parse(data, stream).progress
    wrong = (progress.error or progress.said) if progress.is_error else ""
    return _cut(progress.said), wrong or (
        "the program reported a failure" if progress.is_error else ""
    )


def _was_refused(folder: Path) -> bool:
    """Whether something was refused in a turn of a live session."""
    return bool(output.parse(read_end(folder / detached_run.OUT), streams.LIVE).progress.refused)


def _cut(text: str) -> str:
    data = text.encode(errors="backslashreplace")
    return data[-LONGEST:].decode(errors="ignore")


def _last_line(path: Path) -> str:
    lines = read_end(path, 4096).decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else ""


def as_json(material: Json) -> bytes:
    """What the program finds in the file that ``ACP_MESSAGE_FILE`` names."""
    return json.dumps(material, ensure_ascii=False, indent=1).encode(errors="backslashreplace")
