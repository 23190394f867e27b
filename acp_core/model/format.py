"""Times, counts and bars as short text, and the first letter of a sentence. All of it is plain: nothing here
is styled.

Needs, causes and headlines are data that is printed in two ways: at the beginning of a row, where they
begin with a capital, and after " — " or ": ", where none stands. Names keep the letter that they have.
Standard library only (see `acp_core.model`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

TYPE_CHECKING = False  # without typing, which costs a start

if TYPE_CHECKING:
    from acp_core.model.matter import Matter
    from acp_core.model.snapshot import Snapshot

MINUTE, HOUR, DAY = 60, 3600, 86_400
FULL, EMPTY, UNKNOWN = "█", "░", "┄"

# From how many seconds on a unit is used: 13 days say more than one week does.
_UNITS = (
    (365 * DAY, 365 * DAY, "y"),
    (14 * DAY, 7 * DAY, "w"),
    (2 * DAY, DAY, "d"),
    (HOUR, HOUR, "h"),
    (MINUTE, MINUTE, "m"),
)


def span(seconds: float) -> str:
    """A duration in its biggest unit: ``45s``, ``19m``, ``2h``, ``3d``, ``5w``, ``2y``.

    Negative durations (clocks that disagree) count as nothing: ``0s``.
    """
    whole = max(0, int(seconds))
    for least, one, unit in _UNITS:
        if whole >= least:
            return f"{whole // one}{unit}"
    return f"{whole}s"


def long_span(seconds: float) -> str:
    """A duration in two units: ``45 s``, ``19 min``, ``2 h 5 min``, ``3 d 4 h``."""
    whole = max(0, int(seconds))
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} min"
    if whole < DAY:
        hours, rest = divmod(whole, HOUR)
        return f"{hours} h {rest // MINUTE} min" if rest >= MINUTE else f"{hours} h"
    days, rest = divmod(whole, DAY)
    return f"{days} d {rest // HOUR} h" if rest >= HOUR else f"{days} d"


def hours_span(seconds: float) -> str:
    """A duration in hours, where a day is not one of 24 hours: ``40 h``, ``2 h 5 min``."""
    hours, rest = divmod(max(0, int(seconds)), HOUR)
    if not hours:
        return long_span(rest)
    return f"{hours} h {rest // MINUTE} min" if rest >= MINUTE else f"{hours} h"


def age(since: datetime | None, now: datetime) -> str:
    """How long ago ``since`` was, in its biggest unit; ``-`` where it is not known."""
    return "-" if since is None else span((now - since).total_seconds())


def zoned(at: datetime, utc: bool = False) -> datetime:
    """``at`` in the zone in which it is shown: local time, or UTC on demand."""
    return at.astimezone(UTC if utc else None)


def clock(at: datetime, utc: bool = False) -> str:
    """Hour and minute: ``14:03``, or ``14:03Z`` in UTC."""
    return zoned(at, utc).strftime("%H:%M") + ("Z" if utc else "")


def moment(at: datetime, now: datetime, utc: bool = False) -> str:
    """A time as short as it can be said: ``14:03`` today, ``3 May 14:03``, ``3 May 2025 14:03``."""
    shown, today = zoned(at, utc), zoned(now, utc)
    if shown.date() == today.date():
        return clock(at, utc)
    year = "" if shown.year == today.year else f" {shown.year}"
    return f"{shown.day} {shown.strftime('%b')}{year} {clock(at, utc)}"


def instant(at: datetime) -> str:
    """A time of the day as precisely as it is known: ``14:03:07``, ``14:03:07.250000``."""
    return at.time().isoformat()


def exact(at: datetime, utc: bool = False) -> str:
    """A time to the second with its zone: ``2026-05-03 14:03:07 +0200``."""
    shown = zoned(at, utc)
    return shown.strftime("%Y-%m-%d %H:%M:%S ") + ("UTC" if utc else shown.strftime("%z"))


def precise(at: datetime, utc: bool = False) -> str:
    """A time as precisely as it is known, with its zone: ``2026-05-03 14:03:07.250000 +0200``."""
    shown = zoned(at, utc)
    return f"{shown:%Y-%m-%d} {instant(shown)} {'UTC' if utc else shown.strftime('%z')}"


def bar(progress: float | None, cells: int) -> str:
    """A bar of ``cells`` cells: full and empty ones.

    Args:
        progress: from 0.0 to 1.0, what lies beyond counts as the nearer end; None where it is not
            known, which is drawn as dashes.
        cells: how wide it is.
    """
    if progress is None:
        return UNKNOWN * cells
    full = round(min(1.0, max(0.0, progress)) * cells)
    return FULL * full + EMPTY * (cells - full)


def grouped(value: int) -> str:
    """A number as all screens and commands write it: ``9``, ``12,400``."""
    return f"{value:,}"


def count(number: int, one: str, many: str = "") -> str:
    """``1 error``, ``2 errors``, ``1,200 events``."""
    return f"{grouped(number)} {one if number == 1 else many or one + 's'}"


def size(octets: int) -> str:
    """A file's size: ``812 B``, ``4.1 kB``, ``2.0 MB``."""
    amount, unit = float(octets), "B"
    for bigger in ("kB", "MB", "GB", "TB"):
        if amount < 999.95:
            break
        amount, unit = amount / 1000, bigger
    return f"{octets} B" if unit == "B" else f"{amount:.1f} {unit}"


def dated(at: datetime | None) -> str:
    """A time with its day and second, in local time: ``3 May 14:03:07``.

    For texts that stay as they are while time passes.
    """
    if at is None:
        return "an unknown time"
    local = zoned(at)
    return f"{local.day} {local:%b %H:%M:%S}"


_OF_NAMES = frozenset("./_`'\"’“”„‘")
_COMMANDS = frozenset(("acp", "git", "mkdir"))


def sentence_case(text: str, names: Iterable[str] = ()) -> str:
    """A text as it stands by itself: with a capital, unless it begins with a name.

    Args:
        text: a need, a cause, an advice, a headline.
        names: names of participants, which begin a sentence as they are ("reader's program ended").
            A file, an id, a field, what is quoted and a command are known as such without.
    """
    first = text[:1]
    capital = first.upper()
    if capital == first or len(capital) != 1 or _is_name(text, names):
        return text
    return capital + text[1:]


def continued(text: str, names: Iterable[str] = ()) -> str:
    """A text as it goes on after " — " or ": ": without a capital, unless it begins with a name.

    Args:
        text: a need, a cause, an advice, a headline.
        names: names of participants, which stay as they are.
    """
    word = _first_word(text)
    ordinary = word.isalpha() and word[:1].isupper() and not any(map(str.isupper, word[1:]))
    if not ordinary or _is_name(text, names):
        return text
    return text[:1].lower() + text[1:]


def quote_command(text: str) -> str:
    """A text as it stands within a sentence: a command in back-ticks, anything else as it is."""
    return f"`{text}`" if text.startswith("acp ") and "`" not in text else text


def names_in(snapshot: Snapshot) -> Iterator[str]:
    """The names with which a sentence about a collaboration may begin."""
    for each in snapshot.participants:
        if each.id != "you":  # a pronoun
            yield each.id
    yield snapshot.name


def need_case(need: Matter, snapshot: Snapshot) -> str:
    """A need as it stands by itself; one of a part begins with the part's name.

    Args:
        need: what a human is wanted for.
        snapshot: the collaboration under which it is shown.
    """
    if need not in snapshot.needs:
        return need.sentence
    return sentence_case(need.sentence, names_in(snapshot))


def is_said(text: str, longer: str) -> bool:
    """Whether a longer text says a sentence, with or without its capital."""
    return text in longer or text[:1].swapcase() + text[1:] in longer


def _first_word(text: str) -> str:
    return text.partition(" ")[0].rstrip(",:;.!?")


def _is_name(text: str, names: Iterable[str]) -> bool:
    """Whether a text begins with what is written as it is wherever it stands."""
    word = _first_word(text)
    if word in _COMMANDS or any(map(str.isupper, word[1:])):
        return True
    owner = word.removesuffix("'s").removesuffix("’s")
    if any(sign in _OF_NAMES or sign.isdigit() for sign in owner):
        return True
    return any(_begins(text, name) for name in names)


def _begins(text: str, name: str) -> bool:
    """Whether a text begins with this very name, and not with a longer word."""
    after = text[len(name) : len(name) + 1]
    return bool(name) and text.startswith(name) and not (after.isalnum() or after in ("-", "_"))
