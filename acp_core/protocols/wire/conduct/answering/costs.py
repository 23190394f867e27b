"""What answers cost: they count in the budget of this account's day, which stops them when it is used up.

A message that comes then is answered with a failure: whoever sent it learns at once that nobody
works on it. The sender is told no figures; they stand in the agent's log.
"""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

from acp_core.agents import budgets, detached_run, ledger, session, spending, streams
from acp_core.agents.budgets import Cap, Spent, Use
from acp_core.agents.identity import myself
from acp_core.agents.output import Output
from acp_core.agents.presets import Preset
from acp_core.agents.state import Run
from acp_core.files import atomic
from acp_core.model.clock import utc_now

logger = logging.getLogger("acp.wire")
USED_UP = "the budget of this agent for today is used up"
_COUNTED = "counted"  # the file in the folder of an attempt that says that its cost was counted
_DAY = "day"


class Meter:
    """Measures one attempt by what it has printed so far.

    Args:
        folder: of the attempt; need not hold anything yet.
        preset: of its program.
        live: it is a turn of a live session.
    """

    def __init__(self, folder: Path, preset: Preset, *, live: bool) -> None:
        stream = streams.LIVE if live else preset.stream
        self._output = Output(folder / detached_run.OUT, folder / detached_run.ERR, stream)
        self._prices = (preset.price_in, preset.price_out)
        self._run = Run(0, myself(), utc_now(), live=live)

    def measure(self) -> Run:
        """What it took so far."""
        self._output.read(time.time())
        return self._measured()

    def end(self) -> Run:
        """What it took in all, once it has ended."""
        self._output.end(time.time())
        return self._measured()

    def _measured(self) -> Run:
        return session.measured(self._run, self._output, self._prices, utc_now())


class Costs:
    """What the answers of one agent cost; used from any thread.

    Args:
        key: of the agent, as a collaboration; ``name`` the agent's.
        preset: of the program that answers.

    Raises:
        Refused: the budgets of the settings are not what they should be.
    """

    def __init__(self, key: str, name: str, preset: Preset) -> None:
        self._key, self._name, self._preset = key, name, preset
        self._caps = budgets.in_force(key, name, "", utc_now)
        self._lock = threading.Lock()
        self._running: dict[Path, Spent] = {}  # what attempts took that have not ended
        self._said: set[tuple[str, float, bool]] = set()

    @property
    def is_capped(self) -> bool:
        """Whether the day has a budget at all."""
        return bool(self._of_day())

    def meter(self, folder: Path, *, live: bool) -> Meter:
        """What measures the attempt in ``folder``."""
        return Meter(folder, self._preset, live=live)

    def over(self, folder: Path | None = None, meter: Meter | None = None) -> str:
        """Why no program may work on an answer now, for the one who asked; "" where one may.

        Args:
            folder: of an attempt that is at work, which ``meter`` measures.
            meter: of this attempt.
        """
        wanted = self._of_day()
        if not wanted:
            return ""
        with self._lock:
            if folder is not None and meter is not None:
                self._running[folder] = spending.of_run(meter.measure())
            own = sum(self._running.values(), Spent())
            found = budgets.uses(wanted, {_DAY: spending.of_day(utc_now(), own)})
            for each in found:
                self._say(each)
        return USED_UP if any(each.is_over for each in found) else ""

    def count(self, folder: Path, *, live: bool) -> None:
        """Count an attempt that has ended; once, also where an agent before this one saw its end.

        Args:
            folder: of the attempt.
            live: it was a turn of a live session.
        """
        with self._lock:
            self._running.pop(folder, None)
            try:  # first the mark: what a kill in between loses is not counted twice
                atomic.create(folder / _COUNTED, b"", sync=False, private=True)
            except OSError:  # it is there already, or nothing can be written
                return
            run = self.meter(folder, live=live).end()
            ledger.note(run, self._key, self._name, utc_now())

    def _of_day(self) -> list[Cap]:
        return [each for each in self._caps() if each.scope == _DAY]

    def _say(self, use: Use) -> None:
        """Tell the owner, once for each budget, that it is nearly or all used up."""
        what = (use.unit, use.amount, use.is_over)
        if use.is_near and what not in self._said:
            self._said.add(what)
            logger.warning("%s", use.sentence)
