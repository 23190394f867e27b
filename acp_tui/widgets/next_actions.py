"""What comes next: what needs a human, what changed unexpectedly, what every participant should do now.

Also why it does not go on (each cause with its evidence and what mends it), and the conditions that
must be met to move on, as a check list.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime

from textual.reactive import var

from acp_core.cli.signs import NEED
from acp_core.model import Gate, Matter, NextAction, Snapshot, Status, Target, Turn
from acp_core.model.format import age, exact, grouped, names_in, need_case, sentence_case
from acp_tui.text import width
from acp_tui.widgets.headline import DOUBT, need_key, notice_key
from acp_tui.widgets.pane import PaneData
from acp_tui.widgets.row_list import Item, RowList

WAITED, WAITS = "●", "○"


class NextActions(RowList):
    """Needs first, then notices, then participants: those that are waited for on top."""

    data: var[PaneData | None] = var(None, always_update=True)
    """What to show."""
    above: var[frozenset[str]] = var(frozenset[str](), init=False)
    """The keys of needs and notices that stand above the panes already."""
    called: var[Callable[[str], str]] = var(lambda: str, init=False, always_update=True)
    """What an action is called, by its name; set again where that is another name now."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(wrapped=True, id=id)
        self._left_out = frozenset[str]()  # what stood above when it was drawn

    def watch_data(self, before: PaneData | None, data: PaneData | None) -> None:
        """Show a Snapshot's next actions, where they or the minute are other ones."""
        if data is None:
            return
        if before is None or self.above != self._left_out or _parts(before) != _parts(data):
            self._draw(data)

    def watch_above(self) -> None:
        """Show what does not stand above."""
        if self.data is not None:
            self._draw(self.data)

    def watch_called(self) -> None:
        """Show what actions are called."""
        if self.data is not None:
            self._draw(self.data)

    def _draw(self, data: PaneData) -> None:
        snapshot, needs, now = data.snapshot, data.needs, data.now
        acknowledged = [] if data.past else [n for n in snapshot.needs if n not in needs]
        self.empty = (
            _empty(snapshot) if not needs else "Nothing besides the attention item at the top."
        )
        items = (
            *(need_item(need, snapshot, now, self.called, past=data.past) for need in needs),
            *(
                need_item(need, snapshot, now, self.called, acknowledged=True)
                for need in acknowledged
            ),
            *doubt_items(snapshot.doubt),
            *(notice_item(notice, snapshot, now) for notice in snapshot.notices),
            *action_items(_beside_needs(snapshot), snapshot.turns, now),
        )
        self._left_out = self.above
        self.items = tuple(item for item in items if item.key not in self.above)


def _parts(data: PaneData) -> tuple[object, ...]:
    """What decides what shows, to be compared: the same objects have the same numbers."""
    snapshot = data.snapshot
    begun = [need.since for need in data.needs]
    begun += [turn.since for turn in snapshot.turns]
    begun += [notice.since for notice in snapshot.notices]
    return id(snapshot), data.needs, data.moment(begun)


def title(needs: Sequence[Matter], above: Collection[str]) -> str:
    """What the pane is called: it announces the needs that it holds, not those ``above`` it."""
    held = sum(need_key(need) not in above for need in needs)
    more = " more" if held < len(needs) else ""
    return f"Next · {grouped(held)}{more} for you" if held else "Next"


def need_item(
    need: Matter,
    snapshot: Snapshot,
    now: datetime,
    called: Callable[[str], str] = str,
    *,
    acknowledged: bool = False,
    past: bool = False,
) -> Item:
    """A need: what it is, since when; of the past, without what could be done about it."""
    text = need_case(need, snapshot)
    since = f"  {age(need.since, now)}" if need.since else ""
    if acknowledged:
        pieces = (("✓ ", "muted"), (text, "muted"), (f"{since}  acknowledged", "muted"))
    else:
        pieces = ((f"{NEED} ", "error"), (text, "strong"), (since, "muted"))
    if past:
        return Item(pieces, key=need_key(need))
    return Item(
        pieces,
        _hints(need, called, acknowledged),
        Target(action=need.remedy, given=need.given),
        key=need_key(need),
    )


def doubt_items(doubt: str) -> list[Item]:
    """Why what was read is not certain."""
    return [Item((("? ", "warning"), (f"Uncertain: {doubt}", "warning")), key=DOUBT)] * bool(doubt)


def notice_item(notice: Matter, snapshot: Snapshot, now: datetime) -> Item:
    """A notice: what it says, since when, and the document that it speaks of."""
    text = sentence_case(notice.sentence, names_in(snapshot))
    since = f"  {age(notice.since, now)} ago" if notice.since else ""
    details = ((f"→ {notice.about.document}", "primary"),) if notice.about.document else ()
    return Item(
        (("! ", "warning"), (text, "warning"), (since, "muted")),
        details,
        Target(document=notice.about.document),
        key=notice_key(notice.code, notice.about.document),
    )


def _beside_needs(snapshot: Snapshot) -> list[NextAction]:
    """What participants should do, without what a need of a person or the headline says already."""
    people = {each.id for each in snapshot.participants if each.kind == "human"}
    over = snapshot.status in (Status.COMPLETED, Status.BLOCKED)  # there all should do the same
    return [
        action
        for action in snapshot.next_actions
        if (action.waited or not over)
        and not (action.participant in people and _is_needed(action, snapshot))
    ]


def _is_needed(action: NextAction, snapshot: Snapshot) -> bool:
    """Whether needs say that a person has the turns that an action is about."""
    own = [turn for turn in snapshot.turns if turn.participant == action.participant]
    meant = [turn for turn in own if turn.what == action.text] or own
    needed = (any(_is_need_of(need, turn) for need in snapshot.needs) for turn in meant)
    return bool(meant) and all(needed)


def _is_need_of(need: Matter, turn: Turn) -> bool:
    """Whether a need is that a person has this turn, whoever's work it is about."""
    if turn.since is None:
        return need.since is None and need.about.participant == turn.participant
    return need.since == turn.since


def _by_action(
    actions: Sequence[NextAction], since: Mapping[str, Turn]
) -> Iterator[tuple[str, NextAction]]:
    """Those first who are waited for; who should do the same, waited for equally long, as one."""
    groups: dict[tuple[object, ...], list[NextAction]] = {}
    for action in sorted(actions, key=lambda action: not action.waited):
        turn = since.get(action.participant)
        same = action.waited, action.text, turn and turn.since
        groups.setdefault(same, []).append(action)
    for group in groups.values():
        yield ", ".join(action.participant for action in group), group[0]


def action_items(actions: Sequence[NextAction], turns: Sequence[Turn], now: datetime) -> list[Item]:
    """What each participant should do: who, what, and since when they are waited for."""
    since = {turn.participant: turn for turn in turns}
    named = min(16, max((width(action.participant) for action in actions), default=0))
    rows, said = [], dict[str, str]()
    for names, action in _by_action(actions, since):
        text = f"the same as {said[action.text]}" if action.text in said else action.text
        said.setdefault(action.text, names)
        turn = since.get(action.participant)
        waited = f"  {age(turn.since, now)}" if turn is not None and turn.since else ""
        name = names + " " * max(0, named - width(names))
        style = "" if action.waited else "muted"
        rows.append(
            Item(
                (
                    (
                        f"{WAITED if action.waited else WAITS} ",
                        "accent" if action.waited else "muted",
                    ),
                    (f"{name}  ", "strong" if action.waited else "muted"),
                    (text, style),
                    (waited, "accent"),
                ),
                target=Target(event=turn.since_event if turn else None),
                indent=4 + max(named, width(names)),
                key=f"next {action.participant}",
            )
        )
    return rows


def _hints(
    need: Matter, called: Callable[[str], str], acknowledged: bool
) -> tuple[tuple[str, str], ...]:
    hints = []
    if need.about.participant:
        hints.append((f"participant: {need.about.participant}", "muted"))
    if need.remedy:
        hints.append((f"enter: {called(need.remedy)}", "accent"))
    if not acknowledged:
        hints.append(("a: acknowledge", "muted"))
    return tuple(hints)


def _empty(snapshot: Snapshot) -> str:
    if snapshot.status.value == "completed":
        return "Nothing is left to do."
    if snapshot.status.value == "blocked":
        return "Press x for actions."
    return "No pending work. Press x for actions."


NO_CAUSES = "No problem found."


def cause_items(
    causes: Sequence[Matter],
    now: datetime,
    utc: bool,
    labels: Mapping[str, str] | None = None,
    fix_key: str = "f",
    names: Collection[str] = (),
    called: Callable[[str], str] = str,
) -> list[Item]:
    """The causes, the one that counts most first.

    Args:
        causes: Why it does not go on.
        now: For how long each has lasted.
        utc: Show times in UTC.
        labels: What the actions are called that can be done now, by name; None: not yet known.
        fix_key: What the key is called that does what the first cause asks for.
        names: Names with which a cause may begin, which keep their first letter.
        called: What an action is called that cannot be done now, or of which that is not yet known.
    """
    rows: list[Item] = []
    for number, cause in enumerate(causes):
        if number:
            rows.append(Item((("", ""),), heading=True))
        rows += _items(cause, now, utc, names)
        rows += _remedies(cause, labels, "" if number else fix_key, called)
    return rows


def remedies(cause: Matter) -> tuple[tuple[str, Target], ...]:
    """The names of the actions that may mend a cause, the best first, and how to run each."""
    ways = {each.act: each for each in reversed(cause.verdicts)}
    return tuple(
        (name, Target(action=name, given=ways[name].given if ways[name].ends else ()))
        for name in dict.fromkeys(each.act for each in cause.verdicts)
    )


def _items(cause: Matter, now: datetime, utc: bool, names: Collection[str]) -> list[Item]:
    colour = "error" if cause.wanted else "warning"
    known = "certain" if cause.certain else "inferred"
    since = f" · {age(cause.since, now)}" if cause.since else ""
    where = cause.about.document is not None or cause.about.event is not None
    headline, advice = (sentence_case(each, names) for each in (cause.sentence, cause.instruction))
    details = [(f"since {exact(cause.since, utc)}", "muted")] if cause.since else []
    if where:
        place = (
            f"{cause.about.document}:{cause.about.line}"
            if cause.about.line
            else cause.about.document
        )
        details.append((f"enter: {place or f'event {cause.about.event}'}", "primary"))
    target = Target()
    if cause.about.document is not None:
        target = Target(document=cause.about.document, line=cause.about.line)
    elif cause.about.event is not None:
        target = Target(event=cause.about.event)
    rows = [
        Item(
            (
                (f"{NEED} " if cause.wanted else "… ", colour),
                (f"{cause.code} ", colour),
                (headline, "strong"),
                (f"  {known}{since}", "muted" if cause.certain else "warning"),
            ),
            tuple(details),
            target,
            key=f"cause {cause.key or cause.sentence}",
        )
    ]
    rows += [
        Item((("    · ", "muted"), (line, "")), heading=True, indent=6) for line in cause.evidence
    ]
    if advice:
        rows.append(Item((("    → ", "primary"), (advice, "primary")), heading=True))
    return rows


def _remedies(
    cause: Matter, labels: Mapping[str, str] | None, fix_key: str, called: Callable[[str], str]
) -> list[Item]:
    """A row for each remedy: what it is called, and the keys that do it."""
    rows: list[Item] = []
    for rank, (name, goes) in enumerate(remedies(cause)):
        label = (labels or {}).get(name) or called(name)
        hint = f"{fix_key} or enter" if fix_key and not rank and cause.remedy else "enter"
        if labels is not None and name not in labels:
            hint = "not possible now"
        rows.append(
            Item(
                (("  ▸ ", "accent"), (label, "accent"), (f"  {hint}", "muted")),
                target=goes,
                key=f"remedy {cause.key or cause.sentence} {name}",
            )
        )
    return rows


SIGNS = {True: ("[x]", "success"), False: ("[ ]", ""), None: ("[?]", "muted")}

NO_GATES = "No completion gates: only the phases decide when this collaboration ends."


def tally(gates: Sequence[Gate]) -> str:
    """How many are met: ``2/3``; nothing where there are none."""
    return f"{sum(gate.met is True for gate in gates)}/{len(gates)}" if gates else ""


def gate_items(gates: Sequence[Gate]) -> list[Item]:
    """A line per gate, with its evidence while it is selected."""
    rows = []
    for number, gate in enumerate(gates):
        sign, style = SIGNS[gate.met]
        words = {True: "met", False: "not met", None: "unknown"}[gate.met]
        details = [(f"{words}{': ' if gate.evidence else ''}{gate.evidence}", "muted")]
        if gate.document:
            line = f":{gate.line}" if gate.line else ""
            details.append((f"→ {gate.document}{line}", "primary"))
        rows.append(
            Item(
                ((f"{sign} ", style), (gate.label, "")),
                tuple(details),
                Target(document=gate.document, line=gate.line),
                indent=4,
                key=f"{number} {gate.label}",
            )
        )
    return rows
