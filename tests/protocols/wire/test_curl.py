"""Everything can be done with curl alone: two agents as processes, and no library of ours."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.protocols.wire.support import ROOT, Process, until
from tests.support import forked

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")


def curl(*arguments: str) -> tuple[int, Any]:
    """Run curl; the HTTP status, and the answer."""
    ran = subprocess.run(
        ["curl", "-s", "--noproxy", "*", "-w", "\n%{http_code}", *arguments],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    text, _, status = ran.stdout.rpartition("\n")
    return int(status), json.loads(text) if text else None


def test_curl_can_do_everything() -> None:
    ports = ("--port", "0", "--http-port", "0", "--sync", "normal", "--open-loopback")
    with (
        Process("A", *ports, "--skills", "summarize") as a,
        Process("B", *ports, "--description", "answers") as b,
    ):

        def get(path: str, *more: str, agent: Process = a) -> Any:
            status, answer = curl(*more, f"{agent.url}{path}")
            assert status == 200, answer
            return answer

        def post(path: str, body: str = "{}", agent: Process = a) -> tuple[int, Any]:
            return curl("-X", "POST", "-d", body, f"{agent.url}{path}")

        assert get("/.well-known/acp.json")["skills"] == [{"id": "summarize", "name": "summarize"}]
        assert post("/skills/query", '{"query":"summarize"}')[1]["skills"][0]["match_score"] == 1.0
        assert post("/message:send", '{"text":"too early"}')[0] == 503
        link = get("/link", agent=b)["link"]
        status, connecting = post("/peers/connect", json.dumps({"link": link}))
        assert (status, connecting["ok"]) == (200, True)
        peer = connecting["peer_id"]
        until(lambda: get(f"/peer/{peer}")["connected"], "the connection")
        assert get("/peers")[0]["agent_card"]["description"] == "answers"
        assert get("/peers", "-H", "Accept: application/json")["active"] == 1

        followed = subprocess.Popen(
            ["curl", "-sN", "--noproxy", "*", f"{b.url}/stream"], stdout=subprocess.PIPE, text=True
        )
        assert followed.stdout
        while "acp.ready" not in followed.stdout.readline():
            pass

        status, sent = post("/message:send", '{"text":"hello","message_id":"m1","context_id":"c"}')
        assert (status, sent["ok"], sent["message_id"]) == (200, True, "m1")
        assert (
            post("/message:send", '{"text":"hello","message_id":"m1"}')[1]["server_seq"]
            == sent["server_seq"]
        )
        while not (line := followed.stdout.readline()).startswith("data: {") or "m1" not in line:
            pass
        assert json.loads(line[6:])["parts"] == [{"type": "text", "content": "hello"}]
        followed.kill()
        followed.wait()
        followed.stdout.close()
        assert [m["id"] for m in get("/recv", agent=b)["messages"]] == ["m1"]
        assert get("/context/c/messages", agent=b)["total"] == 1
        assert get("/messages?direction=out&limit=1")["messages"][0]["message_id"] == "m1"

        full = '{"role":"user","parts":[{"type":"file","url":"https://example.com/x"}]}'
        assert post(f"/peer/{peer}/send", full)[0] == 200
        status, task = post("/tasks", '{"text":"do it","delegate":true}')
        assert (status, task["status"]) == (201, "submitted")
        place = f"/tasks/{task['id']}"
        until(lambda: curl(f"{b.url}{place}")[0] == 200, "the task's arrival")
        assert post(f"{place}:update", '{"status":"input_required"}', b)[0] == 200
        until(lambda: get(place)["status"] == "input_required", "the question")
        assert post(f"{place}:continue", '{"text":"so"}')[1]["status"] == "working"
        until(lambda: get(place, agent=b)["status"] == "working", "the answer")
        assert post(f"{place}:update", '{"status":"completed","artifact":"done"}', b)[0] == 200
        assert get(f"{place}/wait?timeout=20")["task"]["artifact"]["parts"][0]["content"] == "done"
        status, error = post(f"{place}:cancel")
        assert (status, error["error_code"]) == (400, "ERR_INVALID_REQUEST")
        assert [t["id"] for t in get("/tasks?status=completed")] == [task["id"]]

        b.kill()
        until(lambda: not get("/status")["connected"], "the end of the connection")
        status, queued = post("/message:send", '{"text":"later"}')
        assert (status, queued["queued"]) == (202, True)
        assert get("/offline-queue")["total_queued"] == 1
        assert curl("-H", "Origin: https://evil.example", f"{a.url}/status")[0] == 403
        assert curl("-X", "DELETE", f"{a.url}/peer/{peer}")[1]["ok"] is True


def test_the_stream_of_an_agent_that_listens_everywhere_is_followed_as_the_page_says() -> None:
    ports = ("--port", "0", "--http-port", "0", "--sync", "normal", "--host", "0.0.0.0")
    with Process("A", *ports) as a:
        ran = forked.run(("wire", "token", "A"), ROOT, {**os.environ, "PYTHONPATH": str(ROOT)}, "")
        owner = f"Authorization: Bearer {ran.stdout.strip()}"
        port = urlsplit(a.url).port
        for host in (urlsplit(a.url).hostname, "127.0.0.1", "localhost"):
            place = f"http://{host}:{port}"
            body = json.dumps({"text": f"hello at {host}", "from": "me"})
            assert curl("-H", owner, "-d", body, f"{place}/message:send")[0] == 200
            followed = subprocess.Popen(
                ["curl", "-sN", "--noproxy", "*", "-H", owner, f"{place}/stream?since=0"],
                stdout=subprocess.PIPE,
                text=True,
            )
            assert followed.stdout
            while f"hello at {host}" not in (line := followed.stdout.readline()):
                assert "ERR_" not in line, line
            followed.kill()
            followed.wait()
            followed.stdout.close()
        assert curl("-m", "20", f"{place}/stream")[0] == 401
