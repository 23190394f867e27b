"""No command echoes the token of a link that it was given, whatever it says of it."""

from __future__ import annotations

import pytest

from acp_core.cli import table
from acp_core.cli.hidden import hider
from acp_core.protocols import registry
from tests.cli.support import Acp

TOKEN = "tok_5ecre7f00dbeef01"
HOST = "127.0.0.1:9"  # no answer from this address
GOES_ON = {"agent", "bridge", "dashboard", "demo", "record", "relay", "serve", "watch"}
"""Commands that would not end by themselves with a link alone."""
COMMANDS = sorted(
    {each.name for each in table.ENTRIES}
    | {each.name for known in registry.bundled() for each in known.commands}
)
WIRE = ("card", "skills", "tasks", "peers", "send", "answer", "cancel", "connect", "move",
        "forget", "token", "agents", "discover")  # fmt: skip


def check(acp: Acp, *words: str) -> None:
    ran = acp(*words)
    assert TOKEN not in ran.stdout + ran.stderr, words
    assert TOKEN[4:] not in ran.stdout + ran.stderr, words
    assert "Traceback" not in ran.stderr
    assert "should not happen" not in ran.stderr, words


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_echoes_the_token_of_a_link(acp: Acp, command: str) -> None:
    for link in (f"http://{HOST}/{TOKEN}", f"acp+wss://relay.example/acp/{TOKEN}"):
        check(acp, command, link, "--no-such-option")
        check(acp, command, f"--no-such-option={link}", link)
        if command not in GOES_ON:
            check(acp, command, link)
            check(acp, command, link, "--json")


@pytest.mark.parametrize("verb", WIRE)
def test_no_command_of_the_wire_does(acp: Acp, verb: str) -> None:
    link = f"acp://{HOST}/{TOKEN}"
    for words in ((link,), (link, link), (link, "x", link), (link, "--none"), (f"--text={link}",)):
        check(acp, "wire", verb, *words)
    check(acp, "wire", "stream", link, "--none")


def test_what_a_link_leads_to_is_checked_or_the_reason_is_said(acp: Acp) -> None:
    ran = acp("validate", f"http://{HOST}/{TOKEN}")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == f"error: cannot reach {HOST}\n"
    assert acp("unarchive", f"http://{HOST}/{TOKEN}").stdout == f"not archived: http://{HOST}\n"
    assert acp("unarchive", "acp://").stderr.startswith("error: the link names no host")


def test_a_token_is_hidden_whole_cut_short_and_between_others() -> None:
    hide = hider(("--join", f"acp://{HOST}/{TOKEN}/"))
    assert hide is not None
    assert hide(f"no agent {TOKEN}, and none at acp://{HOST}/{TOKEN}.") == (
        f"no agent …, and none at acp://{HOST}/…."
    )
    assert hide(f"'acp://{HOST}/tok_5ec…'") == f"'acp://{HOST}/……'"
    assert hide(f"http://{HOST}/message:send {TOKEN}x") == f"http://{HOST}/message:send {TOKEN}x"
    another = f"acp://{HOST}/{TOKEN[:-4]}none"  # of an agent at the same relay
    assert hide(another) == another
    long = hider((f"acp://{HOST}/{'a' * 100_000}",))
    assert long is not None and long(f"acp://{HOST}/{'a' * 90}…") == f"acp://{HOST}/……"
    short = hider(("acp://h/ab",))
    assert short is not None
    assert short("acp://h/ab is about /ab") == "acp://h/… is about /ab"
    assert hider(("--file", "https://example.com/report.pdf", "a/b")) is None
