"""A turn is taken by a model's service: a real HTTP server on this machine stands in for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from acp_core.protocols.governed.conduct.services import address
from acp_core.protocols.governed.schema import Runtime
from tests.protocols.governed import playing
from tests.protocols.governed.acting import YES, acted, governed, told, turn_of
from tests.protocols.governed.making import Object

KEY = "sk-" + "k" * 40


class Service:
    """What the server was asked, and how it answers."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], Object]] = []
        self.status, self.form, self.text = 200, "openai", ""
        self.headers: dict[str, str] = {}

        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                body = json.loads(self.rfile.read(length))
                headers = {name.lower(): value for name, value in self.headers.items()}
                service.asked.append((self.path, headers, body))
                data = json.dumps(service.answer(body)).encode()
                self.send_response(service.status)
                for name, value in service.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def answer(self, body: Object) -> Object:
        said = self.text or result_for(json.dumps(body))
        if self.form == "anthropic":
            usage = {"input_tokens": 11, "output_tokens": 7}
            return {"content": [{"type": "text", "text": said}], "usage": usage}
        usage = {"prompt_tokens": 11, "completion_tokens": 7}
        return {"choices": [{"message": {"role": "assistant", "content": said}}], "usage": usage}

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def result_for(prompt: str) -> str:
    """A turn result with the ids that stand in the prompt, in a fence as models like it."""
    import re

    ids = {name: re.search(rf"{name}_[0-9a-f]{{16}}", prompt)[0] for name in ("run", "turn")}  # type: ignore[index]
    result = {
        "schema_version": "1.0", "run_id": ids["run"], "turn_id": ids["turn"], "role": "pm",
        "runtime_id": "local-pm", "status": "completed", "summary": "Planned.",
        "decisions": [], "files_changed": [], "verification": {"status": "skipped"},
        "objections": [
            {"id": "OBJ-001", "severity": "low", "statement": "Small.", "status": "raised"}
        ],
        "artifact": {"type": "review", "ref": None}, "proposed_next_role": "pm",
    }  # fmt: skip
    return f"Here it is:\n```json\n{json.dumps(result)}\n```"


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    yield made
    made.close()


def start(root: Path, **runtime: Any) -> Path:
    """A run whose planner is a model's service, allowed to be asked."""
    playing.repository(root)
    acted("init", root, "--agent", "pm=none")
    path = root / "agentxchain.json"
    config = json.loads(path.read_text())
    made = {"type": "api_proxy", "provider": "openai", "model": "m-1", "auth_env": "LAMP_KEY"}
    config["runtimes"]["local-pm"] = made | runtime
    path.write_text(json.dumps(config))
    acted("trust", root, *YES)
    return root


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_a_service_takes_the_turn(
    tmp_path: Path, service: Service, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMP_KEY", KEY)
    service.form = form
    root = start(tmp_path / "lamp", provider=form, base_url=service.url)
    acted("step", root)
    acted("accept-turn", root)
    [(path, headers, body)] = service.asked
    if form == "openai":
        assert path == "/v1/chat/completions"
        assert headers["authorization"] == f"Bearer {KEY}"
        assert [message["role"] for message in body["messages"]] == ["system", "user"]
    else:
        assert path == "/v1/messages"
        assert headers["x-api-key"] == KEY and headers["anthropic-version"]
        assert "## Your Mandate" in body["system"]
    assert body["model"] == "m-1"
    assert KEY not in json.dumps(body)
    [line] = told(root, "history.jsonl")
    assert line["cost"] == {"input_tokens": 11, "output_tokens": 7, "usd": 0}
    kept = "".join(p.read_text() for p in (root / ".agentxchain").rglob("*") if p.is_file())
    assert KEY not in kept


@pytest.mark.parametrize(
    ("status", "text", "said"),
    [
        (401, "", "refused the key in LAMP_KEY"),
        (429, "", "limits further requests"),
        (500, "", "answered HTTP 500"),
        (307, "", "redirects elsewhere"),
        (200, "I cannot do that.", "contains no JSON object"),
        (200, "[1, 2]", "contains no JSON object"),
    ],
)
def test_what_a_service_does_wrong_is_said_and_can_be_tried_again(
    tmp_path: Path, service: Service, status: int, text: str, said: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("LAMP_KEY", KEY)
    root = start(tmp_path / "lamp", base_url=service.url)
    service.status, service.text = status, text
    service.headers = {"location": f"{service.url}/elsewhere"}
    assert governed(["step", str(root)]) == 1
    shown = capsys.readouterr()
    assert said in shown.out
    assert KEY not in shown.out + shown.err
    assert len(service.asked) == 1
    turn = turn_of(root)
    assert turn["status"] == "failed_start" and said in turn["failed_start_reason"]
    service.status, service.text = 200, ""
    assert governed(["step", str(root)]) == 0


@pytest.mark.parametrize(
    ("runtime", "said"),
    [
        ({"provider": "oracle"}, "is unknown"),
        ({"auth_env": "NOT_SET_ANYWHERE"}, "is not set"),
        ({"auth_env": ""}, "names no auth_env"),
        ({"model": ""}, "names no model"),
        ({"base_url": "http://example.org"}, "neither https nor on this machine"),
        ({"base_url": "file:///etc/passwd"}, "neither https nor on this machine"),
        ({"base_url": "http://127.0.0.1:1"}, "cannot be reached"),
    ],
)
def test_a_runtime_that_cannot_be_asked_says_why(
    tmp_path: Path, runtime: dict[str, str], said: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("LAMP_KEY", KEY)
    monkeypatch.delenv("NOT_SET_ANYWHERE", raising=False)
    root = start(tmp_path / "lamp", **({"base_url": "http://127.0.0.1:1"} | runtime))
    assert governed(["step", str(root)]) == 1
    assert said in capsys.readouterr().out


def test_an_address_that_came_with_a_repository_gets_no_key_before_a_human_allowed_it(
    tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
    monkeypatch.setenv("LAMP_KEY", KEY)
    root = start(tmp_path / "lamp", base_url=service.url)
    config = json.loads((root / "agentxchain.json").read_text())
    config["runtimes"]["local-pm"]["auth_env"] = "HOME"
    (root / "agentxchain.json").write_text(json.dumps(config))
    assert governed(["step", str(root)]) == 1
    assert service.asked == []
    assert f"the service at {service.url}, which is sent the key in HOME" in acted(
        "trust", root, "--dry-run"
    )
    assert governed(["step", str(root)]) == 1
    assert service.asked == []


@pytest.mark.parametrize(
    ("provider", "base", "asked"),
    [
        ("openai", "https://models.example/v1", "https://models.example/v1/chat/completions"),
        ("openai", "https://models.example/", "https://models.example/v1/chat/completions"),
        ("anthropic", "http://127.0.0.1:9/v1/", "http://127.0.0.1:9/v1/messages"),
        ("anthropic", "http://127.0.0.1:9/av1", "http://127.0.0.1:9/av1/v1/messages"),
    ],
)
def test_a_base_with_the_version_in_it_is_not_given_it_twice(
    provider: str, base: str, asked: str
) -> None:
    assert address(Runtime(provider=provider, base_url=base)) == asked
