"""No body and no query brings an agent to a 500, whatever is in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_core.protocols.wire.conduct.agent import Limits
from acp_core.protocols.wire.serving.endpoints import ENDPOINTS
from tests.protocols.wire.support import Served, served

NAMES = [
    "parts", "text", "content", "role", "message_id", "task_id", "context_id", "peer_id", "from",
    "sync", "timeout", "create_task", "delegate", "payload", "input", "status", "state", "artifact",
    "output", "error", "link", "name", "query", "limit", "skill_id", "constraints", "correlation_id",
    "type", "ts", "sig", "identity", "_seq",
]  # fmt: skip
ODD = st.sampled_from(
    ["", "user", "agent", "working", "completed", "canceled", "acp.reply", "acp://127.0.0.1:1/t",
     "a/b", "\x00", "\ud800", "x" * 300, "é\u2028", "0", "-1", "1e999", "%00", "..", "m1"]
)  # fmt: skip
LEAF = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=True)
    | st.text(max_size=5)
    | ODD
)
PART = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["text", "file", "data", "video"]) | LEAF,
        "content": LEAF,
        "url": st.sampled_from(["http://h/x", "file:///x", "http://[", "//"]) | LEAF,
        "filename": LEAF,
    },
)
VALUE = st.recursive(
    LEAF
    | st.lists(PART, max_size=3)
    | st.fixed_dictionaries({"parts": st.lists(PART, max_size=2)}),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    ),
    max_leaves=6,
)
BODY = st.dictionaries(st.sampled_from(NAMES), VALUE, max_size=6)
RAW = st.binary(max_size=30) | BODY.map(lambda body: json.dumps(body).encode())
IDS = ["peer_001", "m1", "none", "%00", "%ff", "%F0%9F%98%80", "..%2f", "a" * 400]
POSTS = sorted({path for place in ENDPOINTS if place.method == "POST" for path in place.paths})
GETS = sorted({p for place in ENDPOINTS if place.method == "GET" for p in place.paths})
SETTINGS = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("fuzz")
    limits = Limits(peers=8)
    with served(folder, "B") as other, served(folder, "A", limits=limits) as agent:
        agent.meet(other)
        agent.post("/tasks", {"text": "x", "task_id": "m1"})
        yield agent


def fine(agent: Served, method: str, path: str, **options: Any) -> None:
    response = agent.http.request(method, path, **options)
    assert response.status_code < 500 or response.status_code == 503, response.text
    if response.status_code >= 400:
        error = response.json()
        assert error["ok"] is False and error["error_code"].startswith("ERR_")


@SETTINGS
@given(path=st.sampled_from(POSTS), id=st.sampled_from(IDS), body=RAW)
def test_any_body(pair: Served, path: str, id: str, body: bytes) -> None:
    if b'"sync": true' in body:  # would wait, as it should
        body = body.replace(b'"sync": true', b'"sync": 1')
    fine(pair, "POST", path.replace("{id}", id), content=body)


@SETTINGS
@given(
    path=st.sampled_from([path for path in GETS if "stream" not in path and "subscribe" not in path]),
    id=st.sampled_from(IDS),
    query=st.dictionaries(
        st.sampled_from(["limit", "offset", "since_seq", "sort", "status", "cursor", "role", "q", "tag",
                         "received_after", "created_after", "direction", "peer_id", "query"]),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
        | st.integers().map(str) | st.sampled_from(["asc", "-updated_at", "2026-01-01", "m1"]),
        max_size=4,
    ),
)  # fmt: skip
def test_any_query(pair: Served, path: str, id: str, query: dict[str, str]) -> None:
    query["timeout"] = "0"
    fine(pair, "GET", path.replace("{id}", id), params=query)


def test_the_agent_and_its_connection_are_still_there(pair: Served) -> None:
    """Runs last in this file: after all of the above."""
    assert pair.get("/status")["connected"] is True
