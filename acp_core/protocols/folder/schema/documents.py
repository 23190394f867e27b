"""What the protocol reads out of the Markdown documents: pure functions of their text.

Source: folder protocol specification, "Review Format", "Readiness Gate" and "Final Conclusion".
A form that looks like the required one but does not count (another bullet, capitals, a heading of
another level) is kept apart as a near miss, for advice. Lines of a document's first form
(placeholders, legends, instructions) say nothing and are left out. All scans are linear in the
text, which has "\\n" as its only line end. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from acp_core.files import markdown
from acp_core.files.markdown import CheckBox, Lines
from acp_core.model.light import NamedTuple
from acp_core.protocols.folder.schema.records import V2

CLASSES = ("resolved", "deferred_nonblocking", "blocking", "unresolved")

OUTCOMES = ("proceed", "do_not_proceed", "defer", "blocked")

CONCLUSION_SECTIONS_V1 = (
    "Decision Outcome",
    "Rationale",
    "Accepted Decisions",
    "Implementation Approach",
    "Assumptions",
    "Deferred Follow-ups",
    "Implementation Blockers",
    "Next Action",
)

CONCLUSION_SECTIONS_V2 = (
    "Decision Outcome",
    "Rationale",
    "Deliverable Receipt",
    "Accepted Decisions Summary",
    "Readiness Result",
    "Assumptions",
    "Deferred Follow-ups",
    "Implementation Blockers",
    "Next Action",
)

READY = "Ready to implement"

NEAR_MISSES = 50  # kept of each kind: the advice is the same for more


def conclusion_sections(dialect: str) -> tuple[str, ...]:
    """The headings that conclusion.md must have."""
    return CONCLUSION_SECTIONS_V2 if dialect == V2 else CONCLUSION_SECTIONS_V1


class Item(NamedTuple):
    """A classified question: ``line`` is the bullet's; ``text`` may stand on a later one."""

    word: str
    text: str
    line: int
    text_line: int


class Readiness(NamedTuple):
    """readiness.md.

    Attributes:
        items: every ``- [word] text``, in order.
        blocking, unresolved, unreasoned: those of them that stop the run: blocking ones, those
            not classified for good, deferred ones without a reason.
        ready: the line that checks "Ready to implement", or None.
        checked: the exact text of each ``- [x] text`` line -> its line.
        boxes: every check box, for the nearest one to a gate.
        swallowing: bare items that take a later line as their text, which then does not count.
        near: bullets that look like items but do not count.
        under_blockers: bullets without a class below a heading about blockers.
        empty: whether it holds neither an item nor a check box.
    """

    items: tuple[Item, ...]
    blocking: tuple[Item, ...]
    unresolved: tuple[Item, ...]
    unreasoned: tuple[Item, ...]
    ready: int | None
    checked: dict[str, int]
    boxes: tuple[CheckBox, ...]
    swallowing: tuple[Item, ...]
    near: tuple[Place, ...]
    under_blockers: tuple[Place, ...]
    empty: bool

    @property
    def open(self) -> tuple[Item, ...]:
        """The items that stop the run, in order."""
        stopping = {*self.blocking, *self.unresolved, *self.unreasoned}
        return tuple(item for item in self.items if item in stopping)

    def awaits(self, item: Item, *, due: bool) -> bool:
        """Whether an item must be classified for good, or may be later.

        Args:
            item: One of `items`.
            due: Whether the phase asks for it. Before that the line of the template does not
                count: nobody has to replace it yet.
        """
        return item in self.unresolved and (due or item.text != TEMPLATE)


# White space after the word may span lines: a bare item takes the next line as its text.
_ITEM = re.compile(r"^[^\S\n]*- \[([a-z_]+)\]\s*([^\n]*)$", re.MULTILINE)

_READY = re.compile(rf"^- \[[xX]\] {READY}", re.MULTILINE)

_CHECKED = re.compile(r"^- \[x\] ([^\n]*)$", re.MULTILINE)

_NEAR_ITEM = re.compile(
    r"^[^\S\n]{0,40}(?:[-*+]|\d{1,9}[.)])[^\S\n]{0,8}[*_`]{0,3}\[([^\]\n]{1,40})\](?![(\[])[^\n]*$",
    re.MULTILINE,
)

_BULLET = re.compile(r"^[^\S\n]*[-*+] +([^\s\[][^\n]*)$", re.MULTILINE)

_OTHER_MATTERS = re.compile(r"attachments?|check ?list|gates?|snapshot|supporting", re.IGNORECASE)


def scan_readiness(text: str) -> Readiness:
    """Read readiness.md."""
    items = _items(text)
    lines = Lines(text)
    ready = next((lines.at(match.start()) for match in _READY.finditer(text)), None)
    lines = Lines(text)
    checked = {match.group(1): lines.at(match.start()) for match in _CHECKED.finditer(text)}
    boxes = tuple(markdown.check_boxes(text))
    known = tuple(item for item in items if item.word in CLASSES)
    swallowing = tuple(item for item in items if item.text_line != item.line and item.text)
    return Readiness(
        items=known,
        blocking=tuple(item for item in known if item.word == "blocking"),
        unresolved=tuple(i for i in known if i.word == "unresolved" or "TBD" in i.text),
        unreasoned=tuple(
            item
            for item in known
            if item.word == "deferred_nonblocking" and "reason:" not in item.text.lower()
        ),
        ready=ready,
        checked=checked,
        boxes=boxes,
        swallowing=swallowing[:NEAR_MISSES],
        near=_near_classes(text, {i.line for i in known} | {i.text_line for i in swallowing}),
        under_blockers=_under_blockers(text),
        empty=not known and not boxes,
    )


def _items(text: str) -> list[Item]:
    found = []
    lines = Lines(text)
    for match in _ITEM.finditer(text):
        line = lines.at(match.start())
        found.append(Item(match.group(1), match.group(2), line, lines.at(match.start(2))))
    return found


def _near_classes(text: str, counted: set[int]) -> tuple[Place, ...]:
    """Near misses of classified questions: where other matters stand, only of the words themselves."""
    near = without_legend(_near_items(text, counted), CLASSES)
    if not near:
        return near
    elsewhere = [
        range(part.line, part.line + part.body.count("\n") + 1)
        for part in markdown.sections(text, 2)
        if _OTHER_MATTERS.search(part.title)
    ]
    return tuple(
        (line, number)
        for line, number in near
        if any(word in line.lower() for word in CLASSES)
        or not any(number in lines for lines in elsewhere)
    )


def _near_items(text: str, counted: set[int]) -> tuple[Place, ...]:
    """Bullets with a word in brackets that do not count; check boxes and slots to fill in aside."""
    found: list[Place] = []
    lines = Lines(text)
    for match in _NEAR_ITEM.finditer(text):
        word = match.group(1).strip()
        line = lines.at(match.start())
        if line in counted or word.lower() in ("x", "") or is_slot(word):
            continue
        if len(found) < NEAR_MISSES:
            found.append((match.group().strip(), line))
    return tuple(found)


def _under_blockers(document: str) -> tuple[Place, ...]:
    found: list[Place] = []
    for section in markdown.sections(document, 2):
        if "block" not in section.title.lower() or len(found) >= NEAR_MISSES:
            continue
        lines = Lines(section.body)
        bullets = list(_BULLET.finditer(section.body))
        for match in bullets:
            text = match.group(1).strip()
            if len(found) < NEAR_MISSES and not says_nothing(text, alone=len(bullets) == 1):
                found.append((text, section.line + lines.at(match.start()) - 1))
    return tuple(found)


class ReviewHeading(NamedTuple):
    """A heading that names a review: the event's seq, whose it is, where it stands."""

    seq: int
    participant: str
    line: int


class Review(NamedTuple):
    """review.md.

    Attributes:
        headings: the headings of reviews by seq; of two with one number the last counts.
        huge: numbers too big to be a seq, as text, with their lines.
        repeated: seqs that more than one heading bears, with the line of the last.
        near: headings that speak of a seq but have not the required form.
        reviewed, scope, completeness, referenced: whether it declares the reviewed
            deliverable, the scope, that this includes completeness, and names the primary
            deliverable (dialect v2).
        questions: what the reviews ask.
    """

    headings: dict[int, ReviewHeading]
    huge: tuple[Place, ...]
    repeated: tuple[tuple[int, int], ...]
    near: tuple[Place, ...]
    reviewed: bool
    scope: bool
    completeness: bool
    referenced: bool
    questions: tuple[Asked, ...] = ()


# Headings as every tool writes them give author and number at once, others their title. It begins
# with what Python searches for fast: in a text with a newline put before it.
_LEVEL_2 = re.compile(r"\n##(?=\s)(?: \S+ - ([\w.-]+) - seq ([0-9]+)|([^\n]*))(?![^\n])")

_DASH = re.compile(r"\s-\s")


def scan_review(text: str, reference: str = "") -> Review:
    """Read review.md; ``reference`` is the primary deliverable's."""
    headings: dict[int, ReviewHeading] = {}
    huge: list[Place] = []
    repeated: dict[int, int] = {}
    near: list[Place] = []
    authors: dict[str, str] = {}  # each name once
    count, line, position = text.count, 1, 0
    for match in _LEVEL_2.finditer(f"\n{text}"):
        start = match.start()  # the newline's, which is the heading's in the text itself
        line += count("\n", position, start)
        position = start
        participant, digits, title = match.groups()
        if title is not None:
            named = _review_title(title)
            if named is None:
                if len(near) < NEAR_MISSES and names_a_review(title):
                    near.append((title.strip(), line))
                continue
            participant, digits = named
        participant = authors.setdefault(participant, participant)
        if len(digits) > 15:
            if len(huge) < NEAR_MISSES:
                huge.append((digits[:20] + "…", line))
            continue
        seq = int(digits)
        if seq in headings:
            repeated[seq] = line
        heading = (seq, participant, line)
        headings[seq] = tuple.__new__(ReviewHeading, heading)  # as ReviewHeading(...), but faster
    return Review(
        headings=headings,
        huge=tuple(huge),
        repeated=tuple(repeated.items()),
        near=tuple(near),
        reviewed="Reviewed primary deliverable:" in text,
        scope="Review Scope:" in text,
        completeness="Primary deliverable completeness" in text,
        referenced=bool(reference) and reference in text,
        questions=_questions(text, headings),
    )


def _questions(text: str, headings: dict[int, ReviewHeading]) -> tuple[Asked, ...]:
    if not may_ask(text):
        return ()
    return questions(text, {each.line: seq for seq, each in headings.items()})


def _review_title(title: str) -> tuple[str, str] | None:
    """Participant and digits of ``<anything> - <participant> - seq <digits>``.

    Taken apart from both ends: the first dash ends the time, the last one the participant.
    """
    body = title.strip()
    rest = body.rstrip("0123456789")
    digits = body[len(rest) :]
    head = rest.rstrip()
    if not digits or head == rest or not head.endswith("seq"):
        return None
    before = head[: -len("seq")]
    head = before.rstrip()
    if head == before or not head.endswith("-") or head == "-":
        return None
    whole = head[:-1]
    head = whole.rstrip()
    first = _DASH.search(head, 1)
    if head == whole or first is None or not head[first.end() :].strip():
        return None
    return head[first.end() :].strip(), digits


class Conclusion(NamedTuple):
    """conclusion.md.

    Attributes:
        sections: the title of each heading of level 2 -> its line.
        empty: those of them with nothing below.
        outcomes: every outcome line, as word and line.
        placeholders: words that must not stand in a finished conclusion.
        other_levels: headings of other levels, for near misses.
        near: bullets that look like an outcome but do not count.
        hidden: lines in which 待定 stands inside a longer word.
        referenced: whether it names the primary deliverable (dialect v2).
    """

    sections: dict[str, int]
    empty: tuple[Place, ...]
    outcomes: tuple[Place, ...]
    placeholders: tuple[Place, ...]
    other_levels: dict[str, int]
    near: tuple[Place, ...]
    hidden: tuple[int, ...]
    referenced: bool


_OUTCOME = re.compile(rf"^[^\S\n]*- \[({'|'.join(OUTCOMES)})\]\s+(?=\S)([^\n]*)$", re.MULTILINE)

_PLACEHOLDER = re.compile(r"\b(?:TBD|TODO|unresolved|待定)\b", re.IGNORECASE)


def scan_conclusion(text: str, reference: str = "") -> Conclusion:
    """Read conclusion.md; ``reference`` is the primary deliverable's."""
    parts = tuple(markdown.sections(text, 2))
    lines = Lines(text)
    outcomes = tuple((m.group(1), lines.at(m.start())) for m in _OUTCOME.finditer(text))
    lines = Lines(text)
    placeholders = tuple(
        (match.group(), lines.at(match.start())) for match in _PLACEHOLDER.finditer(text)
    )
    counted = {line for _, line in outcomes}
    placed = {line for _, line in placeholders}
    return Conclusion(
        sections={part.title: part.line for part in parts},
        empty=tuple((part.title, part.line) for part in parts if not part.body.strip()),
        outcomes=outcomes,
        placeholders=placeholders,
        other_levels={h.title: h.line for h in markdown.headings(text) if h.level != 2},
        near=tuple(
            place
            for place in without_legend(_near_items(text, counted), OUTCOMES)
            if any(word in place[0].lower() for word in OUTCOMES)
        ),
        hidden=tuple(line for line in _lines_with(text, "待定") if line not in placed),
        referenced=bool(reference) and reference in text,
    )


def _lines_with(text: str, word: str) -> list[int]:
    found: list[int] = []
    lines = Lines(text)
    position = text.find(word)
    while position >= 0 and len(found) < NEAR_MISSES:
        found.append(lines.at(position))
        position = text.find(word, position + len(word))
    return found


class Decision(NamedTuple):
    """A block of decisions.md under ``### D<n>. title``; of another heading, ``number`` is 0.

    ``id`` is how the heading writes it: D01 is not D1.
    """

    number: int
    title: str
    line: int
    decided: bool
    reflected: bool
    referenced: bool
    id: str = ""


class Decisions(NamedTuple):
    """decisions.md.

    Attributes:
        decisions: the blocks under headings of level 3, in order (dialect v2).
        empty: whether nothing stands in it but what stood there when the collaboration began.
    """

    decisions: tuple[Decision, ...]
    empty: bool


_NUMBERED = re.compile(r"D([0-9]{1,9})\. +\S")

_DECISION_FIELD = re.compile(r"^[^\S\n]*- Decision:", re.MULTILINE)

_REFLECTED_FIELD = re.compile(r"^[^\S\n]*- Reflected in:", re.MULTILINE)

_UNDECIDED = (
    r"(?i)[\s*-]*(?:none|nothing|tbd|todo)(?: yet)?\.?(?: Only what was accepted stands here\.)?\s*"
)

_CONTENT = re.compile(r"^(?![^\S\n]*(?:#|<!--|$))[^\n]+$", re.MULTILINE)


def scan_decisions(text: str, references: tuple[str, ...] = ()) -> Decisions:
    """Read decisions.md; ``references`` are those of all declared deliverables."""
    found: list[Decision] = []
    for part in markdown.sections(text, 3):
        match = _NUMBERED.match(part.title)
        found.append(
            Decision(
                number=int(match.group(1)) if match else 0,
                title=part.title,
                line=part.line,
                decided=_DECISION_FIELD.search(part.body) is not None,
                reflected=_REFLECTED_FIELD.search(part.body) is not None,
                referenced=any(reference in part.body for reference in references),
                id=f"D{match.group(1)}" if match else "",
            )
        )
    empty = all(re.fullmatch(_UNDECIDED, match.group()) for match in _CONTENT.finditer(text))
    return Decisions(tuple(found), empty)


# A slot (<reason>, {id}, ...), or a choice ([a|b], [a / b]) where one word is wanted.
# What is seldom needed is compiled where it is: agents run the validator at every turn.
_SLOT = re.compile(r"<[^<>\n]+>|\{[^{}\n]+\}|\.\.\.|…")

_CHOICE = r"\w\s*[|/]\s*\w"

_IN_CODE = r"^(?:[-*+]|\d{1,9}[.)])\s*`\[(\w+)\]`"

_LEGEND = 3  # classes, each named once, that make lines a legend of them

_NOTHING = re.compile(
    r"(?:(?:there (?:are|is) )?(?:currently )?(?:none|nothing|n/a|no (?:\w+ ){0,3}(?:blockers?|issues?|items?))\b"
    r"|(?:tbd|todo|pending|not (?:yet )?(?:known|written|recorded|determined|applicable)"
    r"|to be (?:\w+ )?(?:added|confirmed|defined|determined|done|recorded|written))\b[^\w\n]*$"
    r"|[-–—.…]*$)",
    re.IGNORECASE,
)

_INSTRUCTION = (
    r"(?i)(?:add|capture|classify|describe|enter|keep|list|mark|move|put|record|replace|write) "
    r"(?:a|all|any|blockers?|blocking|concrete|each|every|here|items?|one|only|open|remaining|the|this|unresolved)\b"
)

_NAMES_SEQ = re.compile(r"\bseq\w*\W{0,6}\d", re.IGNORECASE)

Place = tuple[str, int]
"""A text and the line in which it stands."""


def is_slot(word: str) -> bool:
    """Whether what stands in brackets is a slot or a choice, and no word of a class."""
    return _SLOT.search(word) is not None or re.search(_CHOICE, word) is not None


def without_legend(places: Sequence[Place], classes: Collection[str]) -> tuple[Place, ...]:
    """The lines without those that explain the classes: one below the other, each class once, as code."""
    runs: list[list[Place]] = []
    for place in places:
        if runs and place[1] == runs[-1][-1][1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return tuple(place for run in runs if not _is_legend(run, classes) for place in run)


def _is_legend(lines: Sequence[Place], classes: Collection[str]) -> bool:
    words = [match[1] for text, _ in lines if (match := re.match(_IN_CODE, text))]
    once = len(words) == len(set(words)) == len(lines)
    return once and len(set(words) & set(classes)) >= _LEGEND


def says_nothing(bullet: str, *, alone: bool) -> bool:
    """Whether a bullet is a placeholder or an instruction; ``alone``: it is its section's only one."""
    text = bullet.strip(" \t*_`").removesuffix(".")
    if _NOTHING.match(text) or _SLOT.fullmatch(text):
        return True
    return (alone and re.match(_INSTRUCTION, text) is not None) or "`[" in bullet


def names_a_review(title: str) -> bool:
    """Whether a heading means one certain review: it has a number, and no slot."""
    return _NAMES_SEQ.search(title) is not None and _SLOT.search(title) is None


MOST = 200  # questions that are kept

ANSWER = "Answer:"  # begins the line below a question that answers it

OVER = ("completed", "blocked", "")  # phases in which nothing is asked any more

TEMPLATE = "The open questions have not been listed yet; replace this line."


class Asked(NamedTuple):
    """A question of a review.

    ``seq`` is the review's; ``line`` that of the question, ``end`` the last one that belongs to
    it; ``answered`` says that an answer stands below it.
    """

    seq: int
    text: str
    line: int
    end: int = 0
    answered: bool = False


_PART = re.compile(r"[*_]{0,3}([A-Z][A-Za-z ]{1,40})[*_]{0,3}:[*_]{0,3}\s*(.*)")

_LIST_ITEM = re.compile(r"(?:[-*+]|\d{1,3}[.)])\s+(.*)")

_NO_QUESTIONS = re.compile(
    r"(?:[-*+] )?[*_]{0,3}(?:(?:none|nothing|n/a)(?: (?:yet|so far|for now|at this time|open))?"
    r"|no (?:open |further |more |other )?questions?(?: (?:yet|so far|for now))?)?[*_.!…–—-]{0,5}",
    re.I,
)


# Where a part with questions may begin: found at one go in a text that mostly asks nothing. Python
# searches fast for the newline before it; what stands in the first line belongs to no review.
_ASKING = re.compile(
    r"\n[*_]{0,3}(?:O[Pp][Ee][Nn] [Qq]|Q)[Uu][Ee][Ss][Tt][Ii][Oo][Nn][Ss]? *[*_]{0,3}:"
)


def may_ask(text: str) -> bool:
    """Whether a part with questions may stand in review.md."""
    return _ASKING.search(text) is not None


def questions(text: str, seqs: Mapping[int, int]) -> tuple[Asked, ...]:
    """What the reviews ask, in order.

    Args:
        text: review.md, with "\n" as its only line end.
        seqs: the line of each review's heading -> the review's seq.
    """
    found: list[Asked] = []
    reading = _Reading(text, seqs, found)
    while len(found) <= MOST and (begins := reading.search()) is not None:
        reading.go_to(begins)
        reading.read_part()
    return tuple(each for each in found[:MOST] if not _NO_QUESTIONS.fullmatch(each.text.strip()))


class _Reading:
    """How far review.md was read; only ever forward, so that all is linear."""

    def __init__(self, text: str, seqs: Mapping[int, int], found: list[Asked]) -> None:
        self.position, self._line = 0, 1  # the line that begins there
        self._text, self._seqs, self._found = text, seqs, found
        self._seq = seqs.get(1) if text.startswith("## ") else None  # of the nearest heading

    def search(self) -> int | None:
        """Where the next line stands with which a part with questions may begin."""
        found = _ASKING.search(self._text, max(self.position - 1, 0))
        return found.start() + 1 if found else None

    def go_to(self, start: int) -> None:
        """Pass over everything before a line."""
        text, before = self._text, max(self.position - 1, 0)
        heading = text.rfind("\n## ", before, start) + 1
        if heading:
            line = self._line + text.count("\n", self.position, heading)
            self._seq = self._seqs.get(line)
        self._line += text.count("\n", self.position, start)
        self.position = start

    def read_part(self) -> None:
        """Read lines for as long as they ask."""
        asking = False
        while self.position < len(self._text) and len(self._found) <= MOST:
            end = self._text.find("\n", self.position)
            end = len(self._text) if end < 0 else end
            line = self._text[self.position : end]
            if line.startswith("#"):
                return
            asking = self._asks(line, asking)
            self.position, self._line = end + 1, self._line + 1
            if not asking:
                break
        self.position = min(self.position, len(self._text))

    def _asks(self, line: str, asking: bool) -> bool:
        """Take a line; whether what follows it are questions."""
        if self._seq is None:
            return False
        part = _PART.fullmatch(line.rstrip()[:400])
        if part is None:
            if asking and line.strip():
                _take(self._found, self._seq, line, self._line)
            return asking
        asking = part[1].strip().lower() in ("questions", "open questions", "question")
        if asking and part[2]:
            self._found.append(Asked(self._seq, part[2], self._line, self._line))
        return asking


def _take(found: list[Asked], seq: int, line: str, number: int) -> None:
    """A bullet is a question; what is indented below one belongs to it."""
    bullet = _LIST_ITEM.fullmatch(line.strip())
    if bullet is not None and not line.startswith(("    ", "\t")):
        found.append(Asked(seq, bullet[1], number, number))
    elif found and found[-1].seq == seq and line[0] in " \t":
        last = found[-1]._replace(end=number)
        if last.answered or line.strip().startswith(ANSWER):
            last = last._replace(answered=True)
        elif len(last.text) < 2_000:
            last = last._replace(text=f"{last.text} {line.strip()}")
        found[-1] = last
    elif bullet is None:
        found.append(Asked(seq, line.strip(), number, number))
