"""When a limit is reset, by what programs print."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.agents.limits import LONGEST, reset_at

NOW = datetime(2026, 5, 4, 14, 3, tzinfo=UTC)
EAST = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("You've hit your usage limit. Try again in 5 minutes.", NOW + timedelta(minutes=5)),
        ("Rate limit: try again in 1m30s", NOW + timedelta(seconds=90)),
        ("rate limit reached, retry after 2 hours and 5 minutes", NOW + timedelta(minutes=125)),
        ("429 Too Many Requests (Retry-After: 30)", NOW + timedelta(seconds=30)),
        ('429 {"retry-after": "12"}', NOW + timedelta(seconds=12)),
        ("usage limit: resets in 3 days", NOW + timedelta(days=3)),
        ("Claude AI usage limit reached|1777910400", datetime(2026, 5, 4, 16, tzinfo=UTC)),
        ("quota exceeded, resets at 2026-05-04T16:30:00Z", NOW.replace(hour=16, minute=30)),
        ("quota exceeded, resets at 2026-05-04 18:30", NOW.replace(hour=16, minute=30)),
        ("Your limit will reset at 5pm (UTC). usage limit", NOW.replace(hour=17, minute=0)),
        ("usage limit reached, resets 7:30pm", NOW.replace(hour=17, minute=30)),
        ("usage limit reached, resets at 9am", NOW.replace(day=5, hour=7, minute=0)),
        ("usage limit, resets 11:00 (Asia/Tokyo)", NOW.replace(day=5, hour=2, minute=0)),
    ],
)
def test_a_time_that_is_told_is_understood(line: str, wanted: datetime) -> None:
    assert reset_at(["something else", line], NOW, EAST) == wanted


@pytest.mark.parametrize(
    "line",
    [
        "try again in 5 minutes",  # of no limit
        "usage limit reached",
        "usage limit: try again later",
        "usage limit: resets at 25:00",
        "usage limit: resets at 7",
        "usage limit reached|9999999999",  # too far ahead
        "usage limit: resets at 2020-01-01T00:00:00Z",
        "usage limit: resets at 5pm (No/Where)",
        "rate limit, retry in 20 ms",
        "rate limit, resets at 2026-99-99T99:99",
    ],
)
def test_what_is_not_understood_gives_no_time(line: str) -> None:
    assert reset_at([line], NOW, EAST) is None


@given(
    st.lists(
        st.text()
        | st.from_regex(
            r"usage limit,? (resets?|try again|retry after) (at|in)? ?[\d:. apmhsd]{0,30}"
        )
    )
)
def test_no_line_leads_astray(lines: list[str]) -> None:
    found = reset_at(lines, NOW)
    assert found is None or NOW < found <= NOW + LONGEST
