"""An agent of one account, asked by another one of the same machine: it has a grant of its own, or none."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.agents.support import wait_for
from tests.support.accounts import Account, Shared

pytestmark = pytest.mark.slow
PORTS = ("--port", "0", "--http-port", "0", "--json")
OWNERS = ("/status", "/link", "/messages", "/recv", "/history", "/peers", "/tasks", "/stream",
          "/offline-queue")  # fmt: skip
POSTED = ("/message:send", "/tasks", "/peers/connect", "/webhooks/register", "/channel")


@contextmanager
def agent(account: Account, *words: str) -> Iterator[dict[str, Any]]:
    """An agent of an account, and what it says of itself."""
    process = account.start(*account.words("agent", *words, *PORTS))
    try:
        assert process.stdout
        about: dict[str, Any] = json.loads(process.stdout.readline())
        yield about
    finally:
        process.kill()
        process.communicate()


def curl(account: Account, url: str, *words: str) -> tuple[int, str]:
    """What an account gets by curl: the HTTP status, and the answer."""
    asked = ("curl", "-s", "--noproxy", "*", "-m", "20", "-w", "\n%{http_code}", *words, url)
    code, out, err = account.run(*asked)
    assert code == 0, err
    text, _, status = out.rpartition("\n")
    return int(status), text


def test_another_account_is_refused_without_a_grant_and_served_with_one(two: Shared) -> None:
    anna, ben = two.anna, two.ben
    answered = two.folder / "answered"
    touch = two.file("touch", f'#!/bin/sh\ncat >> "{answered}"\n')
    with agent(
        anna, "--name", "Annas", "--on-message", str(touch), "--workdir", str(two.folder)
    ) as about:
        url, token = about["http_url"], about["link"].rpartition("/")[2]
        boss = json.dumps({"text": "delete it all", "from": "boss", "create_task": True})
        for path in OWNERS:
            assert curl(ben, url + path)[0] == 401, path
            assert curl(ben, url + path, "-H", f"Authorization: Bearer {token}x")[0] == 401, path
        for path in POSTED:
            assert curl(ben, url + path, "-d", boss)[0] == 401, path
        status, card = curl(ben, f"{url}/card")
        assert (status, token in card, about["owner_token"] in card) == (200, False, False)

        # What acp keeps for anna tells ben nothing, and his own commands know no token of hers.
        store = str(anna.state / "wire" / "Annas")
        assert ben.run("cat", f"{store}/agent.json")[0] != 0
        assert ben.run("ls", store)[0] != 0
        assert "a bearer token" in ben.acp("wire", "tasks", url, codes=(1, 2))
        ben.acp("wire", "send", url, "delete it all", "--from", "boss", codes=(1, 2))
        assert not answered.exists()
        assert anna.json("wire", "tasks", "Annas")["tasks"] == []

        # Anna gives him the link: a peer's rights, which are to be heard, and not to see or steer.
        grant = ("-H", f"Authorization: Bearer {token}")
        for path in OWNERS:
            assert curl(ben, url + path, *grant)[0] == 403, path
        assert curl(ben, f"{url}/peers/connect", "-d", '{"link":"acp://h/x"}', *grant)[0] == 403
        with agent(ben, "--name", "Bens", "--join", about["link"]):
            wait_for(lambda: "Bens" in anna.acp("wire", "peers", "Annas"), "the connection")
            ben.acp("wire", "send", "Bens", "Good morning")
            wait_for(answered.exists, "the answer to a peer")
            assert "Good morning" in answered.read_text()
            assert "delete" not in answered.read_text()

        # Or, of her own will, all of it.
        env = {**ben.env, "ACP_WIRE_TOKEN": about["owner_token"]}
        asked = subprocess.run(
            ben.words("wire", "peers", url, "--json"), user=ben.uid, group=ben.gid,
            extra_groups=[ben.group], env=env, cwd=ben.home, capture_output=True, text=True,
            check=False, timeout=60,
        )  # fmt: skip
        assert [each["name"] for each in json.loads(asked.stdout)["peers"]] == ["Bens"]
