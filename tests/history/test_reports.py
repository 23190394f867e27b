"""Reports for those who were not there: what they say, and what never gets out."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import jsonschema
import pytest
from markdown_it import MarkdownIt

from acp_core.history.reports.report import redact_text
from tests.cli.support import Acp
from tests.history.test_metrics import RUN, folder_of

SECRET = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"
HOSTILE = "</details><script>alert(1)</script> | # no heading\n- [x](javascript:x) @somebody ```"


@pytest.fixture
def acp(tmp_path: Path) -> Acp:
    return Acp(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = folder_of(tmp_path, RUN)
    log = folder / "events.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    lines[1]["summary"] = HOSTILE
    lines[2]["summary"] = f"Use {SECRET}, or ask reader@example.org"
    lines[3]["from"] = "reviewer"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    protocol = json.loads((folder / "protocol.json").read_text())
    protocol["completionGates"] = ["Ask gate@example.org", "api_key: gate-secret-0123456789"]
    (folder / "protocol.json").write_text(json.dumps(protocol))
    (folder / "proposal.md").write_text(
        f"# Proposal\n\n```\nAuthorization: Bearer abcdefghijklmnop\n```\n\n{HOSTILE}\n"
    )
    return folder


def test_markdown_keeps_strangers_text_as_text(acp: Acp, folder: Path) -> None:
    shown = acp("report", str(folder))
    assert shown.returncode == 0, shown.stderr
    tokens = MarkdownIt("commonmark").enable("table").parse(shown.stdout)
    headings = [
        tokens[place + 1].content
        for place, token in enumerate(tokens)
        if token.type == "heading_open"
    ]
    assert headings[0] == "cache"
    assert "no heading" not in headings
    raw = [token.content for token in tokens if token.type in ("html_block", "html_inline")]
    assert all("script" not in each for each in raw)
    inline = [child for token in tokens for child in token.children or ()]
    assert not any(child.type in ("link_open", "html_inline") and "script" in str(child.attrs)
                   for child in inline)  # fmt: skip
    assert "1 h 30 min" in shown.stdout and "13:30:30" in acp("report", str(folder), "--utc").stdout


def test_secrets_and_addresses_stay_here_unless_asked_for(acp: Acp, folder: Path) -> None:
    for form in ("md", "json", "csv", "otlp"):
        text = acp("report", str(folder), "--format", form).stdout
        assert SECRET not in text and "abcdefghijklmnop" not in text
        assert "reader@example.org" not in text
        assert "gate@example.org" not in text and "gate-secret" not in text
    kept = acp("report", str(folder), "--no-redact").stdout
    assert SECRET in kept and "reader\\@example.org" in kept
    assert redact_text("Cookie: a=b\nmail me@x.org") == "Cookie: [removed]\nmail [removed]"


def test_json_holds_everything_with_its_schema(acp: Acp, folder: Path) -> None:
    told = json.loads(acp("report", str(folder), "--format", "json").stdout)
    assert told["schema"] == "acp.report/1"
    schema = json.loads(acp("report", "--schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(told, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**told, "made": 5}, schema)
    assert told["metrics"]["lead"] == {"seconds": 5_430.0, "working_seconds": told["metrics"]["lead"]["working_seconds"]}  # fmt: skip
    assert len(told["turns"]) >= 10
    assert told["snapshot"]["status"] == "completed"
    assert {"proposal.md", "review.md"} <= {each["id"] for each in told["documents"]}
    assert told["known"][0].startswith("Not recorded")


def test_csv_of_turns_is_no_program(acp: Acp, folder: Path) -> None:
    text = acp("report", str(folder), "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    first = rows[0]
    assert (first["participant"], first["seconds"], first["kind"]) == (
        "server", "600", "proposal_submitted",
    )  # fmt: skip
    assert first["since"] == "2026-05-04T12:00:00Z"
    from acp_core.history.reports.csv_turns import _safe

    assert _safe("=cmd()") == "'=cmd()" and _safe("reader") == "reader"


def test_the_trace_has_a_span_for_each_phase_and_turn(acp: Acp, folder: Path) -> None:
    trace = json.loads(acp("report", str(folder), "--format", "otlp").stdout)
    spans = trace["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert trace == json.loads(acp("report", str(folder), "--format", "otlp").stdout)
    root, *others = spans
    assert "parentSpanId" not in root
    assert int(root["endTimeUnixNano"]) - int(root["startTimeUnixNano"]) == 5_430 * 10**9
    ids = {span["spanId"] for span in spans}
    assert len(ids) == len(spans) and all(len(each) == 16 for each in ids)
    assert all(
        span["parentSpanId"] in ids and span["traceId"] == root["traceId"] for span in others
    )
    assert all(int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) for span in spans)
    turns = [span for span in others if span["name"].startswith("invoke_agent ")]
    assert len(turns) == 10
    linked = [link["spanId"] for span in turns for link in span.get("links", ())]
    assert linked and set(linked) <= ids


def test_a_report_is_written_whole_or_not_at_all(acp: Acp, folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    assert acp("report", str(folder), "-o", str(target)).returncode == 0
    assert json.loads(target.read_text())["schema"] == "acp.report/1"
    unknown = acp("report", str(folder), "-o", str(tmp_path / "report.docx"))
    assert unknown.returncode == 2 and "say --format" in unknown.stderr
    assert not (tmp_path / "report.docx").exists()
    refused = acp("report", str(folder), "-o", str(tmp_path / "no" / "where.md"))
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1
    assert acp("report", str(tmp_path), "--format", "md").returncode == 2
