"""What a seed means: hosts, what each does in which order, how it is killed, and what fails meanwhile.

The seed gives the same plan again; real processes and their timing are as they come.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

GIT, POSTGRES = "git", "postgresql"
ROVER = "rover"  # the participant that every host takes from the others
COMMON = "notes/common.md"  # the document that every host changes

_STEPS = ("before pending", "before publish", "after publish", "before document", "before log",
          "before protocol", "before base", "after base")  # fmt: skip
_MORE = {GIT: (), POSTGRES: ("postgres locked", "postgres before notice")}
_LOCAL = ("before document", "before log", "before protocol", "before base")
_FAULTS = {
    GIT: ("cut", "cut", "slow", "closed", "lock", "full", "dies before", "dies after", "sync"),
    POSTGRES: ("cut", "cut", "deaf", "mute", "slow", "closed", "killed", "frozen", "sync"),
}


class Act(NamedTuple):
    """Something that a host does.

    Attributes:
        kind: note, plain, common or rover (events), rogue (a script's line), sync, validate, review.
        token: what it is known by, everywhere.
        keyed: whether a key is given.
        pause: seconds before it.
        step: a wish of `tests.stores.process` for the first attempt; "" for none.
        killed: seconds after which the first attempt is killed; 0 for never.
        alone: only the command is killed, what it has started goes on.
        stopped: seconds for which a process that is stopped stays so.
        tries: how often it is tried.
        document: what the event speaks of.
    """

    kind: str
    token: str
    keyed: bool = True
    pause: float = 0.0
    step: str = ""
    killed: float = 0.0
    alone: bool = False
    stopped: float = 1.0
    tries: int = 3
    document: str = ""


class Fault(NamedTuple):
    """Something that fails for a while; ``host`` is whose wire, where it is one's."""

    kind: str
    host: int
    pause: float
    seconds: float


class HostPlan(NamedTuple):
    """A host: by how much its clock is ahead, whether ``acp sync`` runs there, and what it does."""

    name: str
    participant: str
    clock: float
    synced: bool
    first: Act
    acts: tuple[Act, ...]


class Plan(NamedTuple):
    """All of a run. ``rewound``: the store is put back for a while in the end."""

    seed: int
    engine: str
    hosts: tuple[HostPlan, ...]
    faults: tuple[Fault, ...]
    rewound: bool


def plan(seed: int, engine: str, hosts: int = 4, acts: int = 4) -> Plan:
    """The plan of a seed.

    Args:
        seed: what all chances depend on.
        engine: `GIT` or `POSTGRES`.
        hosts: how many there are; the first one's participant owns the collaboration.
        acts: of each host, beside its review.
    """
    chance = Random(f"{engine} {seed}")
    made = tuple(_host(chance, engine, number, acts) for number in range(hosts))
    faults = tuple(
        Fault(
            chance.choice(_FAULTS[engine]),
            chance.randrange(hosts),
            chance.uniform(0.2, 1.5),
            chance.uniform(0.3, 2),
        )
        for _ in range(40)
    )
    return Plan(seed, engine, made, faults, chance.random() < 0.3)


def _host(chance: Random, engine: str, number: int, acts: int) -> HostPlan:
    name = f"h{number}"
    synced = chance.random() < 0.25
    kinds = chance.choices(
        ("note", "plain", "common", "rover", "rogue", "sync", "validate"),
        (6, 2, 3, 3, 1, 2, 1),
        k=acts,
    )
    first = "sync" if number == 0 else "review"
    return HostPlan(
        name,
        "writer" if number == 0 else f"reader{number}",
        chance.choice((0.0, 0.0, 3600.0, -3600.0)),
        synced,
        _act(chance, engine, first, f"{name}-first", synced),
        tuple(_act(chance, engine, kind, f"{name}-{at}", synced) for at, kind in enumerate(kinds)),
    )


def _act(chance: Random, engine: str, kind: str, token: str, synced: bool) -> Act:
    document = {"note": f"notes/{token}.md", "common": COMMON}.get(kind, "")
    act = Act(kind, token, pause=chance.uniform(0, 0.3), alone=chance.random() < 0.5,
              stopped=chance.uniform(0.5, 3), document=document)  # fmt: skip
    ill = chance.random()
    if kind in ("rogue", "validate") or ill < 0.35:
        return act
    if ill < 0.55:
        return act._replace(killed=chance.uniform(0.05, 3))
    step = chance.choice((*_STEPS, *_MORE[engine]))
    if ill < 0.85:
        step = f"{step}:{chance.choice((1, 1, 2))}"
        # Without a key, a command that was killed when all was settled is another one when it comes again.
        keyed = synced or kind == "rover" or step.startswith("after base") or chance.random() < 0.6
        return act._replace(step=step, keyed=keyed)
    if ill < 0.93:
        return act._replace(step=f"{step}=stop")
    return act._replace(step=f"{chance.choice(_LOCAL)}:{chance.choice((1, 2))}=full")
