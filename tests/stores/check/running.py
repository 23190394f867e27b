"""Carries a plan out: hosts at once, each with its own home, folder and way to the store, and faults."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.stores.check.backends import Backend
from tests.stores.check.forking import Forks, Running
from tests.stores.check.history import OK, REFUSED, UNKNOWN, Attempt, History, Seen
from tests.stores.check.planning import ROVER, Act, Fault, HostPlan, Plan
from tests.stores.hosts import ID, Host

_AGAIN = 0.3  # seconds between two attempts
_REFUSALS = {2, 3, 7, 8, 9}


class Player:
    """A host, and what it does.

    Args:
        plan: of the host.
        number: of the host.
        place: where its home is made.
        forks: what runs its commands.
        history: where it is written down.
    """

    def __init__(
        self, plan: HostPlan, number: int, place: Path, forks: Forks, history: History
    ) -> None:
        self.plan, self.number = plan, number
        self.host = Host(plan.name, place)
        self.folder = str(self.host.folder)
        self._forks = forks
        self._history = history
        self._synced: Running | None = None
        self.ended = False

    def run(self, *words: str) -> tuple[int, str]:
        """A command to its end."""
        return self._forks.run(words, self.host.env, clock=self.plan.clock)

    def must(self, *words: str) -> str:
        """A command that has to work; what it said."""
        code, said = self.run(*words)
        assert code == 0, (self.plan.name, words, code, said)
        return said

    def start_syncing(self) -> None:
        """Start ``acp sync``, where that runs on this host."""
        if self.plan.synced and not self.ended:
            words = ("sync", self.folder)
            self._synced = self._forks.start(words, self.host.env, clock=self.plan.clock)

    def end_syncing(self, number: int) -> None:
        """End it, by a signal."""
        if self._synced is not None:
            if number == signal.SIGKILL:
                self._synced.kill()
            else:
                self._synced.signal(number)
            self._synced.wait()
            if "Traceback" in self._synced.said():
                self._history.wrong.append(
                    f"{self.plan.name}: acp sync: {self._synced.said()[-1500:]}"
                )
            self._synced = None

    def act(self, act: Act) -> None:
        """Do one thing of the plan."""
        time.sleep(act.pause)
        self._history.count(act.kind)
        name = self.plan.name
        if act.kind == "validate":
            code, said = self.run("validate", self.folder)
            if code not in (
                0,
                1,
                2,
            ):  # 2: a script's line, or a kill, has left protocol.json behind
                self._history.wrong.append(f"{name}: validate ended with {code}: {said}")
        elif act.kind == "sync":
            self._command(act, ("sync", self.folder, "--once"), first=True)
        elif act.kind == "rogue":
            self._rogue(act)
        else:
            self.append(act)

    def append(self, act: Act) -> bool:
        """Append an event, however often the plan tries it; whether it is acknowledged."""
        words = self._words(act)
        for number in range(act.tries):
            attempt = self._attempt(act, words, first=number == 0)
            self._history.attempts.append(attempt)
            if attempt.outcome == OK:
                return True
            if "cannot take" in attempt.said:
                self.run("repair", self.folder, "--yes")
            elif attempt.outcome == REFUSED and attempt.code in (2, 7):
                return False
            time.sleep(_AGAIN)
        return False

    def _words(self, act: Act) -> tuple[str, ...]:
        """The command of an event; what it speaks of is written now."""
        words = ["--summary", f"{act.token}.", "--json"]
        if act.keyed:
            words += ["--key", act.token]
        if act.kind == "review":
            text = f"Review {act.token}."
            self._history.edits.append((f"none:{self.plan.name}", text))
            return self.host.event(
                self.plan.participant,
                "review_submitted",
                "--reply-to",
                "2",
                "--review",
                text,
                *words,
            )
        if act.document:
            words += ["--doc", act.document]
            if act.kind != "last":
                self._edit(act.document, act.token)
        if act.kind == "rover":
            words.append("--take")
        who = ROVER if act.kind == "rover" else self.plan.participant
        return self.host.event(who, "blocked", "--reply-to", "1", *words)

    def _edit(self, document: str, token: str) -> None:
        """Add a line to a document, as an agent does that has read it."""
        path = self.host.folder / document
        path.parent.mkdir(exist_ok=True)
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(f"{before}Edit {token}.\n", encoding="utf-8")
        self._history.edits.append((self.plan.name, f"Edit {token}."))

    def _attempt(self, act: Act, words: Sequence[str], *, first: bool) -> Attempt:
        began = time.monotonic()
        code, printed, said = self._command(act, words, first=first)
        ended = time.monotonic()
        seq = 0
        if code == 0:
            outcome, seq = OK, int(json.loads(printed)["seq"])
        elif "not appended" in said or code in _REFUSALS:
            outcome = REFUSED
        else:
            outcome = UNKNOWN
        self._history.count(outcome)
        who = ROVER if act.kind == "rover" else self.plan.participant
        return Attempt(act.token, self.plan.name, who, act.kind, began, ended, outcome, seq, code, said,
                       take=act.kind == "rover")  # fmt: skip

    def _command(self, act: Act, words: Sequence[str], *, first: bool) -> tuple[int, str, str]:
        """Run a command, and do to its first run what the plan does: exit code, and what it printed and said."""
        step = act.step if first else ""
        process = self._forks.start(words, self.host.env, step=step, clock=self.plan.clock)
        if first and act.killed and not process.ends_within(act.killed):
            process.kill(alone=act.alone)
        while step.endswith("=stop") and not process.ends_within(act.stopped):
            process.signal(signal.SIGCONT)
        code = process.wait()
        printed, said = process.printed(), process.said()
        if code < 0:
            self._history.count("killed")
        if "Traceback" in said:
            self._history.wrong.append(f"{self.plan.name}: {words}: {said[-1500:]}")
        elif code and code > 0 and not said.startswith(("error: ", "warning: ")):
            self._history.wrong.append(
                f"{self.plan.name}: {words} ended with {code} and says: {said}"
            )
        return code, printed, said

    def _rogue(self, act: Act) -> None:
        """Append a line as a program does that knows no acp."""
        log = self.host.folder / "events.jsonl"
        last = json.loads(log.read_bytes().splitlines()[-1])
        event = {"seq": last["seq"] + 1, "from": self.plan.participant, "event": "blocked", "at": last["at"],
                 "summary": f"{act.token}.", "reply_to": 1}  # fmt: skip
        began = time.monotonic()
        fd = os.open(log, os.O_WRONLY | os.O_APPEND)
        os.write(fd, json.dumps(event).encode() + b"\n")
        os.close(fd)
        self._history.attempts.append(
            Attempt(
                act.token, self.plan.name, self.plan.participant, "rogue", began, began, UNKNOWN
            )
        )

    def settle(self) -> None:
        """Look at the store until that works, whatever stands in the way."""
        said = ""
        for _ in range(12):
            code, said = self.run("sync", self.folder, "--once")
            if code == 0:
                return
            if "cannot take" in said:
                self.run("repair", self.folder, "--yes")
            time.sleep(_AGAIN)
        raise AssertionError(f"{self.plan.name} cannot synchronize though nothing fails: {said}")

    def tip(self) -> str:
        """Where the store stood when it was read last."""
        return str(json.loads((self.host.folder / ".acp" / "base.json").read_bytes())["tip"]["id"])

    def unpublished(self) -> list[str]:
        """Notes that are not as the store had them when it was read last."""
        known = json.loads((self.host.folder / ".acp" / "base.json").read_bytes())["files"]
        return [
            name
            for name, digest in self.host.files().items()
            if name.startswith("notes/") and known.get(name, {}).get("sha256") != digest
        ]

    def look(self) -> None:
        """What a reader sees of the folder at this moment."""
        seen = self._history.seen.setdefault(self.plan.name, Seen())
        try:
            base = json.loads((self.host.folder / ".acp" / "base.json").read_bytes())
            log = (self.host.folder / "events.jsonl").read_bytes()
        except FileNotFoundError:
            return  # it has not joined yet
        seen.looks += 1
        prefix = log[: base["tip"]["size"]]
        if not prefix.startswith(seen.prefix):
            self._history.wrong.append(f"{self.plan.name}: its log does not continue what it was")
        elif len(prefix) == base["tip"]["size"]:
            seen.prefix = prefix
        else:
            self._history.wrong.append(
                f"{self.plan.name}: its log is shorter than its manifest says"
            )
        new = set(log[: log.rfind(b"\n") + 1].splitlines(True)) - seen.lines
        seen.lines |= new
        for line in new:
            document = json.loads(line).get("doc")
            if document and not (self.host.folder / document).exists():
                self._history.wrong.append(
                    f"{self.plan.name}: {document} is named and is not there"
                )


def carry_out(
    plan: Plan, place: Path, backend: Backend, forks: Forks
) -> tuple[History, list[Player]]:
    """Carry a plan out; what happened, and the hosts, which hold what they hold in the end."""
    history = History()
    players = [
        Player(each, number, place, forks, history) for number, each in enumerate(plan.hosts)
    ]
    _begin(players, backend)
    over = threading.Event()
    reader = threading.Thread(target=_read, args=(players, over))
    reader.start()
    try:
        for each in players:
            each.start_syncing()
        _stage(plan.faults[:8], players, backend, history, lambda player: [player.plan.first])
        _together(players, Player.settle)
        if plan.rewound:
            backend.remember()
        _stage(plan.faults[8:], players, backend, history, lambda player: list(player.plan.acts))
        for each in players:
            each.ended = True
            each.end_syncing(signal.SIGTERM)
        _quiet(players)
        if plan.rewound:
            _rewind(players, backend, history)
        _level(players)
    finally:
        over.set()
        reader.join()
    return history, players


def _begin(players: Sequence[Player], backend: Backend) -> None:
    """The first host shares a collaboration that the others join, and proposes."""
    first, *others = players
    people = [word for each in players for word in ("--participant", each.plan.participant)]
    first.must("init", "--folder", first.folder, *people, "--participant", ROVER,
               "--objective", "Choose", "--completion", "Chosen")  # fmt: skip
    first.must("share", first.folder, backend.address(0), "--id", ID, "--yes")
    _together(
        others, lambda each: each.must("join", f"{backend.address(each.number)}#{ID}", each.folder)
    )
    first.host.write("proposal.md", "# The proposal\n")
    first.must(
        *first.host.event("writer", "proposal_submitted", "--reply-to", "1", "--doc", "proposal.md")
    )
    _together(others, lambda each: each.must("sync", each.folder, "--once"))


def _read(players: Sequence[Player], over: threading.Event) -> None:
    while not over.wait(0.05):
        for each in players:
            each.look()


def _stage(
    faults: Sequence[Fault],
    players: Sequence[Player],
    backend: Backend,
    history: History,
    acts: Callable[[Player], Sequence[Act]],
) -> None:
    """All hosts act at once, and faults come and go until they are done; then all is well again."""
    over = threading.Event()
    failed: list[BaseException] = []

    def nemesis() -> None:
        try:
            for fault in faults:
                if over.wait(fault.pause):
                    return
                history.count(f"fault: {fault.kind}")
                if fault.kind == "sync":
                    players[fault.host].end_syncing(signal.SIGKILL)
                    over.wait(fault.seconds)
                    players[fault.host].start_syncing()
                    continue
                backend.fail(fault.kind, fault.host)
                try:
                    over.wait(fault.seconds)
                finally:
                    backend.mend()
        except BaseException as error:
            failed.append(error)

    def play(player: Player) -> None:
        for act in acts(player):
            player.act(act)

    thread = threading.Thread(target=nemesis)
    thread.start()
    try:
        _together(players, play)
    finally:
        over.set()
        thread.join()
        backend.mend()
    if failed:
        raise failed[0]


def _quiet(players: Sequence[Player]) -> None:
    """Every host has what the store has, and the same as the others."""
    for _ in range(6):
        _together(players, Player.settle)
        if len({each.tip() for each in players}) == 1:
            return
    raise AssertionError("the hosts do not come to rest though nothing fails")


def _together(players: Sequence[Player], act: Callable[[Player], object]) -> None:
    with ThreadPoolExecutor(len(players)) as pool:
        list(pool.map(act, players))


def _rewind(players: Sequence[Player], backend: Backend, history: History) -> None:
    """The store is put back behind what all hosts have seen: nobody appends, and nothing changes."""
    now = backend.log()
    before = [each.host.files() for each in players]
    with backend.put_back():
        if len(backend.log()) < len(now):
            history.count("fault: put back")
            for each in players:
                each.append(Act("plain", f"{each.plan.name}-rewound", tries=1))
                if history.attempts[-1].code != 9:
                    history.wrong.append(
                        f"a store that was put back is used: {history.attempts[-1]}"
                    )
    if before != [each.host.files() for each in players]:
        history.wrong.append("a store that was put back changed a folder")


def _level(players: Sequence[Player]) -> None:
    """Each host publishes the documents that it has changed and not published; then all read."""
    for each in players:
        for document in each.unpublished():
            each.append(
                Act("last", f"{each.plan.name}-last-{Path(document).stem}", document=document)
            )
    _quiet(players)
