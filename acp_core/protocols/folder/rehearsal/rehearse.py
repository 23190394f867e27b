"""Makes the collaboration of a scenario and the company that will carry it out."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from acp_core.files import modes
from acp_core.model.clock import utc_now
from acp_core.person.paths import state_folder
from acp_core.protocols.folder.rehearsal.processes import Company, environment, python
from acp_core.protocols.folder.rehearsal.scenario import Scenario, load, names
from acp_core.protocols.folder.schema import V2
from acp_core.rehearsal.contract import Rehearsal, RehearsalError

DEFAULT = "order-retries"
OVERHEAD = 30.0  # seconds that starting commands may take on a busy machine
PARTICIPANT = "acp_core.protocols.folder.rehearsal.participant"


class FolderRehearsal(Rehearsal):
    """A scenario in a folder, with a company of processes."""

    def __init__(self, scenario: Scenario, folder: Path, logs: Path, speed: float) -> None:
        self.location = str(folder)
        self.logs = str(logs)
        longest = max(step.think + sum(w.seconds for w in step.writes) for step in scenario.steps)
        self.pause = longest / speed + OVERHEAD
        self._company = Company(
            {
                name: python(
                    PARTICIPANT,
                    *("--scenario", scenario.name, "--participant", name, "--folder", str(folder)),
                    *("--drafts", str(logs), "--speed", f"{speed:g}", "--supervised"),
                )
                for name in scenario.participants
            },
            logs,
        )

    def start(self) -> None:
        """See `Rehearsal.start`.

        Raises:
            RehearsalError: a process cannot be started.
        """
        try:
            self._company.start()
        except OSError as error:
            raise RehearsalError(f"a participant cannot be started: {error}") from None

    def running(self) -> tuple[str, ...]:
        """See `Rehearsal.running`."""
        return self._company.running()

    def failures(self) -> tuple[str, ...]:
        """See `Rehearsal.failures`."""
        return self._company.failures()

    def stop(self) -> None:
        """See `Rehearsal.stop`."""
        self._company.stop()


def rehearse(
    folder: Path | None = None, *, scenario: str = "", speed: float = 1.0
) -> FolderRehearsal:
    """Make the collaboration in ``folder`` with ``acp init``; nobody acts in it before `Rehearsal.start`.

    Args:
        folder: where; it need not exist. None: in a new temporary folder, which is kept.
        scenario: its name; "" for the usual one.
        speed: how many times as fast as written in the scenario.

    Raises:
        RehearsalError: there is no such scenario, or a folder cannot be written.
    """
    if scenario and scenario not in names():
        raise RehearsalError(f"unknown scenario {scenario!r} (scenarios: {', '.join(names())})")
    chosen = load(scenario or DEFAULT)
    logs = state_folder() / "demo" / f"{utc_now():%Y-%m-%d-%H%M%S}-{os.getpid()}"
    try:
        modes.private_folder(logs)
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="acp-demo-"), chosen.name)
    except OSError as error:
        raise RehearsalError(f"no folder for a rehearsal: {error}") from None
    folder = Path(os.path.abspath(folder))
    begin(chosen, folder)
    return FolderRehearsal(chosen, folder, logs, speed)


def begin(scenario: Scenario, folder: Path) -> None:
    """Make the collaboration of a scenario with ``acp init``.

    Raises:
        RehearsalError: that is not possible.
    """
    options = ["--folder", str(folder), "--objective", scenario.objective]
    for name in scenario.participants:
        options += ["--participant", name]
    for gate in scenario.gates:
        options += ["--completion", gate]
    if scenario.dialect == V2 and scenario.deliverable:
        options += ["--primary-deliverable-type", scenario.deliverable.type]
        options += ["--primary-deliverable-file", scenario.deliverable.file]
    ended = subprocess.run(
        python("acp_core", "init", *options),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        env=environment(),
        check=False,
    )
    if ended.returncode:
        said = (ended.stderr.strip() or ended.stdout.strip()).splitlines()
        raise RehearsalError(said[-1] if said else f"acp init ended with {ended.returncode}")
