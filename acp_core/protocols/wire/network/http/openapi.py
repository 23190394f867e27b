"""``/openapi.json``: what every endpoint takes and gives, made from the table that serves them."""

from __future__ import annotations

import re
from typing import Any

from acp_core.protocols.wire.network.http.place import Param, Place
from acp_core.protocols.wire.schema import STATUS, Code, Json
from acp_core.protocols.wire.schema.bodies import FIELDS

_ALWAYS = (400, 401, 403, 429, 500)  # what every endpoint may answer
_BODIES = (408, 413)  # and every one that takes a body
_PART = re.compile(r"{(\w+)}")
_PLAIN: Json = {"type": "string"}
_KINDS: dict[str, Json] = {
    "text": _PLAIN,
    "number": {"type": "integer"},
    "time": {"type": "string", "format": "date-time"},
    "seconds": {"type": "number", "minimum": 0},
}
_ERROR: Json = {
    "type": "object",
    "required": ["ok", "error_code", "error"],
    "properties": {
        "ok": {"const": False},
        "error_code": {"enum": [code.value for code in Code]},
        "error": _PLAIN,
        "message": _PLAIN,
        "ts": {"type": "string", "format": "date-time"},
        "failed_message_id": _PLAIN,
    },
}


def describe(places: tuple[Place, ...], token_needed: bool) -> Json:
    """The OpenAPI document (3.1) of these endpoints."""
    from acp_core import __version__

    paths: dict[str, Json] = {}
    for place in places:
        for path in place.paths:
            paths.setdefault(path, {})[place.method.lower()] = _operation(place, path)
    document: Json = {
        "openapi": "3.1.0",
        "info": {"title": "ACP v0.8 agent", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }
    if token_needed:
        document["security"] = [{"bearer": []}]
    return document


def _operation(place: Place, path: str) -> Json:
    named = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PART.findall(path)
    ]
    operation: Json = {
        "operationId": _name(place.method, path),
        "summary": (place.endpoint.__doc__ or "").strip().splitlines()[0],
        "parameters": named + [_parameter(each) for each in place.query],
        "responses": _responses(place),
    }
    if place.public:
        operation["security"] = []
    if place.body is not None:
        content = {"application/json": {"schema": _body(place)}}
        operation["requestBody"] = {"required": not place.empty, "content": content}
    if place.lines:
        content = {"application/x-ndjson": {"schema": _PLAIN}}
        operation["requestBody"] = {"required": False, "content": content}
    return operation


def _name(method: str, path: str) -> str:
    words = re.findall(r"[a-z]+", f"{method} {path.replace(':', ' colon ')}".lower())
    return "_".join(words)


def _parameter(param: Param) -> Json:
    schema = dict(_KINDS[param.kind])
    if param.choices:
        schema["enum"] = [str(getattr(each, "value", each)) for each in param.choices]
    if param.kind == "number":
        schema["minimum"] = param.low
    if param.default is not None:
        schema["default"] = param.default
    return {"name": param.name, "in": "query", "required": param.required, "schema": schema}


def _body(place: Place) -> Json:
    names = place.body or ()
    body: Json = {"type": "object", "properties": {name: FIELDS[name].schema for name in names}}
    if place.needed:
        body["required"] = list(place.needed)
        body["properties"] |= {name: _required(FIELDS[name].schema) for name in place.needed}
    return body


def _required(schema: Json) -> Json:
    """The same without null, which counts as absent."""
    return {**schema, "type": [kind for kind in schema["type"] if kind != "null"]}


def _responses(place: Place) -> Json:
    kind = "text/event-stream" if place.streams else "application/json"
    shape: dict[str, Any] = {} if place.streams else {"type": ["object", "array"]}
    answers: Json = {
        str(status): {"description": "done" if status < 202 else "waits", "content": {kind: {"schema": shape}}}
        for status in place.gives
    }  # fmt: skip
    more = (*_ALWAYS, *place.refuses, *(_BODIES if place.lines or place.body is not None else ()))
    for status in sorted(set(more)):
        codes = " ".join(code.value for code, its in STATUS.items() if its == status)
        error = {"schema": {"$ref": "#/components/schemas/Error"}}
        answers[str(status)] = {"description": codes, "content": {"application/json": error}}
    return answers
