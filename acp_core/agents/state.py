"""What a loop is doing, as it stands in its state file, and as others see it.

Everything here is immutable. `Saved` is what the loop writes; `acp_core.agents.registry` makes
a `RunnerState` of it, which also says whether the processes are alive.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from acp_core.agents.budgets import Use
from acp_core.agents.processes import Identity


class Phase(str, Enum):
    """What a loop is doing. A loop whose process died keeps the phase it had."""

    STARTING = "starting"
    WAITING = "waiting"  # parked: it is not this participant's turn
    RUNNING = "running"  # the program runs
    PAUSING = "pausing"  # until the program is tried again
    GAVE_UP = "gave_up"  # a person is wanted; the loop goes on by itself when the turn passes
    DONE = "done"  # the collaboration is over
    STOPPED = "stopped"  # somebody stopped it


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool that was used in a live turn: when (seconds since 1970), on what, how that ended."""

    at: float
    what: str
    status: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the program.

    Attributes:
        number: counts the runs of this participant's loop.
        process: the program's process, which leads its own process group.
        ended: when it ended; None while it runs (or where nobody saw the end).
        exit_code, signal: how; both None where it was not seen.
        exit: the same in words.
        stopped: why the loop stopped the program; "" where it did not.
        first_output, last_output: when it printed something first and last.
        tool: the tool in use now; tools that were refused stand in ``refused``.
        refusals: what the protocol's commands said when they refused, newest last.
        retries: how often it tried again to reach its model service.
        retrying, retrying_until, retry_reason: it waits to try again, until when, and why.
        silent: its model has said and done nothing since it was asked, as far as it tells that.
        tokens_in, tokens_out, tokens_estimated: tokens so far.
        cost: US dollars, None where not known; ``cost_estimated`` where worked out from prices.
        finished: when its last record was seen: alive after that, it lingers.
        is_error, error: whether the program itself says that it failed, and why.
        error_name, error_status: the error's name and status, where the program gives them.
        resets_at: when its limit is reset, where the program says so in a field.
        told_at: when it said why it failed, where its records bear their times.
        unanswered: it ended while it waited for its model service.
        complaints: the last lines that it printed beside its records.
        error_lines: of a program that prints text for people, the lines that may say why it failed:
            the last of its error stream, then the last of its output; None for any other, and in
            what acp 0.2.0 wrote.
        cut_off: it ended in the middle of its work.
        lines: the last lines that it printed, for people.
        out, err: the files that hold all of it.
        live: it is a turn of a live session: ``process`` holds the session, and stays.
        opened: how that session was opened for it: resumed, or a new one and why; "" where it stayed.
        unusable: why its program cannot hold a live session; "" where it can, or was not asked to.
        crashed: its live session crashed in the middle of it.
        cancelled: who cancelled it; "" where nobody did.
        calls: the tools that were used in a live turn, the last of them, once it has ended.
    """

    number: int
    process: Identity
    started: datetime
    ended: datetime | None = None
    exit_code: int | None = None
    signal: int | None = None
    exit: str = ""
    stopped: str = ""
    first_output: datetime | None = None
    last_output: datetime | None = None
    tool: str = ""
    refused: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    retries: int = 0
    retrying: bool = False
    retrying_until: datetime | None = None
    retry_reason: str = ""
    silent: bool = False
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_estimated: bool = False
    cost: float | None = None
    cost_estimated: bool = False
    session: str = ""
    model: str = ""
    version: str = ""
    finished: datetime | None = None
    is_error: bool = False
    error: str = ""
    error_name: str = ""
    error_status: int = 0
    resets_at: datetime | None = None
    told_at: datetime | None = None
    unanswered: bool = False
    complaints: tuple[str, ...] = ()
    error_lines: tuple[str, ...] | None = None
    cut_off: bool = False
    lines: tuple[str, ...] = ()
    out: str = ""
    err: str = ""
    live: bool = False
    opened: str = ""
    unusable: str = ""
    crashed: bool = False
    cancelled: str = ""
    calls: tuple[ToolUse, ...] = ()

    @property
    def unpriced(self) -> bool:
        """Whether its program did not say what it cost; one that failed need not."""
        return self.cost is None and (not self.is_error or self.tokens_in + self.tokens_out > 0)


@dataclass(frozen=True, slots=True)
class Limit:
    """A usage limit that refused a participant's program, as long as it does.

    Attributes:
        at: when it is reset, as it was told.
        width: seconds from there within which it may be (see `acp_core.agents.failures.Reset`).
        certain: whether a field said so, or only a text.
        told: when the last refusal was printed.
        late: refusals since it should have been reset; ``since`` when the first of them came.
        later: ``at`` is the later one of two readings: the earlier was an hour of refusals ago.
        first: when the first refusal after any of the moments came that were taken for its reset.
    """

    at: datetime
    width: float = 0.0
    certain: bool = False
    told: datetime | None = None
    late: int = 0
    since: datetime | None = None
    later: bool = False
    first: datetime | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """What a participant's programs took in one run of a collaboration.

    Attributes:
        run_id: the run, "" where it is not known.
        turns: turns that were taken; ``restarts`` runs of the program after the first one of a turn.
        tokens_in, tokens_out, cost: of all runs of the program; ``estimated`` where a part is.
        unpriced: runs of which nobody said what they cost.
        until: when the last of it was noted; None where that is not known.
    """

    run_id: str = ""
    turns: int = 0
    restarts: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    estimated: bool = False
    until: datetime | None = None
    unpriced: int = 0

    @property
    def is_partial(self) -> bool:
        """Whether the cost of a part of it is not known."""
        took = self.turns + self.tokens_in + self.tokens_out > 0
        return self.unpriced > 0 or (self.cost is None and took)


@dataclass(frozen=True, slots=True)
class Saved:
    """The state file of a loop.

    Attributes:
        folder: the collaboration: its real path, or its URL.
        participant: whose turns it takes, as the collaboration names them.
        process: the loop's own process.
        started: when the loop was started.
        run_id: the collaboration's run (see `acp_core.model.Snapshot`), to which all figures here
            belong; "" where it is not known.
        earlier: the figures of other runs that stood at the same place, oldest first.
        program: the preset's name; ``version`` and ``model`` as far as known.
        command: the program with its arguments, the prompt left out.
        workdir: where the program runs.
        mode: ``turns`` (the loop waits, the program takes one turn) or ``alone`` (the program
            waits by itself).
        phase, since: what it is doing, and since when.
        note: why, in a sentence.
        turn: the event that began the turn (or the last one), "" where there was none; of what is
            done once, the name of it (see `acp_core.agents.assignment`).
        own: how many events the participant had made when the run began, -1 before any run; of
            what is done once, the number of its run.
        turns: turns that were taken.
        attempt, attempts: the try of this turn that runs or ran last, and how many there are.
        restarts: runs after the first one of a turn, over all turns.
        run: the last run of the program.
        left_over: processes that the program left behind.
        tokens_in, tokens_out, cost: of all runs together; ``estimated`` where a part is.
        unpriced: runs of which nobody said what they cost.
        budget: how much of each budget is used, as it was measured last.
        capped: whether it starts nothing because a budget is used up.
        counted: the turn of the budget for one turn; ``counted_tokens`` and ``counted_cost`` what
            all runs together had taken when that turn began.
        retry_at: when a pause ends.
        limited: whether it pauses until the limit of its model service is reset.
        limit: that limit, also while the service still refuses after it should have been reset.
        failure: the class of the last attempt's failure (`acp_core.agents.failures.FailureClass`),
            "" where none failed in this turn.
        waits, troubled: attempts in a row that the model service ended, and since when.
        turn_deadline, deadline: when the turn, and the whole, must be through.
        nudged: when the loop took the last message from a person.
        ended: when the loop ended and said so; None while it runs, and for one that was killed.
        live: "yes" where turns are taken in a live session, "no: WHY" where one was possible.
    """

    folder: str
    participant: str
    process: Identity
    started: datetime
    program: str = ""
    version: str = ""
    model: str = ""
    command: tuple[str, ...] = ()
    workdir: str = ""
    mode: str = "turns"
    phase: Phase = Phase.STARTING
    since: datetime | None = None
    note: str = ""
    turn: str = ""
    own: int = -1
    turns: int = 0
    attempt: int = 0
    attempts: int = 0
    restarts: int = 0
    run: Run | None = None
    left_over: tuple[Identity, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    estimated: bool = False
    retry_at: datetime | None = None
    limited: bool = False
    limit: Limit | None = None
    failure: str = ""
    waits: int = 0
    troubled: datetime | None = None
    turn_deadline: datetime | None = None
    deadline: datetime | None = None
    nudged: datetime | None = None
    ended: datetime | None = None
    run_id: str = ""
    earlier: tuple[Figures, ...] = ()
    unpriced: int = 0
    budget: tuple[Use, ...] = ()
    capped: bool = False
    counted: str = ""
    counted_tokens: int = 0
    counted_cost: float = 0.0
    live: str = ""

    @property
    def refused_after(self) -> datetime | None:
        """When the limit should have been reset that still refuses it; None where none does."""
        limit = self.limit if self.failure == "limit" else None
        return limit.at if limit and limit.since and not limit.later else None

    @property
    def resets_later(self) -> datetime | None:
        """When the limit is reset at the latest that is tried every hour until then."""
        limit = self.limit if self.failure == "limit" else None
        return limit.at if limit and limit.later else None

    @property
    def tokens(self) -> int:
        """Tokens of all runs together, read and written."""
        return self.tokens_in + self.tokens_out

    @property
    def figures(self) -> Figures:
        """What was taken in the run that it belongs to."""
        until = max(filter(None, (self.started, self.since, self.ended)))
        return Figures(
            self.run_id, self.turns, self.restarts, self.tokens_in, self.tokens_out, self.cost,
            self.estimated, until, self.unpriced,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunnerState:
    """A loop as others see it. All texts in it are safe to show, and secrets are masked.

    Attributes:
        folder: the collaboration's key: its real path as it is, or its URL.
        participant: as the collaboration names them.
        shown: what the state file says.
        alive: whether the loop's process is running.
        program_alive: whether the program of the last run is running.
        log: the log for people; ``place`` the folder of everything that the loop keeps.
        nudge_waiting: a message from a person was left and is not yet taken.
        account: who runs it, where only its claim shows it; "" for one of this account's own.
    """

    folder: str
    participant: str
    shown: Saved
    alive: bool
    program_alive: bool
    log: str
    place: str
    nudge_waiting: bool = False
    account: str = ""

    @property
    def pid(self) -> int:
        """The process id of the loop, which may be another process's by now (see ``alive``)."""
        return self.shown.process.pid

    @property
    def started(self) -> datetime:
        """When the loop was started."""
        return self.shown.started

    @property
    def command(self) -> tuple[str, ...]:
        """The program with its arguments, the prompt left out."""
        return self.shown.command

    @property
    def phase(self) -> Phase:
        """What the loop is doing, or was when its process died."""
        return self.shown.phase

    @property
    def run(self) -> Run | None:
        """The last run of the program."""
        return self.shown.run

    @property
    def died(self) -> bool:
        """Whether the loop's process ended without saying so: killed, or the machine restarted."""
        return not self.alive and self.shown.ended is None

    @property
    def lines(self) -> tuple[str, ...]:
        """The last lines that the program printed."""
        return self.run.lines if self.run else ()

    @property
    def last_output(self) -> datetime | None:
        """When the program of the last run printed something last."""
        return self.run.last_output if self.run else None

    @property
    def first_output(self) -> datetime | None:
        """When the program of the last run printed something first."""
        return self.run.first_output if self.run else None
