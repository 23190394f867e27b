"""The sections of the measurements by name; each is imported when it is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from acp_core.protocols.registry import load

if TYPE_CHECKING:
    from tests.bench.bench import Bench
    from tests.bench.figures import Figure

Measure = Callable[["Bench"], Iterator["Figure"]]


class Section(NamedTuple):
    """``target`` is ``module:function`` of what measures it.

    ``extra`` is an extra of the distribution that it needs, ``needs`` a module of that extra.
    ``imports``: it measures functions that it imports, not the program.
    """

    name: str
    summary: str
    target: str
    extra: str = ""
    needs: str = ""
    imports: bool = False

    @property
    def missing(self) -> str:
        """What has to be installed first, "" where nothing has."""
        absent = self.needs and find_spec(self.needs) is None
        return f"acp-tui[{self.extra}]" if absent else ""


SECTIONS = (
    Section("start", "from start to first picture", "tests.bench.start:measure"),
    Section("changes", "from a change on disk to the screen", "tests.bench.changes:measure"),
    Section("commands", "append, next and validate", "tests.bench.commands:measure"),
    Section("timeline", "100,000 events on one screen", "tests.bench.long_timeline:measure"),
    Section("fleet", "1,000 collaborations at once", "tests.bench.fleet:measure"),
    Section("finished", "5,000 finished collaborations", "tests.bench.finished:measure"),
    Section("gigabyte", "a log of a gigabyte", "tests.bench.gigabyte:measure"),
    Section("parked", "loops that wait for their turn", "tests.bench.parked:measure", imports=True),
    Section("sessions", "live sessions at work", "tests.bench.sessions:measure", imports=True),
    Section("replay", "stepping through the past", "tests.bench.replay:measure", imports=True),
    Section("share", "shared collaborations over git and PostgreSQL", "tests.bench.share:measure", "postgres",
            "psycopg", imports=True),
    Section("wire", "agents over the network", "tests.bench.wire:measure", "wire", "starlette"),
)  # fmt: skip


def chosen(names: Sequence[str]) -> list[Section]:
    """The sections of these names in their own order; all where none is named.

    Raises:
        KeyError: there is none of a name.
    """
    known = {section.name: section for section in SECTIONS}
    for name in names:
        known[name]
    return [section for section in SECTIONS if not names or section.name in names]


def measure(bench: Bench, section: Section) -> Iterator[Figure]:
    """The figures of one section, as they come."""
    target: Measure = load(section.target)
    yield from target(bench)
