"""States of initiatives: their barriers, their workstreams, and what is broken in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.golden.builders import governed_files as files
from tests.golden.builders.governed import SAID, STATE, Object, Place
from tests.golden.builders.initiatives import NAMES, House, configuration
from tests.golden.state import State

COORDINATOR = ".coordinator/state.json"


def house(*acts: Callable[[House], object], **more: object) -> Callable[[Path], Path]:
    """What builds an initiative by commands, one after the other."""

    def build(folder: Path) -> Path:
        made = House(folder, **more)
        for act in acts:
            act(made)
        made.rest()
        return folder

    return build


def part(build: Callable[[Path], Path], name: str) -> Callable[[Path], Path]:
    """A workstream of what is built."""
    return lambda folder: build(folder) / name


def one_waits(house: House) -> None:
    """One of two is at the barrier."""
    house.begin()
    house.plans("auth")


def rejected(house: House) -> None:
    """The gate sent one of both back."""
    house.at_gate()
    words = ("--workstream", "web", "--comment", "No test of the expiry.")
    house.acp("coordinator", "reject-barrier", ".", *words, *SAID)


def resync_failed(house: House) -> None:
    """An approval that moved nobody, since one state is damaged."""
    house.at_gate()
    house.write(f"web/{STATE}", "{")
    house.acp("coordinator", "approve-barrier", ".", "--comment", "Go.", *SAID, code=1)


def state_lost(house: House) -> None:
    """A workstream's state is gone."""
    one_waits(house)
    (house.folder / "auth" / STATE).unlink()


def walked_across(house: House) -> None:
    """A workstream that was held is in the next phase, and nobody approved it."""
    one_waits(house)
    house.edit(f"auth/{STATE}", status="active", phase="implementation", blocked_on=None)


def last_gate(house: House) -> None:
    """Both ask to complete."""
    house.crossed()
    for name in NAMES:
        house.builds(name)
        house.tests(name)


def completed(house: House) -> None:
    """The last gate was approved."""
    last_gate(house)
    house.approve()


def blocked(house: House) -> None:
    """A workstream is stopped by a human."""
    one_waits(house)
    house.acp("escalate", "web", "--reason", "No bulb.", *SAID)
    house.acp("coordinator", "step", ".")


def coordinator_damaged(house: House) -> None:
    """The coordinator's own state cannot be read."""
    house.at_gate()
    house.write(COORDINATOR, '{"schema_version": "1.0", "super_')


def hooked(house: House) -> None:
    """It names a script that nobody has allowed."""
    house.write("hooks/reached.sh", "#!/bin/sh\nexit 0\n")
    (house.folder / "hooks/reached.sh").chmod(0o755)
    house.at_gate()


def changed_hook(house: House) -> None:
    """The script is another since it was shown."""
    hooked(house)
    house.write("hooks/reached.sh", "#!/bin/sh\nexit 1\n")


def existing(
    kind: str, barrier_is: str, reached: tuple[str, ...], **of_state: object
) -> Callable[[Path], Path]:
    """What builds an initiative in the existing program's layout, with one barrier."""

    def build(folder: Path) -> Path:
        place = Place(folder)
        place.write("agentxchain-multi.json", {
            "schema_version": "0.1",
            "project": {"id": "house", "name": "House"},
            "repos": {name: {"path": f"./repos/{name}"} for name in NAMES},
            "workstreams": {"plan": {"phase": "planning", "repos": list(NAMES),
                                     "completion_barrier": kind}},
            "routing": {"planning": {}, "implementation": {}, "verification": {}},
        })  # fmt: skip
        linked = {"run_id": files.RUN, "status": "linked", "phase": "planning"}
        told: Object = {
            "schema_version": "0.1", "super_run_id": "srun_1", "project_id": "house",
            "status": "active", "phase": "planning", "repo_runs": dict.fromkeys(NAMES, linked),
            "pending_gate": None, "created_at": files.AT, "updated_at": files.AT,
        }  # fmt: skip
        place.write(".agentxchain/multirepo/state.json", told | of_state)
        barrier = {"workstream_id": "plan", "type": kind, "status": barrier_is, "created_at": files.AT,
                   "required_repos": list(NAMES), "satisfied_repos": list(reached)}  # fmt: skip
        place.write(".agentxchain/multirepo/barriers.json", {"plan_completion": barrier})
        for name in NAMES:
            history = (files.accepted(),) if name in reached else ()
            turns = {} if history else files.turn()
            files.make(Place(folder / "repos" / name), files.state(active_turns=turns), *history)
        return folder

    return build


def empty_context(folder: Path) -> Path:
    """The document that agents read of the others tells them nothing."""
    existing("all_repos_accepted", "pending", ())(folder)
    place = folder / ".agentxchain/multirepo/context/ctx_1"
    place.mkdir(parents=True)
    (place / "COORDINATOR_CONTEXT.md").write_text("Decisions: [object Object]\n")
    return folder


def written(value: object) -> Callable[[Path], Path]:
    """What builds an initiative of which only the configuration is there."""

    def build(folder: Path) -> Path:
        Place(folder).write("agentxchain-multi.json", value)
        return folder

    return build


def cyclic() -> Object:
    """Workstreams that wait for each other."""
    made = configuration()
    for stream, other in zip(made["workstreams"], reversed(NAMES), strict=True):
        stream["depends_on"] = [other]
    return made


def hostile() -> Object:
    """Texts that try to be more than text, and addresses that could run something."""
    made = configuration(description=files.HOSTILE)
    made["workstreams"][0] |= {"repo": "ext::sh -c touch% /tmp/x", "name": files.HOSTILE}
    made["barriers"][0] |= {"description": files.HOSTILE, "phase": files.HOSTILE}
    return made


GATE = {"gate": "initiative_ship", "gate_type": "phase_transition", "from": "planning",
        "to": "implementation", "required_repos": list(NAMES), "requested_at": files.LATER}  # fmt: skip
HOOKS = {"on_barrier_reached": "./hooks/reached.sh"}

STATES = (
    State("initiative-written-down", house()),
    State("initiative-begun", house(House.begin)),
    State("initiative-one-waits", house(one_waits)),
    State("initiative-gate-open", house(House.at_gate)),
    State("initiative-gate-rejected", house(rejected)),
    State("initiative-crossed", house(House.crossed)),
    State("initiative-last-gate", house(last_gate)),
    State("initiative-completed", house(completed)),
    State("initiative-resync-failed", house(resync_failed)),
    State("initiative-workstream-blocked", house(blocked)),
    State("initiative-workstream-lost", house(state_lost)),
    State("initiative-walked-across", house(walked_across), (
        "The crossing that nobody approved has no remedy.",)),
    State("workstream-walked-across", part(house(walked_across), "auth"), (
        "Step and accept-turn go on after a crossing that nobody approved.",)),
    State("workstream-held", part(house(one_waits), "auth")),
    State("initiative-state-damaged", house(coordinator_damaged)),
    State("initiative-hook-changed", house(changed_hook, hooks=HOOKS)),
    State("initiative-cyclic", written(cyclic())),
    State("initiative-config-torn", written('{"schema_version": "1.0", "super_run_id"')),
    State("initiative-hostile-text", written(hostile())),
    State("existing-pending", existing("all_repos_accepted", "pending", ("auth",))),
    State("existing-satisfied", existing("all_repos_accepted", "satisfied", NAMES)),
    State("existing-shared-gate", existing("shared_human_gate", "pending", NAMES)),
    State("existing-gate-open", existing(
        "all_repos_accepted", "satisfied", NAMES, pending_gate=GATE)),
    State("existing-blocked", existing(
        "all_repos_accepted", "pending", (), status="blocked", blocked_reason="web is gone")),
    State("existing-completed-early", existing(
        "all_repos_accepted", "pending", ("auth",), status="completed")),
    State("existing-empty-context", empty_context),
)  # fmt: skip
