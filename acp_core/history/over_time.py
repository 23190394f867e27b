"""How many findings there were when, as far as that was recorded."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from acp_core.history.schema import Seen


class Point(NamedTuple):
    """From ``at`` on there were so many findings of each severity."""

    at: datetime
    errors: int
    warnings: int


def findings_over_time(looks: Iterable[Seen]) -> tuple[Point, ...]:
    """A point for each change of the numbers; nothing where nothing was recorded."""
    found: list[Point] = []
    for look in looks:
        counted = Counter(each[1] for each in json.loads(look.findings))
        point = Point(datetime.fromtimestamp(look.at, UTC), counted["error"], counted["warning"])
        if not found or found[-1][1:] != point[1:]:
            found.append(point)
    return tuple(found)
