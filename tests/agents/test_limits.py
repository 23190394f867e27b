"""When a limit is reset, by what programs print."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.agents.failures import LONGEST, STALE, reset_at

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


BERLIN = ZoneInfo("Europe/Berlin")
TEN_53 = datetime(2026, 5, 4, 22, 53, tzinfo=UTC)
MINUTE, SECOND, BEGINS = 60.0, 1.0, 0.0


@pytest.mark.parametrize("second", [0, 1, 29, 58, 59])
@pytest.mark.parametrize("minutes", [-600, -1, 0, 1, 14])
def test_a_time_of_day_is_todays_until_a_quarter_of_an_hour_after_it(
    second: int, minutes: int
) -> None:
    printed = TEN_53 + timedelta(minutes=minutes, seconds=second)
    found = reset_at(["usage limit reached, try again at 10:53 PM"], printed, UTC)
    assert found is not None and (found.at, found.width) == (TEN_53, MINUTE)


@pytest.mark.parametrize(
    ("late", "days"), [(timedelta(minutes=15), 0), (timedelta(minutes=15, seconds=1), 1)]
)
def test_after_a_quarter_of_an_hour_it_is_tomorrows(late: timedelta, days: int) -> None:
    found = reset_at(["usage limit reached, try again at 10:53 PM"], TEN_53 + late, UTC)
    assert found is not None and found.at == TEN_53 + timedelta(days=days)
    assert TEN_53 in found.readings  # the same words may still be about the earlier one


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("resets 10:53pm (UTC)", MINUTE),
        ("resets at 22:00 (UTC)", MINUTE),
        ("resets 22:53:07 (UTC)", SECOND),
        ("resets at 2026-05-04T22:53:07Z", SECOND),
        ("resets at 2026-05-04T22:53:07.250Z", BEGINS),
        ("resets on 2026-05-04 22:53 +00:00", MINUTE),
        ("resets 11pm (UTC)", BEGINS),
        ("resets May 6, 9am (UTC)", BEGINS),
        ("resets May 6", BEGINS),
        ("resets May 6, 10:21am (UTC)", MINUTE),
        ("limit reached|1777910400", SECOND),
        ("try again in 2 hours and 5 minutes", MINUTE),
        ("try again in 5 hours", BEGINS),
        ("retry in 25.465784708s", BEGINS),
    ],
)
def test_a_time_is_as_long_as_its_last_field(text: str, width: float) -> None:
    found = reset_at([f"usage limit {text}"], NOW, UTC)
    assert found is not None and found.width == width


def test_a_day_begins_at_midnight_and_a_whole_hour_at_its_beginning() -> None:
    day = reset_at(["limit resets May 6"], NOW, EAST)
    hour = reset_at(["limit resets 10am (Europe/Berlin)"], NOW.replace(hour=5), EAST)
    assert day is not None and day.at == datetime(2026, 5, 5, 22, tzinfo=UTC)
    assert hour is not None and hour.at == NOW.replace(hour=8, minute=0)


@pytest.mark.parametrize(
    ("printed", "text", "wanted"),
    [
        ("2026-05-04T23:58:30+00:00", "resets 12:05am (UTC)", "2026-05-05T00:05:00+00:00"),
        ("2026-05-05T00:04:00+00:00", "resets 11:55pm (UTC)", "2026-05-04T23:55:00+00:00"),
        ("2026-05-05T00:00:00+00:00", "resets 12am (UTC)", "2026-05-05T00:00:00+00:00"),
        ("2026-12-31T23:59:59+00:00", "resets 12:30am (UTC)", "2027-01-01T00:30:00+00:00"),
        ("2027-01-01T00:05:00+00:00", "resets 11:59pm (UTC)", "2026-12-31T23:59:00+00:00"),
        ("2027-01-01T00:05:00+00:00", "resets Dec 31, 11:59pm (UTC)", "2026-12-31T23:59:00+00:00"),
        ("2026-12-31T23:00:00+00:00", "resets Jan 3, 2pm (UTC)", "2027-01-03T14:00:00+00:00"),
        # Clocks go on from 02:00 to 03:00 on 29 March, and back from 03:00 to 02:00 on 25 October.
        ("2026-03-29T00:30:00+00:00", "resets 4am (Europe/Berlin)", "2026-03-29T02:00:00+00:00"),
        ("2026-03-28T22:30:00+00:00", "resets 9pm (Europe/Berlin)", "2026-03-29T19:00:00+00:00"),
        ("2026-10-25T00:10:00+00:00", "resets 2:30am (Europe/Berlin)", "2026-10-25T00:30:00+00:00"),
        ("2026-10-25T01:10:00+00:00", "resets 2:30am (Europe/Berlin)", "2026-10-25T01:30:00+00:00"),
        ("2026-10-24T22:00:00+00:00", "resets 4am (Europe/Berlin)", "2026-10-25T03:00:00+00:00"),
        ("2026-10-24T20:00:00+00:00", "resets 9pm (Europe/Berlin)", "2026-10-25T20:00:00+00:00"),
        ("2026-05-08T00:05:00+00:00", "resets Thursday 11:55pm (UTC)", "2026-05-07T23:55:00+00:00"),
    ],
)
def test_a_time_of_day_over_midnight_new_year_and_the_changes_of_the_clocks(
    printed: str, text: str, wanted: str
) -> None:
    found = reset_at([f"usage limit {text}"], datetime.fromisoformat(printed), BERLIN)
    assert found is not None and found.at == datetime.fromisoformat(wanted)


def test_a_field_goes_before_a_text() -> None:
    texts = ["usage limit reached, resets 10:53pm (UTC)", '429 {"resets_at": 1777910400}']
    found = reset_at(texts, NOW)
    assert found is not None and found.is_field and found.at == NOW.replace(hour=16, minute=0)
    relative = reset_at(['{"error":{"resets_in_seconds":90}}', texts[0]], NOW)
    assert relative is not None and relative.at == NOW + timedelta(seconds=90)
    assert not (reset_at(texts[:1], NOW) or found).is_field


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
