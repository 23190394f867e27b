"""``acp chart``: who did what when, drawn on the terminal or as SVG."""

from __future__ import annotations

from collections.abc import Iterator

from acp_core.cli.layout import fit
from acp_core.cli.output import Terminal, say, terminal
from acp_core.cli.past import chain_of
from acp_core.cli.start import load_settings
from acp_core.cli.stats import measure
from acp_core.files import atomic
from acp_core.history import chart as charts
from acp_core.history.chart import Chart, chart_lines, svg
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError
from acp_core.person.working_hours import Working
from acp_core.protocols.kit.values import Values

_WIDTH = 100  # columns where the output has none of its own
_STYLES = {
    "phase": "live",
    "turn": "good",
    "open": "need",
    "arrow": "dim",
    "level": "",
    "bad": "error",
}


def chart(given: Values) -> int:
    """Draw here, or into a file.

    Raises:
        CommandError: there is nothing to draw, or the file cannot be written.
    """
    folder, chain, output = given.folder, given.chain, given.output
    settings = load_settings()
    utc, working, now = given.utc or settings.utc, Working.of(settings.working), utc_now()
    found = [measure(each, working, now) for each in (chain_of(folder) if chain else [folder])]
    drawn = [(each.snapshot.name, each.drawn) for each in found if each.drawn is not None]
    whole = charts.joined(drawn) if chain else next((each for _, each in drawn), None)
    if whole is None:
        raise CommandError(f"{folder}: nothing to draw: no times are recorded")
    if not output:
        for line in _painted(whole, terminal(), utc):
            say(line)
        return 0
    try:
        atomic.replace(output, (svg(whole, utc=utc) + "\n").encode(errors="replace"))
    except OSError as error:
        raise CommandError(f"{output}: {error.strerror or error}") from None
    say(f"written: {output}")
    return 0


def _painted(drawn: Chart, shown_on: Terminal, utc: bool) -> Iterator[str]:
    for row in chart_lines(drawn, shown_on.width or _WIDTH, utc=utc, fit=fit):
        text = "".join(shown_on.paint(text, _STYLES.get(style, style)) for text, style in row)
        yield text if shown_on.colour else text.rstrip()
