"""The life of a task (core specification, section 3): pure functions."""

from __future__ import annotations

from acp_core.protocols.wire.schema.basics import TaskState, invalid

_NEXT: dict[TaskState, frozenset[TaskState]] = {
    TaskState.SUBMITTED: frozenset({TaskState.WORKING, TaskState.CANCELED}),
    TaskState.WORKING: frozenset(
        {TaskState.COMPLETED, TaskState.FAILED, TaskState.INPUT_REQUIRED, TaskState.CANCELED}
    ),
    TaskState.INPUT_REQUIRED: frozenset({TaskState.WORKING, TaskState.CANCELED}),
}


def task_state(text: object) -> TaskState:
    """The state of this name.

    Raises:
        Refusal: there is none.
    """
    try:
        return TaskState(text)
    except ValueError:
        names = ", ".join(state.value for state in TaskState)
        raise invalid(f"no such task state (states: {names})") from None


def steps(current: TaskState, wanted: TaskState) -> tuple[TaskState, ...]:
    """The states that lead from ``current`` to ``wanted``, the latter included.

    A submitted task on which the worker reports a result passes through working. Nothing
    follows where the state stays as it is.

    Raises:
        Refusal: no way leads there (core specification, section 3.3).
    """
    if current is wanted:
        return ()
    if wanted in _NEXT.get(current, ()):
        return (wanted,)
    if current is TaskState.SUBMITTED and wanted in _NEXT[TaskState.WORKING]:
        return (TaskState.WORKING, wanted)
    if current.terminal:
        raise invalid(f"the task is {current.value} and cannot change")
    raise invalid(f"a task that is {current.value} cannot become {wanted.value}")


def resumed(current: TaskState) -> TaskState:
    """The state after a ``continue`` with the input that was asked for.

    Raises:
        Refusal: the task does not wait for input.
    """
    if current is not TaskState.INPUT_REQUIRED:
        raise invalid(f"the task is {current.value}: it is not waiting for input")
    return TaskState.WORKING
