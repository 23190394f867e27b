"""What is noted of an attempt: while it runs in the session's state, at its end for good."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, fields, replace
from datetime import datetime
from pathlib import Path

from acp_core.agents.failures import moment
from acp_core.agents.logs import rotate
from acp_core.agents.output import Output
from acp_core.agents.spawn import Exit
from acp_core.agents.state import Run

Prices = tuple[float | None, float | None]
"""US dollars per million tokens read and written, where known."""

_LIMIT = 1 << 20  # bytes of a file of records; then a new one is begun
_LEFT_OUT = ("process", "lines", "complaints", "error_lines", "tool", "retrying", "retrying_until")


def measured(run: Run, output: Output, prices: Prices, now: datetime) -> Run:
    """An attempt with everything that its output tells so far."""
    progress = output.progress
    cost, estimated = progress.cost, False
    if cost is None and None not in prices and progress.tokens_in + progress.tokens_out:
        price_in, price_out = (price or 0.0 for price in prices)
        cost = (progress.tokens_in * price_in + progress.tokens_out * price_out) / 1e6
        estimated = True
    finished = run.finished or (now if progress.finished else None)
    return replace(
        run,
        first_output=moment(output.first),
        last_output=moment(output.last),
        tool=progress.tool,
        refused=tuple(progress.refused),
        refusals=tuple(progress.refusals),
        retries=progress.retries,
        retrying=progress.retrying,
        retrying_until=moment(progress.retrying_until),
        retry_reason=progress.retry_reason,
        silent=progress.silent,
        tokens_in=progress.tokens_in,
        tokens_out=progress.tokens_out,
        tokens_estimated=progress.tokens_estimated,
        cost=cost,
        cost_estimated=estimated,
        session=progress.session,
        opened=progress.opened,
        model=progress.model,
        version=progress.version,
        finished=finished if progress.finished else None,
        is_error=progress.is_error,
        error=progress.error,
        error_name=progress.error_name,
        error_status=progress.error_status,
        resets_at=moment(progress.resets_at),
        told_at=moment(progress.told_at),
        complaints=tuple(progress.complaints),
        error_lines=progress.error_lines,
        cut_off=progress.cut_off,
        lines=tuple(output.lines),
    )


def ended(run: Run, how: Exit, now: datetime) -> Run:
    """An attempt whose program has ended."""
    return replace(
        run,
        ended=now,
        exit_code=how.code,
        signal=how.signal,
        exit=str(how),
        tool="",
        unanswered=run.retrying or (run.silent and bool(run.stopped)),
        retrying=False,
        retrying_until=None,
    )


def append(path: Path, run: Run, facts: dict[str, object]) -> None:
    """Add a line of JSON for an attempt that ended; a full disk loses it.

    Args:
        path: the file of records.
        run: the attempt.
        facts: what else is known of it, ready for JSON.
    """
    told = {each.name: getattr(run, each.name) for each in fields(run)}
    told = {name: value for name, value in told.items() if name not in _LEFT_OUT}
    told = {n: v.isoformat() if isinstance(v, datetime) else v for n, v in told.items()}
    told["calls"] = [asdict(each) for each in run.calls]
    line = json.dumps(told | facts, ensure_ascii=True, default=str).encode() + b"\n"
    with contextlib.suppress(OSError):
        if path.is_file() and path.stat().st_size > _LIMIT:
            rotate(path)
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "ab") as file:
            file.write(line)
