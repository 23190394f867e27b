"""What looks like a key is masked, and ordinary sentences stay."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_core.files.secrets import MASK, mask, mask_command

TAIL = "Zq8" * 12  # made up; the forms are what is tested


@pytest.mark.parametrize(
    "secret",
    [
        f"sk-ant-api03-{TAIL}",
        f"sk-proj-{TAIL}",
        f"ghp_{TAIL}",
        f"github_pat_{TAIL}",
        f"glpat-{TAIL}",
        f"xoxb-123-{TAIL}",
        f"AIza{TAIL}",
        "AKIA" + "Q7" * 8,
        f"hf_{TAIL}",
        "tok_" + "7a" * 16,
        "own_" + "7a" * 24,
        f"eyJhbGciOiJI.{TAIL}.{TAIL}",
    ],
)
def test_known_forms_keep_their_beginning_only(secret: str) -> None:
    shown = mask(f"with {secret}, it works")
    assert secret[:4] + MASK in shown
    assert secret[8:] not in shown
    named = mask(f"API_KEY={secret}")
    assert named.startswith(f"API_KEY={secret[:4]}{MASK}") and secret[8:] not in named
    assert shown.startswith("with ")
    assert shown.endswith(", it works")


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("OPENAI_API_KEY=abcdefgh1234", "abcdefgh1234"),
        ("export MY-SECRET: 'correct horse9'", "correct"),
        ('{"api_key": "abcdefgh1234"}', "abcdefgh1234"),
        ('{\\"password\\": \\"hunter2hunter2\\"}', "hunter2hunter2"),
        ("--token abcdefgh1234", "abcdefgh1234"),
        ("password: correcthorse", "correcthorse"),
        ("Authorization: Bearer abcdefghijkl", "abcdefghijkl"),
        ("https://user:pa55word@example.org/x", "pa55word"),
        ("-----BEGIN RSA PRIVATE KEY-----\nAAAA\nBBBB\n-----END RSA PRIVATE KEY-----", "AAAA"),
    ],
)
def test_named_secrets_are_masked(text: str, secret: str) -> None:
    assert secret not in mask(text)
    assert MASK in mask(text)


def test_quotes_stay_around_what_is_masked() -> None:
    for quote in ('"', "'", '\\"'):
        assert mask(f"api_key={quote}abcdefgh1234{quote},") == f"api_key={quote}{MASK}{quote},"


@pytest.mark.parametrize(
    "text",
    [
        "The token expires when the session ends.",
        "Nobody knows which password belongs to it.",
        "Write the password policy into proposal.md",
        "acp append --event review_submitted --reply-to 7",
        "tokens: 1200 in, 50 out",
        "see https://example.org:8080/path",
        "commit 0b36d4e Watch a list of folders",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert mask(text) == text


def test_the_value_after_an_option_is_masked() -> None:
    shown = mask_command(["run", "--api-key", "plain", "--model", "big", "--password=hunter22"])
    assert shown == ("run", "--api-key", MASK, "--model", "big", f"--password={MASK}")


@settings(deadline=None)
@given(st.text(max_size=200))
def test_masking_twice_changes_nothing_more(text: str) -> None:
    assert mask(mask(text)) == mask(text)


@pytest.mark.bench
@pytest.mark.parametrize(
    "unit", ["a-", "token ", "-----BEGIN PRIVATE KEY-----", "eyJaaaaaaaa.", "x://a:"]
)
def test_masking_is_linear(unit: str) -> None:
    took = []
    for count in (20_000, 40_000):
        text = unit * count
        start = time.perf_counter()
        mask(text)
        took.append(time.perf_counter() - start)
    print(unit, took)
