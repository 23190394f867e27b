"""What a program is told about its last try, and what a person is."""

from __future__ import annotations

from acp_core.agents.failures import FailureClass, failure_of
from acp_core.agents.presets import Preset
from acp_core.agents.state import Run
from acp_core.model.turn import TurnState

_QUOTED = 5  # refusals that are quoted at most
_SAID = 3  # last lines that are quoted where nothing else is known
_STEPS = 8  # last lines that are quoted of a session that grew too large


def meaning(run: Run, preset: Preset) -> str:
    """How a run ended, in words: its exit code with what that means to this program."""
    known = preset.exits.get(run.exit_code) if run.exit_code is not None else None
    return f"{run.exit} ({known})" if known else run.exit


def lost_with_machine(run: Run) -> bool:
    """Whether the machine was restarted while it ran: that is nobody's fault, and no attempt."""
    return run.exit_code is None and run.signal is None and run.process.before_restart


def summary(run: Run, preset: Preset, extra: str = "") -> str:
    """Why a run did not take its turn, in one sentence for people."""
    how = meaning(run, preset)
    if run.cancelled:
        return run.stopped
    if run.stopped:
        how = f"{how}, stopped: {run.stopped}"
    if extra:
        return f"{extra} ({how})"
    if run.is_error and run.error:
        return f"{how}: {run.error}"
    if run.refused:
        return f"{how}, and was refused {', '.join(run.refused[-_QUOTED:])}"
    if run.refusals:
        return f"{how}: {run.refusals[-1]}"
    if run.cut_off:
        return f"{how} before finishing its work"
    if run.exit_code and run.lines:
        return f"{how}: {run.lines[-1]}"
    return f"{how} without an event"


def correction(run: Run, turn: TurnState, preset: Preset, extra: str = "") -> str:
    """What the next try is told: what was refused, word for word, or what is missing.

    Args:
        run: the run that did not take its turn.
        turn: where the participant stands now.
        preset: how the program was run.
        extra: why the loop could not record the turn, where it tried to.
    """
    kind = failure_of(run, preset.exits, run.ended or run.started).kind
    if kind is FailureClass.CONTEXT:
        return _with_less_context(run, turn)
    if lost_with_machine(run):
        return _INTERRUPTED.format(why="the machine was restarted")
    if kind.passes or kind.lasts:
        return _INTERRUPTED.format(why=_NO_SERVICE) if run.tokens_out else ""
    lines = ["Your last attempt ended without recording an event, so it is still your turn."]
    refusals = [extra] if extra else list(run.refusals[-_QUOTED:])
    if refusals:
        lines += ["This event was refused with:", *(f"    {text}" for text in refusals)]
        lines.append("Fix this, then append the event again.")
    if run.refused:
        lines.append("You were denied these tools; work without them:")
        lines += [f"    {tool}" for tool in run.refused[-_QUOTED:]]
    if run.is_error and run.error:
        lines.append(f"It ended with an error: {run.error}")
    elif not refusals and not run.refused:
        lines.append(
            f"It ended with: {meaning(run, preset)}. Nothing was refused; the event is missing."
        )
        lines += [f"    {text}" for text in run.lines[-_SAID:]]
    if turn.what:
        lines.append(f"Still to do: {turn.what}")
    return "\n".join(lines)


_NO_SERVICE = "the model service was not available"
_INTERRUPTED = (
    "Your last attempt was interrupted because {why}, so it is still "
    "your turn. A part of the work may be done: look before you repeat it."
)


def _with_less_context(run: Run, turn: TurnState) -> str:
    """What a new session is told where the last one had grown too large: what that one did."""
    lines = [
        "Your last session ran out of context before it recorded an event, so it is still your turn.",
        "This is a new session. These were the last steps of the old one; its changes are in the files:",
        *(f"    {text}" for text in run.lines[-_STEPS:]),
        "Read only the parts of files that you need, print little output, and take few steps.",
    ]
    if turn.what:
        lines.append(f"Still to do: {turn.what}")
    return "\n".join(lines)
