"""`acp ack`, `acp archive`, `acp unarchive`: what a person notes for themselves."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.support import Acp
from tests.support import toy


@pytest.fixture
def talk(acp: Acp) -> Path:
    folder = toy.make(acp.home / "talk")
    toy.say(folder, "ben", "asked", "Blue or green?")
    return folder


def counts(acp: Acp) -> dict[str, int]:
    told: dict[str, int] = json.loads(acp("status", "--json").stdout)["counts"]
    return told


def test_an_acknowledged_need_goes_from_the_top_until_there_is_a_new_one(
    acp: Acp, talk: Path
) -> None:
    assert counts(acp)["need"] == 1
    ran = acp("ack", "talk", "--note", "after lunch")
    assert (ran.returncode, ran.stdout) == (0, "acknowledged: ben asks: Blue or green?\n")
    assert counts(acp)["need"] == 0
    [only] = json.loads(acp("status", "--json").stdout)["collaborations"]
    assert only["needs"][0]["acknowledged"] is True
    assert acp("ack", "talk").stdout == "talk has no attention item.\n"
    toy.say(talk, "ann", "asked", "Or red?")
    assert counts(acp)["need"] == 1


def test_of_several_needs_one_must_be_named(acp: Acp, talk: Path) -> None:
    toy.say(talk, "ann", "asked", "Or red?")
    ran = acp("ack", "talk")
    assert ran.returncode == 2
    assert ran.stderr == (
        "error: name one, or use --all: "
        "question:1 (ben asks: Blue or green?); question:2 (ann asks: Or red?)\n"
    )
    assert acp("ack", "talk", "nothing").returncode == 2
    assert acp("ack", "talk", "question:2").stdout == "acknowledged: ann asks: Or red?\n"
    assert counts(acp)["need"] == 1
    toy.say(talk, "ann", "asked", "Or none?")
    assert acp("ack", "talk", "--all").stdout.count("acknowledged") == 2
    assert counts(acp)["need"] == 0


def test_the_archive_hides_nothing_that_cannot_be_found(acp: Acp, talk: Path) -> None:
    before = {name: (talk / name).read_bytes() for name in os.listdir(talk)}
    ran = acp("archive", "talk")
    assert (ran.returncode, ran.stdout) == (0, "archived: talk\n")
    assert counts(acp) == {
        "need": 0, "person": 0, "live": 0, "parts": 0, "done": 0, "blocked": 0, "unknown": 0, "archived": 1,
    }  # fmt: skip
    out = acp("status").stdout
    assert "1 archived (use --all to list them)" in out and "front" not in out
    assert "talk" in acp("status", "--all").stdout
    assert {name: (talk / name).read_bytes() for name in os.listdir(talk)} == before
    assert acp("unarchive", "talk").stdout == "unarchived: talk\n"
    assert acp("unarchive", "talk").stdout == "not archived: talk\n"
    assert sum(counts(acp).values()) == 1 and not counts(acp)["archived"]


def test_what_is_gone_can_still_be_taken_from_the_archive(acp: Acp, talk: Path) -> None:
    acp("archive", "talk")
    talk.rename(acp.home / "moved")
    assert acp("unarchive", "talk").stdout == "unarchived: talk\n"


@pytest.mark.parametrize("command", ["ack", "archive"])
def test_what_is_no_collaboration_is_one_clear_line(acp: Acp, command: str) -> None:
    ran = acp(command, "nowhere")
    assert (ran.returncode, ran.stderr) == (2, "error: nowhere: no such folder\n")


def test_notes_that_cannot_be_kept_are_one_clear_line(acp: Acp, talk: Path) -> None:
    (acp.home / "file").write_text("")
    ran = acp("archive", "talk", env={"ACP_STATE": str(acp.home / "file" / "state")})
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == f"error: {acp.home}/file/state: Not a directory\n"
