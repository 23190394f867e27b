"""When a limit is reset, by what programs print."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.agents.limits import LONGEST, STALE, reset_at

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
        ("weekly limit · resets May 6, 10:21am (UTC)", NOW.replace(day=6, hour=10, minute=21)),
        ("try again at May 6th, 2026 10:21 AM.", NOW.replace(day=6, hour=8, minute=21)),
        (
            "limit resets May 6 at 10am (Europe/Berlin). Upgrade to Pro 20",
            NOW.replace(day=6, hour=8, minute=0),
        ),
        ("limit resets Thursday 10am PT", NOW.replace(day=7, hour=17, minute=0)),
        ("resets on 2026-05-06 10:21 +02:00", NOW.replace(day=6, hour=8, minute=21)),
        ("Please retry in 600s", NOW + timedelta(minutes=10)),
        (
            '{"type":"usage_limit_reached","resets_at":1777910400}',
            datetime(2026, 5, 4, 16, tzinfo=UTC),
        ),
    ],
)
def test_a_time_that_is_told_is_understood(line: str, wanted: datetime) -> None:
    found = reset_at(["something else", line], NOW, EAST)
    assert found is not None and found.at == wanted


@pytest.mark.parametrize(
    "line",
    [
        "usage limit reached",
        "usage limit: try again later",
        "usage limit: resets at 25:00",
        "usage limit: resets at 7",
        "usage limit reached|9999999999",  # too far ahead
        "usage limit: resets at 2020-01-01T00:00:00Z",
        "usage limit: resets Aug 30, 10am (UTC)",  # too far ahead
        "usage limit: resets at 5pm (No/Where)",
        "rate limit, retry in 20 ms",
        "rate limit, resets at 2026-99-99T99:99",
    ],
)
def test_what_is_not_understood_gives_no_time(line: str) -> None:
    assert reset_at([line], NOW, EAST) is None


def test_a_date_at_the_turn_of_the_year_is_one_of_the_next() -> None:
    now = datetime(2026, 12, 30, 12, tzinfo=UTC)
    found = reset_at(["weekly limit · resets Jan 3, 2pm (UTC)"], now)
    assert found is not None and found.at == datetime(2027, 1, 3, 14, tzinfo=UTC)


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
    assert found is None or NOW - STALE <= found.at <= NOW + LONGEST
