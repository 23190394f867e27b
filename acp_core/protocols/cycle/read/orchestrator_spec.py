"""What an orchestrator is asked to do: kept beside its state, so that it can be started again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from acp_core.agents import codec
from acp_core.agents.live.binding import offered
from acp_core.agents.loop_directory import LoopDirectory, place
from acp_core.agents.presets import Preset, PresetError, parse
from acp_core.agents.program import Program
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.schema import AGENTS

ORCHESTRATOR = "orchestrator"
TIMEOUT = 1_800.0  # seconds that an agent is waited for, as the specification's orchestrator does
FINALIZE_TIMEOUT = (
    180.0  # seconds of the run that only writes down what a run that was too long has done
)
ATTEMPTS = 2
AT_MOST = 32  # tasks that CD works on at the same time


@dataclass(frozen=True, slots=True)
class Spec:
    """What an orchestrator is asked to do.

    Attributes:
        root: the project's real path, in which the agents' programs run too.
        cycle: the cycle's id.
        agents: by agent, the name of its preset (``name``), the preset as a table (``preset``)
            and the model (``model``, "" for the program's own choice).
        timeout: seconds that a run may take.
        attempts: how often a run is tried in all.
        overlap: EP may begin while RA is at work, in the first iteration.
        jobs: tasks of the plan that CD works on at the same time, each in a run of its own; 1 for
            all of them in CD's own run.
        leave: end where a person is waited for.
        once: programs are started for each run, although they could hold a live session.
        permissions: the policy for live sessions; "" for that of the settings.
        budget: caps that hold from now on, as a person writes them.
    """

    root: str
    cycle: str
    agents: dict[str, object] = field(default_factory=dict)
    timeout: float = TIMEOUT
    attempts: int = ATTEMPTS
    overlap: bool = False
    jobs: int = 1
    leave: bool = False
    once: bool = False
    permissions: str = ""
    budget: tuple[str, ...] = ()

    def preset(self, agent: str) -> tuple[Preset, str]:
        """How an agent's program is run, and with which model.

        Raises:
            PresetError: the preset is missing, or is not what it should be.
        """
        held = schema.obj(self.agents.get(agent))
        table = held.get("preset")
        if not isinstance(table, Mapping):
            raise PresetError(f"{agent} has no program")
        return parse(schema.text(held.get("name")), table), schema.text(held.get("model"))

    def program(self, agent: str) -> Program:
        """The program of an agent, which runs in the project.

        Raises:
            PresetError: the preset is missing, or is not what it should be.
        """
        preset, model = self.preset(agent)
        return offered(Program(preset, self.root, self.root, model=model), once=self.once)


def with_presets(presets: Mapping[str, tuple[Preset, str]]) -> dict[str, object]:
    """The ``agents`` of a spec: a preset and a model for each."""
    return {
        name: {"name": presets[name][0].name, "preset": presets[name][0].as_table(),
               "model": presets[name][1]}
        for name in AGENTS
    }  # fmt: skip


def where(root: str) -> LoopDirectory:
    """Where the orchestrator of a project keeps what is its own."""
    return place(root, ORCHESTRATOR)


def load(root: str, cycle: str = "") -> Spec | None:
    """The kept spec, of this cycle where one is named; None where there is none that can be used."""
    try:
        spec = codec.read(Spec, where(root).spec)
        for name in AGENTS:
            spec.preset(name)
    except (codec.CodecError, PresetError):
        return None
    return spec if cycle in ("", spec.cycle) else None
