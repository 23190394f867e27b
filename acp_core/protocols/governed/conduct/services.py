"""A turn taken by a model's service: one request over HTTP, its answer staged as it came.

The key comes from an environment variable that the runtime names, and goes to that service alone:
no redirect is followed. The answer must hold the turn result as one JSON object; nothing in it is
repaired, only what the service counted is added as the turn's cost.
"""

from __future__ import annotations

import ipaddress
import json
import os
import urllib.error
import urllib.request
from http.client import HTTPException, HTTPMessage
from typing import IO, Any, NamedTuple
from urllib.parse import urlsplit

from acp_core.agents.processes import identify
from acp_core.files import atomic
from acp_core.files.secrets import mask
from acp_core.model.errors import NetworkError
from acp_core.model.text import clean_line
from acp_core.protocols.governed.read import run
from acp_core.protocols.governed.schema import Object, Runtime, items, number, obj
from acp_core.protocols.governed.write import turns
from acp_core.protocols.governed.write.turns import TakenTurn, Task

PATIENCE = 900.0  # seconds that a service may take, where the turn's deadline is later
LARGEST = 16 << 20  # bytes of an answer
TOKENS = 16_000  # that the answer may have
_FILES = ("CONTEXT.md", "CROSS_REPO_CONTEXT.md")


class Service(NamedTuple):
    """Where a provider is reached, and in which form it is asked: ``openai`` or ``anthropic``."""

    form: str
    base: str
    path: str


SERVICES = {
    "openai": Service("openai", "https://api.openai.com", "/v1/chat/completions"),
    "anthropic": Service("anthropic", "https://api.anthropic.com", "/v1/messages"),
    "google": Service("openai", "https://generativelanguage.googleapis.com",
                      "/v1beta/openai/chat/completions"),
    "ollama": Service("openai", "http://127.0.0.1:11434", "/v1/chat/completions"),
}  # fmt: skip

_NO_KEY = ("ollama",)


class ServiceError(NetworkError):
    """The service cannot be asked, or did not answer: one line that says why."""


class Answer(NamedTuple):
    """What a service said, and how many tokens it counted."""

    text: str
    tokens_in: int
    tokens_out: int


def take_with_service(task: Task) -> TakenTurn:
    """Ask the service, and stage its answer. Never raises for what the service does."""
    try:
        me = identify(os.getpid())
        if me is not None:
            turns.note_program(task.root, task.turn_id, me)
        answer = ask(request(task), task.seconds_left(), task.runtime)
        result = result_in(answer)
        atomic.shared_folder(task.staged.parent)
        text = json.dumps(result, indent=2, ensure_ascii=False) + "\n"
        atomic.replace(task.staged, text.encode(errors="replace"))
    except ServiceError as error:
        return TakenTurn(False, clean_line(mask(str(error)), 300))
    except OSError as error:
        return TakenTurn(False, clean_line(f"{error.filename or 'staging'}: {error.strerror}", 300))
    finally:
        turns.forget_program(task.root, task.turn_id)
    return TakenTurn(True)


def address(runtime: Runtime) -> str:
    """The address that is asked.

    Raises:
        ServiceError: the provider is not known, or the address is not safe for a key.
    """
    service = _service(runtime)
    base = runtime.base_url or service.base
    parts = urlsplit(base)
    if parts.scheme == "https" or (parts.scheme == "http" and _is_here(parts.hostname)):
        # many write the version into the base, as other programs want it there
        version, _, rest = service.path.removeprefix("/").partition("/")
        base = base.rstrip("/")
        return f"{base}/{rest}" if base.endswith(f"/{version}") else base + service.path
    raise ServiceError(f"base_url {base} is neither https nor on this machine")


def _service(runtime: Runtime) -> Service:
    provider = runtime.provider
    if provider not in SERVICES:
        known = ", ".join(SERVICES)
        raise ServiceError(f"the provider “{provider}” is unknown (known: {known})")
    return SERVICES[provider]


def _is_here(host: str | None) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def request(task: Task) -> urllib.request.Request:
    """The request that asks for the turn.

    Raises:
        ServiceError: it cannot be made; nothing was sent.
    """
    runtime = task.runtime
    where, service = address(runtime), _service(runtime)
    if runtime.base_url and not run.is_trusted(task.root):
        raise ServiceError(
            f"{where} is not allowed yet: review and allow it with `acp governed trust`"
        )
    model = runtime.model
    if not model:
        raise ServiceError("the runtime names no model")
    key = _key(runtime)
    prompt, text = _texts(task)
    most = runtime.max_output_tokens or TOKENS
    headers = {"content-type": "application/json", "user-agent": "acp"}
    if service.form == "anthropic":
        body: Object = {"model": model, "max_tokens": most, "system": prompt,
                        "messages": [{"role": "user", "content": text}]}  # fmt: skip
        headers |= {"anthropic-version": "2023-06-01"} | ({"x-api-key": key} if key else {})
    else:
        said = [{"role": "system", "content": prompt}, {"role": "user", "content": text}]
        body = {"model": model, "max_tokens": most, "messages": said}
        headers |= {"authorization": f"Bearer {key}"} if key else {}
    data = json.dumps(body).encode()
    return urllib.request.Request(where, data=data, headers=headers, method="POST")


def _key(runtime: Runtime) -> str:
    name = runtime.auth_env
    if not name:
        if runtime.provider in _NO_KEY:
            return ""
        raise ServiceError("the runtime names no auth_env: the variable that holds the key")
    key = os.environ.get(name, "")
    if not key or any(ord(character) < 33 or ord(character) > 126 for character in key):
        raise ServiceError(f"the variable {name}, which should hold the key, is not set")
    return key


def _texts(task: Task) -> tuple[str, str]:
    """What stands above the conversation, and what is asked."""
    prompt = _read(task, "PROMPT.md")
    parts = [_read(task, name) for name in _FILES if (task.folder / name).is_file()]
    parts.append("Answer with the turn result as one JSON object, and nothing else.")
    return prompt, "\n\n".join(parts)


def _read(task: Task, name: str) -> str:
    return (task.folder / name).read_text(encoding="utf-8", errors="replace")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would take the key elsewhere."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str,
        headers: HTTPMessage, newurl: str,
    ) -> None:  # fmt: skip
        return None


def ask(asked: urllib.request.Request, seconds: float | None, runtime: Runtime) -> Answer:
    """Send the request, and take the answer apart.

    Raises:
        ServiceError: there was none that can be used.
    """
    host = urlsplit(asked.full_url).netloc
    patience = PATIENCE if seconds is None else max(1.0, min(PATIENCE, seconds))
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        with opener.open(asked, timeout=patience) as response:
            data = response.read(LARGEST + 1)
    except urllib.error.HTTPError as error:
        raise ServiceError(_refusal(error, host, runtime)) from None
    except (urllib.error.URLError, HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise ServiceError(f"{host} cannot be reached: {reason}") from None
    if len(data) > LARGEST:
        raise ServiceError(f"{host} answered more than {LARGEST} bytes")
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        raise ServiceError(f"{host} did not answer with JSON") from None
    return _answer(answer if isinstance(answer, dict) else {}, host)


def _refusal(error: urllib.error.HTTPError, host: str, runtime: Runtime) -> str:
    with error:
        said = error.read(4_000).decode("utf-8", "replace")
    name = runtime.auth_env
    if error.code in (401, 403):
        return f"{host} refused the key in {name or 'no variable'} (HTTP {error.code}): {said}"
    if error.code == 429:
        return f"{host} limits further requests (HTTP 429): {said}"
    if 300 <= error.code < 400:
        return f"{host} redirects elsewhere (HTTP {error.code}); acp does not follow redirects"
    return f"{host} answered HTTP {error.code}: {said}"


def _answer(answer: Object, host: str) -> Answer:
    usage = obj(answer, "usage")
    if "content" in answer:
        said = "".join(str(part.get("text") or "") for part in items(answer, "content"))
        counted = number(usage, "input_tokens"), number(usage, "output_tokens")
    else:
        choices = items(answer, "choices")
        content = obj(choices[0], "message").get("content") if choices else None
        said = content if isinstance(content, str) else ""
        counted = number(usage, "prompt_tokens"), number(usage, "completion_tokens")
    if not said.strip():
        raise ServiceError(f"{host} sent an answer without text")
    return Answer(said, counted[0] or 0, counted[1] or 0)


def result_in(answer: Answer) -> Object:
    """The turn result in an answer: all of it, or the one object in it.

    Raises:
        ServiceError: there is none.
    """
    said = answer.text.strip()
    start, end = said.find("{"), said.rfind("}")
    try:
        value: Any = json.loads(said[start : end + 1]) if 0 <= start < end else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ServiceError("the answer contains no JSON object, and so no turn result")
    if "cost" not in value and (answer.tokens_in or answer.tokens_out):
        counted = {"input_tokens": answer.tokens_in, "output_tokens": answer.tokens_out}
        value["cost"] = counted | {"usd": 0}
    return value
