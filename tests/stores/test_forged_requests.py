"""Who can write to a store asks the host that controls a run, in another's name or for what it never offered."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from acp_core.protocols.folder.mirror import read_back
from acp_core.stores import asking, mirror
from acp_core.stores.address import parse
from acp_core.stores.engine import Asked
from acp_core.stores.hosts import open_engine
from tests.stores.databases import as_role
from tests.stores.hosts import Host
from tests.stores.mirrors import ID, conductor, configured, follow, gated_run, key, reader
from tests.support.waiting import until

NOT_PROVEN = "refused: who asks is not proven"
MINE = "anna on beta"


class People:
    """Anna, who is listed, and Mallory, who is not; both can write to the store.

    Args:
        place: for their configurations and keys.
        store: the address of the store.
    """

    def __init__(self, place: Path, store: str) -> None:
        self.store = store
        self.address = parse(f"{store}#{ID}")
        self.is_git = store.startswith("git")
        self._place = place
        self.public = {name: key(place, name)[1] for name in ("anna", "mallory")}

    def key(self, name: str) -> str:
        """The file of a person's key."""
        return str(self._place / f"key-{name}")

    def as_(self, name: str) -> str:
        """The store's address, as a person writes it."""
        return self.store if self.is_git else as_role(self.store, name)

    def signed(self, name: str, request: Asked, id: str = ID) -> Asked:
        """A request with a person's signature, where the store proves nothing."""
        config = self._place / f"config-{name}"
        config.mkdir(exist_ok=True)
        (config / "config.toml").write_text(f"[share]\nsign = {json.dumps(self.key(name))}\n")
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("ACP_CONFIG", str(config))
            return asking.signed(request, self.address._replace(id=id))

    def answer_to(self, name: str, request: Asked) -> str:
        """What becomes of a request that a person writes into the store, by no command of acp."""
        with open_engine(parse(f"{self.as_(name)}#{ID}")) as engine:
            engine.ask(request)

            def answered() -> str:
                (now,) = [each for each in engine.requests("alpha") if each.id == request.id]
                return f"{now.state}: {now.sentence}" if now.state else ""

            return until(answered, "the answer")


@pytest.fixture
def people(store: str, tmp_path: Path) -> People:
    return People(tmp_path, store)


@pytest.fixture
def alpha(people: People, tmp_path: Path) -> Iterator[Host]:
    """The host that controls the run; its owner lets Anna decide, and everybody stop."""
    deciders = [f"anna {people.public['anna']}", "anna"]
    host = conductor(tmp_path, gated_run, accept=["stop", "decide", "start"], deciders=deciders)
    host.done_here("share", people.store, "--id", ID, "--yes")
    yield host
    host.acp_here("unshare", "--yes")


@pytest.fixture
def beta(people: People, alpha: Host, tmp_path: Path) -> Host:
    """Anna's host."""
    return configured(reader(tmp_path, people.as_("anna")), sign=people.key("anna"))


def state(host: Host) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((host.folder / ".agentxchain/state.json").read_bytes())
    return found


def approval(beta: Host, values: Mapping[str, Any], **changed: Any) -> Asked:
    """The request to approve the gate as it stands, as Anna's host would make it."""
    manifest = mirror.read(beta.folder)
    assert manifest is not None
    matter = mirror.matter(read_back(str(beta.folder), manifest))
    given = {"mirror": manifest.mark, "values": values, "matter": matter} | changed
    return asking.about("alpha", asking.DECIDE, "approve_gate", given, MINE)


def another(request: Asked, number: int) -> Asked:
    """The same request under a name of its own."""
    return request._replace(id=f"{int(request.id, 16) + number:024x}")


@pytest.mark.slow
def test_nobody_decides_in_another_name(people: People, alpha: Host, beta: Host) -> None:
    """Only Anna's own word counts: not her name, nor what she signed for something else."""
    before = state(alpha)
    made = [another(approval(beta, {"comment": "Agreed"}), number) for number in range(7)]
    forged = [made[0]._replace(proven="anna"), people.signed("mallory", made[1])]
    if people.is_git:
        told = json.loads(made[2].text)
        said = json.dumps(told | {"values": {"comment": "Whatever"}})
        forged += [
            people.signed("anna", made[2])._replace(text=said),
            people.signed("anna", made[3]._replace(participant="reject_gate"))._replace(participant="approve_gate"),
            people.signed("anna", made[4]._replace(host="gamma"))._replace(host="alpha"),
            people.signed("anna", made[5]._replace(verb="stop"))._replace(verb="decide"),
            people.signed("anna", made[6], id="another"),
        ]  # fmt: skip
    for each in forged:
        assert people.answer_to("mallory", each).startswith(NOT_PROVEN), each
        assert state(alpha) == before
    mine = people.signed("anna", approval(beta, {"comment": "Agreed", "by": "mallory"}))
    assert people.answer_to("anna", mine).startswith("done"), "her own"
    follow(alpha, beta)
    assert state(alpha)["phase"] == "implementation"
    ledger = (alpha.folder / ".agentxchain/decision-ledger.jsonl").read_text(encoding="utf-8")
    assert '"anna"' in ledger and "mallory" not in ledger


@pytest.mark.slow
def test_what_is_asked_for_is_what_was_offered_and_shown(
    people: People, alpha: Host, beta: Host
) -> None:
    """Even of who is listed: no other run, no earlier state, no act or input beside those offered."""
    before = state(alpha)
    values = {"comment": "Agreed"}
    asked = approval(beta, values)
    cases = [
        # Whoever may only stop has a decision made under that word.
        ("mallory", asked._replace(verb="stop"), "the run cannot be asked for approve_gate"),
        ("mallory", asked._replace(verb="start", participant="pm", text=""), "can be asked to stop or to decide"),
        ("mallory", asked._replace(verb="run", participant="pm", text="rm -rf /"), "not a request that this version of acp knows"),
        ("anna", asked._replace(participant="step"), "the run cannot be asked for step"),
        ("anna", asked._replace(participant="--help"), "the run cannot be asked for --help"),
        ("anna", approval(beta, values, mirror="0" * 32), "the request is about another run"),
        ("anna", approval(beta, values, matter="0" * 64), "the run has moved on since this was shown"),
        ("anna", approval(beta, {"command": "touch x"}), "approve_gate: only the owner of this machine can set command"),
        ("anna", approval(beta, {"comment": "Agreed", "--workdir": ""}), "only the owner of this machine can set --workdir"),
        ("anna", approval(beta, {"comment": "Agreed", "shade": "x"}), "approve_gate: unknown input: shade"),
        ("anna", approval(beta, {"comment": ["a", {"b": 1}]}), "an input is refused"),
        ("anna", asked._replace(text="["), "the request is about another run"),
    ]  # fmt: skip
    for number, (name, made, why) in enumerate(cases):
        request = another(made, number)
        if name == "anna":
            request = people.signed("anna", request)
        said = people.answer_to(name, request)
        assert said.startswith("refused: ") and why in said, said
        assert state(alpha) == before, why
