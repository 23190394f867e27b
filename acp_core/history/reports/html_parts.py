"""The style and the script of a report in HTML. Neither holds anything of what is told."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1c1c1c; --dim: #595959; --line: #d4d4d4;
  --panel: #f4f5f7; --mark: #fff0c2; --accent: #a33; }
@media screen and (prefers-color-scheme: dark) {
  :root { --back: #16181c; --text: #ececec; --dim: #a8a8a8; --line: #43464d;
    --panel: #202329; --mark: #4a3d12; --accent: #ff8a80; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; background: var(--back);
  color: var(--text); font: 16px/1.45 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin: .2rem 0; }
h2 { font-size: 1.35rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1.1rem; margin: 1.4rem 0 .4rem; }
h4, h5, h6 { font-size: 1rem; margin: 1rem 0 .3rem; }
blockquote { border-left: 3px solid var(--line); margin: .4rem 0; padding-left: .8rem; }
code { font: 14px/1.4 ui-monospace, monospace; }
.document, .held { border-left: 3px solid var(--line); padding-left: 1rem; }
.document table, .held table, details table { width: auto; }
.dim { color: var(--dim); }
.wide { overflow-x: auto; }
.wide + .wide { margin-top: 1.2rem; }
table.figures { width: auto; }
.wide svg { display: block; min-width: 44rem; }
svg.gantt line.cursor { stroke: var(--accent); stroke-width: 2; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .6rem .25rem 0; text-align: left;
  vertical-align: top; }
.wide th, .wide td { white-space: nowrap; }
.events th, .events td:nth-child(-n+3) { overflow-wrap: break-word; }
tr.current td { background: var(--mark); }
pre { background: var(--panel); padding: .7rem; margin: .4rem 0; white-space: pre-wrap;
  font: 14px/1.4 ui-monospace, monospace; }
summary { cursor: pointer; font-weight: 600; }
#replay { background: var(--panel); padding: .2rem 1rem 1rem; margin-top: 1.8rem; }
#replay h3:first-child { margin-top: .6rem; }
#replay .steer { display: flex; gap: .6rem; align-items: center; }
#replay input { flex: 1; min-width: 0; height: 2.75rem; }
#replay button { font: inherit; min-width: 2.75rem; min-height: 2.75rem; }
#replay label { display: block; margin-top: .6rem; }
#replay select { font: inherit; max-width: 100%; min-height: 2.75rem; }
#replay pre { background: var(--panel); }
#replay .held { background: var(--back); max-height: 24rem; overflow-y: auto; }
#replay dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0; }
#replay dt { color: var(--dim); }
#replay dd { margin: 0; min-width: 0; }
@media screen and (max-width: 40rem) {
  .events thead { display: none; }
  .events tr { display: block; border-bottom: 1px solid var(--line); padding: .4rem 0; }
  .events td { display: inline; border: 0; padding: 0 .4rem 0 0; }
  .events td:last-child { display: block; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  :root { color-scheme: light; }
  #replay, svg.gantt line.cursor { display: none; }
  tr.current td { background: none; }
  .wide { overflow: visible; }
  .wide th, .wide td { white-space: normal; }
  .wide svg { min-width: 0; }
  h2, h3 { break-after: avoid; }
  tr, svg { break-inside: avoid; }
}
"""

# It writes text only (textContent): nothing of the data can become an element.
SCRIPT = """
"use strict";
(function () {
  var data = JSON.parse(document.getElementById("data").textContent);
  var events = data.events;
  var box = document.getElementById("replay");
  function part(name) { return document.getElementById("replay-" + name); }
  var place = part("place"), before = part("before"), after = part("after");
  var cursor = document.querySelector("svg.gantt line.cursor");
  var marked = null;
  var choice = part("document"), shown = null;
  function held(number) {
    var chosen = data.documents[choice.selectedIndex];
    if (!chosen) { return; }
    var begun = chosen.versions.filter(function (each) { return each.row <= number; });
    var version = begun[begun.length - 1] || { said: "not recorded", id: "" };
    part("version").textContent = version.said;
    if (shown) { shown.hidden = true; }
    shown = document.getElementById(version.id);
    if (shown) { shown.hidden = false; }
  }
  function show() {
    var number = Number(place.value), event = events[number];
    part("count").textContent = (number + 1) + " of " + events.length;
    part("event").textContent = event.id + ", " + event.at;
    part("who").textContent = event.actor + " " + event.kind;
    part("said").textContent = event.summary;
    part("phase").textContent = event.phase;
    part("waited").textContent = event.waited.join(", ") || "none";
    place.setAttribute("aria-valuetext", event.id + ", " + event.actor + " " + event.kind);
    held(number);
    before.disabled = number === 0;
    after.disabled = number === events.length - 1;
    if (marked) { marked.classList.remove("current"); }
    marked = document.getElementById("event-" + number);
    if (marked) { marked.classList.add("current"); }
    if (cursor && event.x !== null) {
      cursor.setAttribute("x1", event.x);
      cursor.setAttribute("x2", event.x);
      cursor.removeAttribute("display");
    } else if (cursor) {
      cursor.setAttribute("display", "none");
    }
  }
  function step(by) {
    place.value = String(Number(place.value) + by);
    show();
  }
  if (events.length) {
    place.max = String(events.length - 1);
    place.value = place.max;
    place.addEventListener("input", show);
    before.addEventListener("click", function () { step(-1); });
    after.addEventListener("click", function () { step(1); });
    data.documents.forEach(function (each) {
      var option = document.createElement("option");
      option.textContent = each.title;
      choice.appendChild(option);
    });
    part("held").hidden = !data.documents.length;
    choice.addEventListener("change", show);
    box.hidden = false;
    show();
  }
  document.documentElement.dataset.ready = "yes";
}());
"""
