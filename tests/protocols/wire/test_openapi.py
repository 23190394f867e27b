"""The OpenAPI document, and every endpoint held against it by schemathesis."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from acp_core.protocols.wire.conduct.agent import Limits
from acp_core.protocols.wire.serving.endpoints import ENDPOINTS
from tests.protocols.wire.support import Served, served

_CHECKS = (
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    not_a_server_error,
)
EXAMPLES = 20
schemathesis.serializer.alias("application/x-ndjson", "text/plain")


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One agent for all; nobody is its peer."""
    with served(tmp_path_factory.mktemp("agent"), limits=Limits(peers=30)) as running:
        yield running


@pytest.fixture(scope="module")
def document(agent: Served) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{agent.url}/openapi.json")


schema = schemathesis.pytest.from_fixture("document")
# Endless by their nature; the tests of streams read them.
_STREAMS = r"/stream|subscribe|/ws/"


@pytest.mark.slow
@schema.exclude(path_regex=_STREAMS).parametrize()
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), deadline=None)
def test_each_endpoint_answers_as_its_description_says(case: schemathesis.Case) -> None:
    if case.path.endswith(("wait", "/wait/{id}")) and not _is_refused(
        (case.query or {}).get("timeout")
    ):
        case.query = {**(case.query or {}), "timeout": 0}  # half a minute otherwise
    elif isinstance((case.query or {}).get("timeout"), int | float):
        case.query["timeout"] = 0
    if isinstance(case.body, dict) and case.body.get("sync") is True:
        case.body["timeout"] = 0
    unavailable = case.method == "POST"  # nobody is connected: 503 is what is specified then
    response = case.call(timeout=60)
    checks = [each for each in _CHECKS if not (unavailable and each is not_a_server_error)]
    case.validate_response(response, checks=checks)
    assert response.status_code < 500 or response.json()["error_code"] == "ERR_NOT_CONNECTED"


def _is_refused(timeout: object) -> bool:
    """Whether it is one text that is no number: of several the agent takes one, and may wait."""
    return isinstance(timeout, str) and re.fullmatch(r"[^\W\d]+", timeout) is not None


def test_every_endpoint_is_described_and_nothing_else(agent: Served) -> None:
    told = agent.get("/openapi.json")
    paths = {(path, method.upper()) for path, each in told["paths"].items() for method in each}
    assert paths == {(path, place.method) for place in ENDPOINTS for path in place.paths}
    ids = [each["operationId"] for path in told["paths"].values() for each in path.values()]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z_]+", each) for each in ids)


def test_a_field_of_another_kind_than_described_is_refused(agent: Served) -> None:
    told = agent.get("/openapi.json")
    tried = 0
    for path, methods in told["paths"].items():
        body = methods.get("post", {}).get("requestBody")
        if body is None or "application/json" not in body["content"]:
            continue
        for name, kind in body["content"]["application/json"]["schema"]["properties"].items():
            if "type" not in kind or name == "content" or "{id}" in path:
                continue  # anything is taken, or text counts before it, or nothing is there
            wrong = {"text": "x", name: {"an": "object"}}
            response = agent.post(path, wrong)
            assert response.status_code == 400, (path, name, response.text)
            tried += 1
    assert tried > 30
