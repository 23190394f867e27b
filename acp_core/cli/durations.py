"""A duration as an option: ``90``, ``90s``, ``20m``, ``2h``, ``1d``."""

from __future__ import annotations

import re

import click

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_FORM = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) ?([smhd]?)")


class Duration(click.ParamType[float]):
    """Seconds, typed with or without a unit."""

    name = "duration"

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The duration in seconds."""
        if isinstance(value, int | float):
            return float(value)
        found = _FORM.fullmatch(value.strip())
        if not found:
            self.fail(f"{value!r} is no duration (try 90s, 20m, 2h or 1d)", param, ctx)
        return float(found[1]) * _UNITS[found[2]]


DURATION = Duration()
