"""States of agents on the network, as their own folders tell them when they have ended."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tests.golden.builders.agents import STORE, Agent, settled
from tests.golden.state import State

HOSTILE = "\x1b[31mred\x1b[0m [b]bold[/b] \u202egnol <script>alert(1)</script> | `x`\n# Heading"


def alone(
    *acts: Callable[[Agent], object], options: tuple[str, ...] = ()
) -> Callable[[Path], Path]:
    """What builds an agent that no other one knows."""

    def build(work: Path) -> Path:
        with Agent(work.parent, "A", *options) as agent:
            for act in acts:
                act(agent)
            agent.end()
        return settled(agent, work)

    return build


def pair(
    *acts: Callable[[Agent, Agent], object], shown: str = "A", options: tuple[str, ...] = ()
) -> Callable[[Path], Path]:
    """What builds two agents that are connected, of which one is ``shown``; B ends first."""

    def build(work: Path) -> Path:
        with Agent(work.parent, "A", *options) as a, Agent(work.parent, "B", *options) as b:
            a.meet(b)
            for act in acts:
                act(a, b)
            b.end()
            a.until_alone()
            a.end()
        return settled({"A": a, "B": b}[shown], work)

    return build


def says(agent: Agent) -> None:
    """Somebody says three things to it, one of them with data and a file."""
    agent.post("/message:send", role="user", text="Boil it", message_id="m1", **{"from": "Cook"})
    parts = [
        {"type": "data", "content": {"minutes": 10}},
        {"type": "file", "url": "https://example.org/egg.png", "media_type": "image/png"},
    ]
    agent.post(
        "/message:send",
        role="user",
        parts=parts,
        message_id="m2",
        context_id="kitchen",
        **{"from": "Cook"},
    )
    agent.post("/message:send", role="user", text=HOSTILE, message_id="m3", **{"from": "Mallory"})


def local_tasks(agent: Agent) -> None:
    """Tasks of its own, one in each state."""
    ways = {
        "new": (),
        "working": ("working",),
        "asks": ("working", "input_required"),
        "done": ("working", "completed"),
        "failed": ("working", "failed"),
    }
    for name, states in ways.items():
        agent.post("/tasks", text=f"Task {name}", task_id=f"task_{name}")
        for status in states:
            more = {"completed": {"artifact": "boiled"}, "failed": {"error": "No water."}}
            agent.post(f"/tasks/task_{name}:update", status=status, **more.get(status, {}))
    agent.post("/tasks", text="Task canceled", task_id="task_canceled")
    agent.post("/tasks/task_canceled:cancel")


def delegates(a: Agent, b: Agent) -> None:
    """A gives B a task."""
    a.post("/tasks", text="Boil an egg", delegate=True, task_id="task_egg", message_id="m_egg")
    b.until_tasks(task_egg="submitted")
    for each in (a, b):
        each.until_sent()


def reports(status: str, **more: object) -> Callable[[Agent, Agent], object]:
    """B says how its task goes, and A hears of it."""

    def act(a: Agent, b: Agent) -> None:
        b.post("/tasks/task_egg:update", status=status, **more)
        a.until_tasks(task_egg=status)

    return act


def asks(a: Agent, b: Agent) -> None:
    """B asks how long."""
    b.post("/tasks/task_egg:update", status="working")
    a.until_tasks(task_egg="working")
    b.post("/tasks/task_egg:update", status="input_required")
    a.until_tasks(task_egg="input_required")


def answers(a: Agent, b: Agent) -> None:
    """A says how long."""
    a.post("/tasks/task_egg:continue", text="Ten minutes", message_id="m_ten")
    b.until_tasks(task_egg="working")


def cancels(a: Agent, b: Agent) -> None:
    """A cancels the task."""
    a.post("/tasks/task_egg:cancel")
    b.until_tasks(task_egg="canceled")


def talk(a: Agent, b: Agent) -> None:
    """Two messages each way, the last one an answer."""
    a.post("/message:send", text="Hello", message_id="m1")
    b.until_messages(1)
    b.post("/message:send", text="Hello to you", message_id="m2", context_id="greeting")
    a.until_messages(2)
    b.post("/reply", text="And goodbye", message_id="m3", correlation_id="m1")
    a.until_messages(3)


def queues(work: Path) -> Path:
    """The peer was killed; two messages and a task wait for it."""
    with Agent(work.parent, "A") as a, Agent(work.parent, "B") as b:
        a.meet(b)
        delegates(a, b)
        b.end(signal.SIGKILL)
        a.until_alone()
        for number in range(2):
            a.post("/message:send", text=f"Message {number}", message_id=f"m{number}")
        a.end()
    return settled(a, work)


def killed(work: Path) -> Path:
    """The agent was killed while its peer ran."""
    with Agent(work.parent, "A") as a, Agent(work.parent, "B") as b:
        a.meet(b)
        delegates(a, b)
        a.end(signal.SIGKILL)
        b.end()
    return settled(a, work)


def statement(*statements: str) -> Callable[[Path], None]:
    """Damage: statements that somebody ran on the store."""

    def damage(store: Path) -> None:
        with closing(sqlite3.connect(store)) as db:
            for each in statements:
                db.execute(each)
            db.commit()

    return damage


def truncated(store: Path) -> None:
    """Damage: the second half of the store is gone."""
    store.write_bytes(store.read_bytes()[:6000])


def damaged(damage: Callable[[Path], object]) -> Callable[[Path], Path]:
    """What builds an agent whose store somebody damaged."""

    def build(work: Path) -> Path:
        place = alone(says, local_tasks)(work)
        damage(place / STORE)
        return place

    return build


STATES = (
    State("new", alone(options=("--skills", "cook,bake", "--description", "Cooks."))),
    State("told", alone(says), ("Rows of the timeline say only that there was a message.",)),
    State("tasks-of-every-state", alone(local_tasks)),
    State("peer-met", pair()),
    State("messages-both-ways", pair(talk)),
    State("messages-both-ways-other-side", pair(talk, shown="B")),
    State("messages-signed", pair(talk, options=("--secret", "A shared secret"))),
    State("task-delegated", pair(delegates)),
    State("task-received", pair(delegates, shown="B")),
    State("task-working", pair(delegates, reports("working"))),
    State("task-input-required", pair(delegates, asks)),
    State("task-asked-by-us", pair(delegates, asks, shown="B")),
    State("task-answered", pair(delegates, asks, answers)),
    State("task-completed", pair(delegates, reports("completed", artifact="A boiled egg"))),
    State("task-failed", pair(delegates, reports("failed", error="No water."))),
    State("task-canceled", pair(delegates, cancels)),
    State("messages-queued", queues),
    State("killed", killed),
    State("store-truncated", damaged(truncated)),
    State("store-no-database", damaged(lambda store: store.write_text("no database"))),
    State("store-of-another-version", damaged(statement("PRAGMA user_version = 99"))),
    State("store-without-log", damaged(statement("DROP TABLE log"))),
    State("store-with-odd-rows", damaged(statement(
        "UPDATE messages SET envelope = 'not json' WHERE seq = 1",
        "UPDATE messages SET envelope = '[1, 2]', at = -1 WHERE seq = 2",
        "UPDATE tasks SET content = '{}' WHERE id = 'task_done'",
        "UPDATE tasks SET status = 'thinking' WHERE id = 'task_new'",
    ))),
    State("store-without-card", damaged(statement("UPDATE meta SET value = '[]' WHERE key = 'card'"))),
)  # fmt: skip
