"""Reports for those who were not there: what they say, and what never gets out."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from acp_core.history.reports.markdown import to_html, to_markdown
from acp_core.history.reports.report import redact_text
from tests.cli.support import Acp
from tests.history.test_metrics import RUN, folder_of
from tests.support import finished

SECRET = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"
HOSTILE = "</details><script>alert(1)</script> | # no heading\n- [x](javascript:x) @somebody ```"


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
    from acp_core.history.reports.report import _safe_cell

    assert _safe_cell("=cmd()") == "'=cmd()" and _safe_cell("reader") == "reader"


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
    assert unknown.returncode == 2 and "use --format" in unknown.stderr
    assert not (tmp_path / "report.docx").exists()
    refused = acp("report", str(folder), "-o", str(tmp_path / "no" / "where.md"))
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1
    assert acp("report", str(tmp_path), "--format", "md").returncode == 2


def headings(text: str) -> list[str]:
    """The headings of a report in HTML or Markdown down to the third level, in their order."""
    found = re.findall(r"<h[23][^>]*>([^<]*)<|^#{2,3} (.*)$", text, re.MULTILINE)
    return [first or second for first, second in found]


@pytest.mark.parametrize("form", ["md", "html"])
@pytest.mark.parametrize("kind", finished.KINDS)
def test_a_report_begins_with_what_came_out(acp: Acp, tmp_path: Path, kind: str, form: str) -> None:
    make, tab, words = finished.KINDS[kind]
    made = make(tmp_path)
    shown = acp("report", str(made), "--format", form)
    assert shown.returncode == 0, shown.stderr
    names = headings(shown.stdout)
    order = [names.index(each) for each in ("Outcome", "What happened", "Figures")]
    assert order == sorted(order) and order[0] == 0
    first = shown.stdout[: shown.stdout.index("What happened")]
    plain = re.sub(r"<[^>]*>|[*\\]", "", first)
    assert words in plain
    assert any(tab in name for name in names[: order[1]])


def test_an_unfinished_collaboration_has_no_conclusion_yet(acp: Acp, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, RUN[:5])
    shown = acp("report", str(folder)).stdout
    first = shown[shown.index("## Outcome") : shown.index("## What happened")]
    assert "### Decisions" in first and "By key." in first
    assert "### Conclusion" not in first and "Waiting for server." in first


WRITTEN = """# Head

Some **bold** and `code`, [a link](http://x.example/y) and ![a picture](http://x.example/z.png).

| a | b |
|---|---|
| one | *two* |

1. first
2. second
   - [x] inside

   ```
   # not a heading
   ```

> quoted
> text

<img src=http://x.example/y> @somebody &amp; </details>

---
"""


def test_documents_are_rendered_and_nothing_in_them_loads_or_links() -> None:
    html = to_html(WRITTEN)
    assert "<h3>Head</h3>" in html and "<strong>bold</strong>" in html and "<td>one</td>" in html
    assert "<a " not in html and "<img" not in html and "&lt;img src" in html
    assert "a link (http://x.example/y)" in html
    assert "a picture (image: http://x.example/z.png)" in html
    text = "\n".join(to_markdown(WRITTEN))
    reader = MarkdownIt("commonmark").enable(["table"])
    kinds = [token.type for token in reader.parse(text)]
    inside = [child.type for token in reader.parse(text) for child in token.children or ()]
    assert not {"html_block", "html_inline", "link_open", "image"} & {*kinds, *inside}
    assert {"strong_open", "code_inline", "em_open"} <= set(inside)
    wanted = ["heading_open", "table_open", "ordered_list_open", "bullet_list_open", "fence",
              "blockquote_open", "hr"]  # fmt: skip
    assert [kind for kind in kinds if kind in wanted] == wanted
    assert "### Head" in text.split("\n")


@given(st.text(alphabet="#*_`~[]()<>|-+=.1 !\n\\&@ab:/\"'", max_size=200))
def test_whatever_a_document_holds_stays_text_in_a_report(text: str) -> None:
    html = to_html(text)
    assert not re.search(r"<(?:a|img|script|iframe)\b", html)
    reader = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = reader.parse("\n".join(to_markdown(text)))
    inside = [child.type for token in tokens for child in token.children or ()]
    assert not {"html_inline", "link_open", "image"} & set(inside)
    assert not any(token.type == "html_block" for token in tokens)
    levels = [int(token.tag[1]) for token in tokens if token.type == "heading_open"]
    assert all(level > 2 for level in levels)
