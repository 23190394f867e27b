"""``acp status``: the fleet as a table, what needs a human on top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from acp_core.cli import fields, output, signs
from acp_core.cli.output import (
    SHORT,
    Cell,
    Column,
    Terminal,
    act_command,
    choice_hint,
    complain,
    dump,
    say,
    terminal,
    warn,
)
from acp_core.cli.start import chosen_paths, load_settings, sort_out
from acp_core.files.journal import without_collector
from acp_core.fleet import Fleet, overview
from acp_core.fleet.overview import Section, Seeing, sections
from acp_core.history.forecast import Forecast
from acp_core.model import Matter, Severity, Snapshot, SourceState, Status, format, spoken
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError
from acp_core.model.format import continued, names_in, need_case, sentence_case
from acp_core.person.attention import Attention
from acp_core.person.settings import Settings
from acp_core.person.views import View, parse
from acp_core.protocols.kit.values import Values

SCHEMA = "acp.status/1"
HOST = Column("host", 8, drop=2)
COLUMNS = (
    Column("state", 11),
    Column("collaboration", 20, names=True),
    Column("protocol", 8, drop=2),
    Column("phase", 11),
    Column("progress", 10, drop=3),
    Column("waiting for", 14),
    Column("since", 5, right=True),
    Column("findings", 8, drop=1),
)
HOST_AFTER = 6  # columns: what hosts share has one more
BAR = 10  # cells of the progress bar


@without_collector()  # the process ends before there is garbage worth a search
def status(given: Values) -> int:
    """Print the table, or the object."""
    settings = load_settings()
    view = _view(given, settings)
    good, problems = sort_out(chosen_paths(given.paths, settings))
    for problem in problems:
        complain(problem)
    fleet = Fleet(good, rows=True)
    found = fleet.read(teaches=given.json)
    entries = overview.arrange(found, Seeing(Attention()), recent=True)
    counts = overview.tally(entries)
    groups = _grouped(entries, view)
    listed = [entry for group in groups for entry in group.entries]
    if fleet.note:
        warn(fleet.note)
    now = utc_now()
    if given.json:
        say(dump(as_fields(listed, problems, now, fleet.learn(), counts)))
    elif good:
        titled = {group.entries[0].key: group.title for group in groups}
        headings = {} if view.group in ("state", "none") else titled
        for line in render(
            listed, now, terminal(), everything=given.all, counts=counts, headings=headings
        ):
            say(line)
    unlisted = [each.code for each in fleet.unlisted.values()]
    return 2 if problems else max(unlisted, default=0)


def as_fields(
    entries: Sequence[overview.FleetEntry],
    problems: Sequence[str],
    now: datetime,
    forecast: Forecast,
    counts: overview.Counts | None = None,
) -> fields.Fields:
    """The object that ``--json`` prints; archived collaborations are always in it.

    Args:
        entries: what is listed.
        problems: why some places could not be read.
        now: the time of the reading.
        forecast: how long things usually take.
        counts: of the fleet; None for those of what is listed.
    """
    return {
        "schema": SCHEMA,
        "at": fields.time(now),
        "counts": (counts or overview.tally(entries))._asdict(),
        "collaborations": [
            fields.summary(entry.snapshot)
            | {
                "needs": fields.needs(entry.snapshot, entry.needs),
                "unread": entry.unread,
                "archived": entry.archived,
                "depth": entry.depth,
                "forecast": fields.outlook(forecast.outlook(entry.snapshot, now), entry.snapshot),
            }
            for entry in entries
        ],
        "problems": list(problems),
    }


def render(
    entries: Sequence[overview.FleetEntry],
    now: datetime,
    shown_on: Terminal,
    *,
    everything: bool = False,
    counts: overview.Counts | None = None,
    headings: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """The lines of the table, with each need under its collaboration, and the counts.

    Args:
        entries: what is listed.
        now: the time of the reading.
        shown_on: where it is printed.
        everything: list what is archived, too.
        counts: of the fleet; None for those of what is listed.
        headings: lines above some of the entries, by their keys.
    """
    shown = [entry for entry in entries if everything or not entry.archived]
    counts = counts or overview.tally(entries)
    lines: list[str] = []
    if shown:
        columns: Sequence[Column] = COLUMNS
        rows = [_row(entry, now) for entry in shown]
        if any(entry.snapshot.hosts for entry in shown):
            columns = (*COLUMNS[:HOST_AFTER], HOST, *COLUMNS[HOST_AFTER:])
            for entry, row in zip(shown, rows, strict=True):
                row.insert(HOST_AFTER, Cell(", ".join(entry.snapshot.hosts) or "-"))
        table = output.table(columns, rows, shown_on)
        lines.append(table[0])
        for entry, line in zip(shown, table[1:], strict=True):
            if entry.key in headings:
                lines += output.wrap(headings[entry.key], shown_on)
            lines += [line, *_needs(entry, now, shown_on)]
        lines.append("")
        sentence = counts.sentence() + overview.cost_sentence(entries)
        lines.append(shown_on.paint(sentence, "head"))
    elif sum(counts) > counts.archived:
        lines.append("Nothing to list in this view.")
    else:
        lines.append("No collaborations here. To create one, see `acp new --help`.")
    if counts.archived and not everything:
        lines.append(f"{counts.archived} archived (use --all to list them)")
    return lines


def _view(given: Values, settings: Settings) -> View:
    """The view that the options ask for.

    Raises:
        CommandError: no view of that name is saved.
    """
    saved = parse(settings.fleet).saved
    if given.view and given.view not in saved:
        names = ", ".join(saved) or "none"
        raise CommandError(f"no view named {given.view!r} in config.toml (saved: {names})")
    view = saved[given.view] if given.view else View()
    return view._replace(
        group=given.group or view.group,
        sort=given.sort or view.sort,
        changed=given.changed or view.changed,
    )


def _grouped(entries: Sequence[overview.FleetEntry], view: View) -> list[Section]:
    words = view.filter
    found = [e for e in entries if overview.matches(overview.haystack(e.snapshot), words)]
    return sections(found, view)


def _row(entry: overview.FleetEntry, now: datetime) -> list[Cell]:
    snapshot = entry.snapshot
    since = format.age(overview.standing_since(entry), now)
    found, severity = overview.findings(snapshot)
    name = "  " * entry.depth + entry.name
    return [
        _state(entry),
        Cell(name, "head" if entry.needs else ""),
        Cell(snapshot.protocol, "dim"),
        Cell(_phase(snapshot)),
        Cell(format.bar(snapshot.progress, BAR), "dim"),
        Cell(overview.waiting_for(snapshot)),
        Cell(since),
        Cell(found, severity.value if severity in (Severity.ERROR, Severity.WARNING) else "dim"),
    ]


def _state(entry: overview.FleetEntry) -> Cell:
    snapshot = entry.snapshot
    if entry.depth == 0 and entry.needs:
        return Cell(f"{signs.NEED} needs you", "need")
    if snapshot.source.state is not SourceState.LIVE:
        state = snapshot.source.state
        return Cell(f"{signs.SOURCE[state]} {state.value}", "warning")
    if entry.group is overview.Group.PERSON:
        return Cell(f"{signs.STATUS[snapshot.status]} waiting", "live")
    if overview.pause(snapshot):
        return Cell(f"{signs.STATUS[snapshot.status]} paused", "warning")
    word, style = {
        Status.ACTIVE: ("live", "live"),
        Status.COMPLETED: ("done", "good"),
        Status.BLOCKED: ("blocked", "error"),
        Status.UNKNOWN: ("unknown", "warning"),
    }[snapshot.status]
    return Cell(f"{signs.STATUS[snapshot.status]} {word}", style)


def _phase(snapshot: Snapshot) -> str:
    """The phase, with its round from the second one on while it lasts."""
    later = snapshot.status is Status.ACTIVE and (snapshot.round or 0) > 1
    phase = overview.phase_of(snapshot)
    return f"{phase}, round {snapshot.round}" if later else phase or "-"


def _times(matter: Matter, now: datetime) -> str:
    """How long it has been so, and how long it still lasts, as far as known."""
    since = format.age(matter.since, now) if matter.since else ""
    ahead = (matter.until.at - now).total_seconds() if matter.until else 0.0
    left = f"{format.span(ahead)} left" if ahead > 0 else ""
    words = ", ".join(filter(None, (since, left)))
    return f" ({words})" if words else ""


def _needs(entry: overview.FleetEntry, now: datetime, shown_on: Terminal) -> list[str]:
    if entry.depth:
        return []  # its whole says it
    lines: list[str] = []
    source = entry.snapshot.source
    if source.state is not SourceState.LIVE and source.note:
        first = f"    {spoken.mark(signs.SOURCE[source.state], source.state.value + ':')} "
        lines += output.wrap(source.note, shown_on, indent="      ", first=first)
    paused = None if entry.needs else overview.pause(entry.snapshot)
    if paused is not None:
        text = f"{sentence_case(paused.sentence, names_in(entry.snapshot))}{_times(paused, now)}"
        first = f"    {spoken.mark('…', 'paused:')} "
        lines += output.wrap(text, shown_on, indent="      ", first=first)
    for need in entry.needs:
        since = f" ({format.age(need.since, now)})" if need.since else ""
        own = need in entry.snapshot.needs  # a part's need is mended in the part
        remedy = hint = ""
        if need.remedy and own:
            remedy = f": {act_command(entry.snapshot, need.remedy, need.given, SHORT)}"
            hint = choice_hint(entry.snapshot, need.remedy, need.given)
        told = need_case(need, entry.snapshot)
        if own and spoken.is_wanted():  # it goes on after "needs you:"
            told = continued(need.sentence, names_in(entry.snapshot))
        text = f"{told}{since}{remedy}"
        first = f"    {spoken.mark('→', 'needs you:')} "
        lines += output.wrap(text, shown_on, indent="      ", first=first)
        lines += output.wrap(hint, shown_on, indent="      ") if hint else []
    return lines
