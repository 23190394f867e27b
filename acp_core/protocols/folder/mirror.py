"""What a store shows of collaborations that no folder here holds: mirrors, those only looked at, and those in its list.

A mirror is a collaboration of another protocol, which one host conducts and others see: read by the
very rules of its protocol, and never acted in; an act on it becomes a request to its host. Others
are told of in rows, and joined in the account's cache folder when somebody looks at one: from then on
that folder is read and acted in as any shared folder; what it is called stays the address.
Source: section 10 of the design of shared stores: what leaves is a list, a mirror authorises nothing,
and who asks must be proven where it counts. What a list says was said by the host that changed the
collaboration last: it is shown as any stranger's word, and nothing is decided by it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acp_core.agents.live.answers import refuse_inside_a_session
from acp_core.files import atomic, git
from acp_core.files.journal import without_collector
from acp_core.files.read_only import FILE, PLACE
from acp_core.files.reading import Stamp, stamp
from acp_core.model import (
    Action,
    DocumentText,
    Matter,
    Outcome,
    OutcomeState,
    Participant,
    Preview,
    Runner,
    Snapshot,
    Source,
    SourceState,
    Status,
    Turn,
)
from acp_core.model.action_field import Field
from acp_core.model.errors import Refused
from acp_core.model.format import dated
from acp_core.model.matter import decision
from acp_core.model.past import Story
from acp_core.model.text import clean_line, clean_name
from acp_core.person.paths import cache_folder
from acp_core.protocols import registry
from acp_core.protocols.contract import Collaboration, Rows
from acp_core.protocols.folder.conduct import syncing
from acp_core.protocols.folder.conduct.syncing import bring_news
from acp_core.protocols.folder.matters import store
from acp_core.protocols.folder.read.current_state import (
    ListState,
    decode,
    people_of_settings,
    standing_of,
)
from acp_core.protocols.folder.read.detect import shows_mirror
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.view.build import MOST_HOSTS, hosts_of, turn_needs
from acp_core.protocols.folder.view.timeline import ID, names
from acp_core.protocols.folder.write import sharing
from acp_core.protocols.kit.mirroring import Offer, decoded
from acp_core.protocols.kit.schema import inputs
from acp_core.protocols.kit.values import completed
from acp_core.protocols.kit.wording import reason, safe
from acp_core.stores import address as stores_address
from acp_core.stores import asking, hosts, mirror
from acp_core.stores.address import Address, parse
from acp_core.stores.engine import Asked, Listed
from acp_core.stores.hosts import open_engine, open_listing
from acp_core.stores.mirror import KINDS, Manifest
from acp_core.stores.tree import Tree

if TYPE_CHECKING:
    from acp_core.model.card import Card
    from acp_core.protocols.kit.diagnosis import DiagnosisContext


class _Shown(Collaboration):
    """A collaboration that is read in another folder, by the rules of its protocol, once it is there."""

    protocol = "folder"

    def __init__(self, key: str) -> None:
        self.key = key
        self._inner: Collaboration | None = None
        self._followed: syncing.Wanted | None = None
        self._seen: Snapshot | None = None  # of the inner one
        self._last: Snapshot | None = None

    def watched(self) -> frozenset[Path]:
        return self._inner.watched() if self._inner is not None else frozenset()

    def load(self, document: str) -> DocumentText:
        if self._inner is None:
            raise KeyError(document)
        return self._inner.load(document)

    def raw_event(self, event: str) -> str:
        return self._inner.raw_event(event) if self._inner is not None else ""

    def cards(self, now: datetime) -> Sequence[Card]:
        return self._inner.cards(now) if self._inner is not None else ()

    def durations(self, participant: str) -> Sequence[float]:
        return self._inner.durations(participant) if self._inner is not None else ()

    def story(self) -> Story:
        return self._inner.story() if self._inner is not None else Story()

    def close(self) -> None:
        if self._followed is not None:
            self._followed.close()
        self._let_go()

    def _let_go(self) -> None:
        if self._inner is not None:
            self._inner.close()
        self._inner = None

    def _unseen(self, name: str, words: str, now: datetime) -> Snapshot:
        """What is shown as long as there is nothing to read."""
        return Snapshot(
            key=self.key, protocol=self.protocol, dialect="", name=name, objective="",
            location=clean_line(self.key, 4_096), as_of=now, headline=words, status=Status.UNKNOWN,
            phase="", source=Source(SourceState.UNREACHABLE, words),
        )  # fmt: skip


class MirrorCollaboration(_Shown):
    """What another host conducts, as this folder shows it.

    Args:
        folder: the reader's.
    """

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self._manifest: Manifest | None = None
        self._stamp: Stamp | None = None
        self._as_of = ""

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Have the folder synchronized from now on: its files tell what changed."""
        self._followed = syncing.want(self.key)

    def refresh(self, now: datetime) -> Snapshot:
        changed = self._take_up()
        seen = self._inner.refresh(now) if self._inner is not None else None
        late = self._late(seen, now)
        if self._last is None or changed or seen is not self._seen or late != self._as_of:
            self._last = self._as_seen(seen, late, now)
        self._seen, self._as_of = seen, late
        return self._last

    def _late(self, seen: Snapshot | None, now: datetime) -> str:
        """As of when this is, where it may have changed since, and why that is not seen; else ""."""
        told = self._manifest
        if seen is None or told is None or seen.status is Status.COMPLETED:
            return ""
        if late := store.note(self.key):
            return late
        with contextlib.suppress(Refused):
            silent = hosts.Silence(stores_address.pinned_address(self.key)).silent(told.host)
            if silent:
                at = (now - timedelta(seconds=silent)).replace(second=0, microsecond=0)
                host = clean_line(told.host, 64)
                return f"as of {dated(at)}: {host} controls this run, and was not heard of since"
        return ""

    def _take_up(self) -> bool:
        """Read the manifest, where it changed; whether it did."""
        found = stamp(Path(self.key, FILE))
        if found == self._stamp and self._last is not None:
            return False
        self._stamp, before = found, self._manifest
        self._manifest = mirror.read(self.key)
        if self._manifest is None or (before and before.mark != self._manifest.mark):
            self._let_go()
        if self._manifest is not None and self._inner is None:
            known = {each.name: each for each in registry.bundled()}
            opened: Collaboration = registry.load(known[self._manifest.protocol].open)(self.place)
            self._inner = opened
        return True

    @property
    def place(self) -> str:
        """Where the files lie."""
        assert self._manifest is not None
        return os.path.join(self.key, PLACE, mirror.place(self._manifest, ""))

    def _as_seen(self, seen: Snapshot | None, late: str, now: datetime) -> Snapshot:
        told = self._manifest
        if seen is None or told is None:
            words = f"{FILE} cannot be read: `acp join` the mirror into a new folder"
            return self._unseen(os.path.basename(self.key), words, now)
        host = clean_line(told.host, 64)
        possible = {each.name for each in self.actions(now)}
        needs = tuple(
            each if each.remedy in possible else each._replace(verdicts=()) for each in seen.needs
        )
        return replace(
            seen, key=self.key, location=clean_line(self.key, 4_096), hosts=(host,), needs=needs,
            runners=(), cost=None, causes=(), obstacles=(), parts=(),
            limits=f"{host} controls this run; your acts are requests to {host}",
            source=Source(SourceState.STALE, late) if late else seen.source,
        )  # fmt: skip

    def watched(self) -> frozenset[Path]:
        return super().watched() | {Path(self.key)}

    def actions(self, now: datetime) -> Sequence[Action]:
        return requests(self.key, self._manifest) if self._manifest else ()

    def action(self, name: str, now: datetime) -> Action | None:
        found = next((each for each in self.actions(now) if each.called(name)), None)
        if found is None and self._manifest is not None:
            raise Refused(
                f"{clean_line(self._manifest.host, 80)} controls this run, and cannot be asked for {name} now"
            )
        return found


_WAIT = 30.0  # seconds for the answer

_STATES = {
    asking.DONE: OutcomeState.DONE,
    asking.REFUSED: OutcomeState.REFUSED,
    asking.EXPIRED: OutcomeState.REFUSED,
    "": OutcomeState.REQUESTED,
}


def requests(folder: str, manifest: Manifest) -> list[Action]:
    """What the host of a mirror can be asked for now, by its own word.

    Args:
        folder: the reader's.
        manifest: what it shows.
    """
    found = (decoded(each) for each in manifest.acts)
    return [_as_request(each, folder, manifest) for each in found if each is not None]


def _as_request(act: Offer, folder: str, manifest: Manifest) -> Action:
    def request(given: Any) -> Asked:
        return _request(folder, manifest, act, _values(act.fields, given))

    def preview(given: Any) -> Preview:
        try:
            made = request(given)
        except (Refused, OSError) as error:
            return Preview("", refused=reason(error))
        sentence = f"Ask {made.host}, which controls this run: {act.label}."
        return Preview(safe(sentence), notes=_notes(made))

    def perform(given: Any) -> Outcome:
        try:
            return outcome(send(folder, request(given)))
        except (Refused, OSError) as error:
            return Outcome(OutcomeState.REFUSED, reason(error))

    return Action(
        act.name,
        act.label,
        safe(f"Ask {clean_line(manifest.host, 80)}: {act.sentence}"),
        inputs(act.name, act.fields),
        preview,
        perform,
        risky=act.risky,
        fields=act.fields,
        intent=act.intent,
    )


def _request(folder: str, manifest: Manifest, act: Offer, values: Mapping[str, Any]) -> Asked:
    me = hosts.this_host()
    by = f"{hosts.account()} on {me}"
    given: dict[str, Any] = {"mirror": manifest.mark, "values": values}
    if act.verb == asking.DECIDE:
        given["matter"] = mirror.matter(read_back(folder, manifest))
    return asking.about(manifest.host, act.verb, act.name, given, by)


def read_back(folder: str, manifest: Manifest) -> Manifest:
    """What this folder shows: whoever changed a file here decides about something that nobody has."""
    tree = Tree(folder)
    files = tuple(
        each._replace(sha256=mirror.digest(tree.read(mirror.lies(manifest, each.name)) or b""))
        for each in manifest.files
    )
    return manifest._replace(files=files)


def _values(fields: tuple[Field, ...], given: Any) -> dict[str, Any]:
    """What was given, as JSON holds it; what stands for nothing is left out."""
    values = completed(fields, given)
    found = {each.name: getattr(values, each.name) for each in fields}
    return {e.name: found[e.name] for e in fields if found[e.name] not in (None, e.empty)}


def _notes(request: Asked) -> tuple[str, ...]:
    if request.verb == asking.DECIDE:
        who = "only if its owner accepts decisions, and listed you or your key"
    else:
        who = "only if its owner accepts requests to stop"
    return (safe(f"{request.host} follows the request {who}"),)


def send(folder: str, request: Asked, wait: float = _WAIT) -> Asked:
    """Ask, and wait for the answer; the request as it stands then.

    Raises:
        Refused: it cannot be signed, or the store does not have it.
    """
    address = stores_address.pinned_address(folder)
    if request.verb in asking.PROVEN:
        refuse_inside_a_session()
        request = asking.signed(request, address)
    with open_engine(address) as engine:
        asking.send(engine, request)
        return sharing.answered(engine, request, wait)


def outcome(request: Asked) -> Outcome:
    """What came of a request."""
    state = _STATES.get(request.state, OutcomeState.UNKNOWN)
    host = clean_line(request.host, 80)
    if not request.state:
        return Outcome(
            state, safe(f"Requested: {host} has not answered yet (`acp hosts` shows its answer).")
        )
    said = clean_line(request.sentence, 1_000)
    return Outcome(state, safe(f"{host}: {request.state}{f': {said}' if said else ''}"))


NOT_HERE = frozenset({"continue", "share", "sync", "unshare", "repair"})
"""Acts that are about a folder of a person's own."""


class StoreCollaboration(_Shown):
    """One collaboration of a store.

    Args:
        location: its address, as a link.
        open_folder: opens a folder collaboration, as which it is joined in the cache, where it is
            not joined as a mirror of another one.
    """

    def __init__(self, location: str, open_folder: Callable[[str], Collaboration]) -> None:
        super().__init__(location)
        self._open_folder = open_folder
        self._address = parse(location)
        self._is_live = False
        self._note = ""

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Have the folder in the cache synchronized from now on: its files tell what changed."""
        self._is_live = True

    def refresh(self, now: datetime) -> Snapshot:
        note = self._bring()
        seen = self._inner.refresh(now) if self._inner is not None else None
        if self._last is None or seen is not self._seen or note != self._note:
            self._last = self._as_seen(seen, note, now)
        self._seen, self._note = seen, note
        return self._last

    def _bring(self) -> str:
        """Have the folder in the cache as the store has it; why that is not so, "" where it is."""
        try:
            folder = join_in_cache(self._address)
            if self._inner is None:
                opened = MirrorCollaboration if shows_mirror(folder) else self._open_folder
                self._inner = opened(folder)
            if self._is_live and self._followed is None:
                self._followed = syncing.want(folder)
            return bring_news(folder)
        except (Refused, OSError) as error:
            return str(error)

    def _as_seen(self, seen: Snapshot | None, note: str, now: datetime) -> Snapshot:
        words = clean_line(note, 500)
        if seen is None:
            return self._unseen(self._address.id, words, now)
        source = Source(SourceState.STALE, words) if note else seen.source
        needs = tuple(
            each._replace(verdicts=()) if each.remedy in NOT_HERE else each for each in seen.needs
        )
        return replace(
            seen, key=self.key, name=self._address.id, location=clean_line(self.key, 4_096),
            source=source, needs=needs,
        )  # fmt: skip

    def actions(self, now: datetime) -> Sequence[Action]:
        found = self._inner.actions(now) if self._inner is not None else ()  # else only listed
        return tuple(each for each in found if each.name not in NOT_HERE)

    def action(self, name: str, now: datetime) -> Action | None:
        if self._inner is None:
            return None
        found = self._inner.action(name, now)
        if found is not None and found.name in NOT_HERE:
            raise Refused(
                f"{name} needs a folder of your own: `acp join {clean_line(self._address.text, 300)} FOLDER`"
            )
        return found

    def causes(self, case: DiagnosisContext) -> Sequence[Matter]:
        found = self._inner.causes(case) if self._inner is not None else ()
        return tuple(
            each._replace(verdicts=each.verdicts[1:]) if each.remedy in NOT_HERE else each
            for each in found
        )


PART = 2_000
"""How many rows are told of at once."""


def listing(key: str) -> StoreListing:
    """The list of a store."""
    return StoreListing(parse(key))


def cached_folder(address: Address) -> str:
    """The folder in the account's cache in which a collaboration is joined when it is looked at."""
    name = hashlib.sha256(address.link.encode()).hexdigest()[:32]
    return str(cache_folder() / "joined" / name / address.id)


def join_in_cache(address: Address) -> str:
    """Join a collaboration in the cache, if that was not done yet; its folder.

    Raises:
        Refused: it cannot be joined; the message says why.
        OSError: the cache cannot be written.
    """
    folder = cached_folder(address)
    if not stores_address.is_shared(folder):
        refuse_projects(address)
        atomic.private_folder(cache_folder() / "joined")
        atomic.private_folder(cache_folder() / "joined" / os.path.basename(os.path.dirname(folder)))
        sharing.join(address.text, folder)
    return folder


def folder_here(address: Address, pins: Mapping[str, Address]) -> str:
    """The folder of a person's own that holds a collaboration; "" where none does."""
    cache = os.path.join(os.path.realpath(cache_folder()), "")
    for folder, pinned in pins.items():
        if pinned == address and not folder.startswith(cache) and stores_address.is_shared(folder):
            return folder
    return ""


class StoreListing:
    """The collaborations of one store; see `acp_core.protocols.contract.Listing`.

    Args:
        address: of the store.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._listing = open_listing(address, standing_of)
        self._begun = False
        self._waiting: list[str] = []  # ids that are still to be told of
        self._here: dict[str, str] = {}  # the folder that holds one, by id
        self._pins: tuple[int, dict[str, Address]] = -1, {}  # as of a change of their folder

    def refresh(self, now: datetime) -> Rows:
        """See `Listing.refresh`."""
        with without_collector():
            if self._waiting:
                return self._rows((), (), now)
            if not self._begun:
                refuse_projects(self._address)
            changed = self._listing.refresh()
            self._begun = True
            before, self._here = self._here, self._folders()
            moved = {
                i for i in before.keys() | self._here.keys() if before.get(i) != self._here.get(i)
            }
            listed = self._listing.listed
            tell = (i for i in listed if (i in changed or i in moved) and i not in self._here)
            humans = people_of_settings()
            self._waiting = sorted(tell, key=lambda i: self._is_quiet(i, humans))
            gone = [*(changed - listed.keys()), *(i for i in moved if i in self._here)]
            left = [before[i] for i in moved if i in before and before[i] != self._here.get(i)]
            folders = [self._here[i] for i in moved if i in self._here and i in listed]
            return self._rows(folders, [*left, *(self._link(i) for i in gone)], now)

    def _rows(self, folders: Sequence[str], gone: Sequence[str], now: datetime) -> Rows:
        """The next part of what is to be told."""
        humans = people_of_settings()
        listed = self._listing.listed
        part, self._waiting = self._waiting[:PART], self._waiting[PART:]
        shown = [listed_snapshot(listed[i], self._address.named(i), now, humans) for i in part]
        note = clean_line(self._listing.note, 300)
        return Rows(shown, folders, gone, note, more=bool(self._waiting))

    def _is_quiet(self, id: str, humans: Collection[str]) -> bool:
        """Whether nobody is needed there, as it seems."""
        row = self._listing.listed[id]
        people = row.standing.get("people", ())
        return row.phase != "blocked" and not any(
            len(each) > 2 and (each[1] == "human" or str(each[0]) in humans)
            for each in (people if isinstance(people, list) else ())
            if isinstance(each, list)
        )

    def _link(self, id: str) -> str:
        return self._address.named(id).link

    def wait(self, seconds: float) -> None:
        """See `Listing.wait`."""
        self._listing.wait(seconds)

    def close(self) -> None:
        """See `Listing.close`."""
        self._listing.close()

    def _folders(self) -> dict[str, str]:
        """The collaborations of this store that a folder here holds."""
        changed = stores_address.pins_changed()
        if changed != self._pins[0]:
            self._pins = changed, stores_address.pinned_folders()
        pins = self._pins[1]
        ours = {pin.id: pin for pin in pins.values() if pin._replace(id="") == self._address}
        found = {id: folder_here(address, pins) for id, address in ours.items()}
        return {id: folder for id, folder in found.items() if folder}


def refuse_projects(address: Address) -> None:
    """Refuse a repository at a path within a project, where agents may write its hooks.

    Raises:
        Refused: it is within one.
    """
    if not address.path:
        return
    above = os.path.dirname(os.path.realpath(address.path))
    while True:
        if git.is_repository(above) or os.path.lexists(os.path.join(above, "protocol.json")):
            raise Refused(
                f"{clean_line(address.text, 300)} is refused: the store is in {clean_line(above, 200)}, where agents "
                "may write, and its hooks would run as you"
            )
        if os.path.dirname(above) == above:
            return
        above = os.path.dirname(above)


HEARD = 45.0  # seconds after which a host that says nothing is not taken for one that runs a loop
_STATUS = {"completed": Status.COMPLETED, "blocked": Status.BLOCKED, "": Status.UNKNOWN}
_UNREAD = "its store does not report its state: open it"


def listed_snapshot(
    listed: Listed, address: Address, now: datetime, humans: frozenset[str]
) -> Snapshot:
    """What a list tells of a collaboration.

    Args:
        listed: the row.
        address: of the collaboration.
        now: the time.
        humans: ids of participants that are people, beside those that it names.
    """
    told = decode(listed.standing)
    turns = _turns(told) if listed.phase == told.phase else ()
    people = _people(told, humans)
    phase = clean_line(listed.phase, 40)
    status = _STATUS.get(phase, Status.ACTIVE)
    if phase and phase not in ("blocked", "completed") and not told.phase:
        turns = tuple(Turn(clean_name(each, ID) or "?", "act") for each in listed.waiting)
    return Snapshot(
        key=address.link,
        protocol=told.protocol if told.protocol in KINDS else "folder",
        dialect=clean_line(told.dialect, 40) or "unknown",
        name=listed.id,
        objective=clean_line(told.objective, 500),
        location=clean_line(address.link, 4_096),
        as_of=now,
        headline=_listed_headline(phase, told, turns),
        summary=""
        if status in (Status.COMPLETED, Status.UNKNOWN)
        else _listed_summary(phase, told),
        status=status,
        phase=phase,
        progress=told.progress,
        round=told.round or None,
        doubt="" if told.phase or not phase else _UNREAD,
        participants=people,
        turns=turns,
        runners=_runners(listed, {each.id for each in people}),
        needs=_needs(told, turns, people),
        since=records.parse_time(told.since),
        started=records.parse_time(told.started),
        changed=records.parse_time(told.changed) or listed.updated,
        run_id=clean_line(told.run, 100),
        hosts=hosts_of(listed.acting, turns),
    )


def _people(told: ListState, humans: frozenset[str]) -> tuple[Participant, ...]:
    return tuple(
        Participant(
            id=clean_name(each.id, ID) or "?",
            kind="human" if each.id in humans else each.kind if each.kind in ("agent", "human") else "unknown",
            role="proposal owner" if each.id == told.owner else "reviewer",
        )
        for each in told.people
    )  # fmt: skip


def _turns(told: ListState) -> tuple[Turn, ...]:
    what = clean_line(told.duty, 200) or "act"
    return tuple(
        Turn(
            clean_name(each.id, ID) or "?",
            what,
            records.parse_time(each.at),
            None if each.seq is None else str(each.seq),
        )
        for each in told.people
        if each.waited
    )


def _needs(
    told: ListState, turns: tuple[Turn, ...], people: Sequence[Participant]
) -> tuple[Matter, ...]:
    """The same needs as those of its folder, as far as a list can know them."""
    humans = frozenset(each.id for each in people if each.kind == "human")
    event = told.event if told.event in records.EVENTS_V2 else ""
    found = turn_needs(turns, humans, event)
    if told.blocked is None or told.continued:
        return found
    by, more = told.blocked, f" (and {told.blocked.more} more)" if told.blocked.more > 0 else ""
    who, why = clean_name(by.by, 100), clean_line(by.why, 300) + more
    need = decision(
        key=f"blocked:{clean_line(by.last)}",
        code="blocked",
        sentence=f"blocked by {who}: {why}",
        participant=who,
        since=records.parse_time(by.at),
    )
    return (need, *found)


def _runners(listed: Listed, people: set[str]) -> tuple[Runner, ...]:
    """The loops of hosts that were heard of lately."""
    found = []
    for heard in listed.runners:
        if heard.age is None or heard.age > HEARD:
            continue
        participants: Mapping[str, object] = heard.state.participants
        for name in list(participants)[:MOST_HOSTS]:
            id = clean_name(name, ID)
            account = clean_line(heard.state.account, 80)
            found.append(Runner(id if id in people else "", account, heard.state.host))
    return tuple(dict.fromkeys(found))


def _listed_headline(phase: str, told: ListState, turns: Sequence[Turn]) -> str:
    """One plain sentence; how long it has lasted is left to the screens."""
    if not phase:
        return "no events yet." if told.people else f"{_UNREAD}."
    if phase == "completed":
        return "completed."
    if phase == "blocked":
        if told.blocked is None:
            return "blocked."
        stopped = told.stopped.replace("_", " ")
        where = f" in {clean_line(stopped, 40)}" if stopped else ""
        by = told.blocked
        return f"blocked{where} by {clean_name(by.by, 60)}: {clean_line(by.why, 200)}"
    shown = tuple(clean_name(turn.participant, 60) for turn in turns)
    return f"{_listed_summary(phase, told)}. Waiting for {names(shown)}."


def _listed_summary(phase: str, told: ListState) -> str:
    number = f", round {told.round}" if told.round > 1 else ""
    return phase.replace("_", " ") + number
