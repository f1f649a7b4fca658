"""The HTML page, read as a browser would: nothing from outside, nothing that runs, everything named and in order."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace as with_values

from kvlint.diagnostics import Location, Span
from kvlint.explore.report.html import render_html
from kvlint.explore.results import Exploration, Place, PropertyResult, ScenarioResult, Step, Verdict, Witness
from kvlint.report import render
from kvlint.report.html import render_models
from kvlint.report.html_backends import MARKS, MEANINGS
from kvlint.report.inspect_model import CellModel, FileModel
from kvlint.report.model import Details, FileCounts, Report
from kvlint.source.text import decode

from .small import EVIL, MODEL, OVERWRITE, SKIPPED, WRITER, small

_VOID = {"meta", "link", "input", "br", "hr", "img"}


@dataclass
class Element:
    """An element with its text, its own and its descendants'."""

    tag: str
    attributes: dict[str, str | None]
    children: list[Element] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    def walk(self) -> Iterator[Element]:
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def classes(self) -> set[str]:
        return set((self.attributes.get("class") or "").split())


class Page(HTMLParser):
    """A page as a tree; fails where an element is not closed as it was opened."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self._open = [self.root]
        self.feed(text)
        self.close()
        assert self._open == [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names)
        element = Element(tag, dict(attrs))
        self._open[-1].children.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.pieces.append(data)

    def all(self, tag: str = "", *, cls: str = "") -> list[Element]:
        """The elements of a kind, in order."""
        return [
            element
            for element in self.root.walk()
            if element.tag and (not tag or element.tag == tag) and (not cls or cls in element.classes)
        ]


@pytest.fixture
def text(tmp_path: Path) -> str:
    return render(small(tmp_path), "html")


@pytest.fixture
def page(text: str) -> Page:
    return Page(text)


PAGES = {
    "small": lambda: small(Path("/project")),
    "clean": lambda: Report((), FileCounts(3, 1), details=Details("/project")),
    "without details": lambda: replace(small(Path("/project")), details=None),
    "unknown rules": lambda: Report(
        tuple(replace(SKIPPED, code=code, name="no-such-rule", plan=None) for code in ("KVL001", "KVL123")),
        FileCounts(),
    ),
}


@pytest.fixture(params=[*PAGES, "inspection", "empty inspection", "exploration", "empty exploration"])
def any_page(request: pytest.FixtureRequest) -> Page:
    if request.param == "inspection":
        return Page(render_models([MODEL, mentioning()], ["silent <file>.py"]))
    if request.param.endswith("exploration"):
        return Page(render_html(exploration(request.param == "exploration")))
    if request.param == "empty inspection":
        return Page(render_models([], []))
    return Page(render(PAGES[request.param](), "html"))


def exploration(violated: bool) -> Exploration:
    """What ``kvlint explore`` found: two scenarios with the same violation, or nothing."""
    place = Place("base.py", 74, "update_status")
    steps = (
        Step("listener", "[]=", "request_status", "7", "Failed", True, place),
        Step("worker", "[]=", "request_status", "7", "Transferring", True, place, preempts=True, breaks="pinned-room"),
    )
    witness = Witness("pinned-room", "room 7: stays", 1, ("worker", "listener"), steps, {"worker": ""}, "kv1-0")
    broken = PropertyResult("pinned-room", Verdict.VIOLATED, 1, ("stays", "stays too"), witness)
    scenarios = tuple(
        ScenarioResult(name, "a room", Verdict.VIOLATED, 2, 3, 4, 0.5, 0.1, "", ("request_status",), (broken,))
        for name in ("abort", "two-rooms")
    )
    names = ("sglang.a", *(f"sglang.{number}" for number in range(8)))
    return Exploration("tree", "0.5.14", "0" * 64, names, (), True, Verdict.VIOLATED, scenarios if violated else ())


def mentioning() -> FileModel:
    """A model of a file that only mentions statuses."""
    enum = with_values(MODEL.enums[0], is_defined_here=False)
    return with_values(MODEL, path="mentions.py", enums=(enum,), classes=(), writers=(), writes=(), undecided=())


# -- nothing from outside, nothing that runs -------------------------------------------


def test_nothing_is_referred_to_outside(any_page: Page) -> None:
    for element in any_page.all():
        for name, value in element.attributes.items():
            assert name not in {"src", "srcset", "background", "ping", "style"}
            assert not name.startswith("on")
            if name in {"href", "action"}:
                assert value is not None
                assert value.startswith(("#", "data:,"))
    for style in any_page.all("style"):
        assert not re.search(r"url\(|@import|https?:", style.text)


def test_links_lead_to_places_on_the_page(any_page: Page) -> None:
    there = {element.attributes.get("id") for element in any_page.all()}
    for link in any_page.all("a"):
        href = link.attributes["href"]
        assert href is not None
        assert href.removeprefix("#") in there
    for element in any_page.all():
        for name in ("aria-labelledby", "for"):
            if name in element.attributes:
                assert element.attributes[name] in there


def test_the_policy_allows_this_style_and_this_script_alone(any_page: Page) -> None:
    (policy,) = [
        meta.attributes["content"]
        for meta in any_page.all("meta")
        if meta.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.strip().split(" ", 1) for rule in (policy or "").split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    for kind in ("style", "script"):
        (element,) = any_page.all(kind)
        digest = base64.b64encode(hashlib.sha256(element.text.encode()).digest()).decode()
        assert rules[f"{kind}-src"] == f"'sha256-{digest}'"


def test_what_the_source_holds_is_text(text: str, page: Page) -> None:
    assert EVIL.partition("\u202e")[0] not in text
    assert len(page.all("script")) == 1
    shown = [element for element in page.all() if "alert(1)" in element.text]
    assert {"article", "p", "mark", "span", "td"} & {element.tag for element in shown}
    assert not [element for element in page.all("script") if "alert(1)" in element.text]
    (crash,) = [element for element in page.all("p") if element.text.startswith("ZeroDivisionError")]
    assert "it <divides>" in crash.text
    heads = [element.text for element in page.all("h3")]
    assert "x\\n:y,\\xff<script>.py" in heads


def test_characters_that_hide_or_reorder_text_are_spelled(text: str) -> None:
    odd = {character for character in text if not character.isprintable() and character != "\n"}
    assert odd == set()
    assert "\\u202e" in text


# -- for everybody ---------------------------------------------------------------------


def test_it_has_a_language_and_a_title(any_page: Page) -> None:
    (html,) = any_page.all("html")
    assert html.attributes["lang"] == "en"
    (head,) = any_page.all("head")
    (title,) = [element for element in head.children if element.tag == "title"]
    assert title.text.startswith("kvlint: ")


def test_identifiers_are_unique(any_page: Page) -> None:
    counts = Counter(element.attributes["id"] for element in any_page.all() if "id" in element.attributes)
    assert [name for name, count in counts.items() if count > 1] == []


def test_headings_leave_no_level_out(any_page: Page) -> None:
    levels = [int(element.tag[1]) for element in any_page.all() if re.fullmatch("h[1-6]", element.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all(element.text.strip() for element in any_page.all() if re.fullmatch("h[1-6]", element.tag))


def test_landmarks(any_page: Page) -> None:
    for tag in ("main", "header", "footer", "nav"):
        assert len(any_page.all(tag)) == 1
    for tag in ("nav", "section", "article", "form"):
        for element in any_page.all(tag):
            assert {"aria-label", "aria-labelledby"} & element.attributes.keys()


def test_controls_have_labels(any_page: Page) -> None:
    labelled = {label.attributes.get("for") for label in any_page.all("label")}
    wrapped = {id(control) for label in any_page.all("label") for control in label.walk()}
    for control in any_page.all("input"):
        assert id(control) in wrapped or control.attributes["id"] in labelled
    for fieldset in any_page.all("fieldset"):
        assert fieldset.children[0].tag == "legend"
    assert all(button.text.strip() for button in any_page.all("button"))
    assert all(summary.text.strip() for summary in any_page.all("summary"))


def test_tables_have_captions_and_headers_with_a_scope(any_page: Page) -> None:
    for table in any_page.all("table"):
        assert table.children[0].tag == "caption"
        assert table.children[0].text.strip()
        cells = [element for element in table.walk() if element.tag in {"th", "td"}]
        headers = [element for element in cells if element.tag == "th"]
        assert headers
        assert {header.attributes.get("scope") for header in headers} <= {"row", "col"}
        for row in (element for element in table.walk() if element.tag == "tr"):
            assert row.children[0].tag == "th"
        widths = {
            sum(int(cell.attributes.get("colspan") or 1) for cell in row.children)
            for row in table.walk()
            if row.tag == "tr"
        }
        assert len(widths) == 1


def test_what_scrolls_can_be_reached_and_has_a_name(any_page: Page) -> None:
    names = []
    for element in any_page.all(cls="scroll"):
        assert element.attributes["tabindex"] == "0"
        assert element.attributes["role"] == "region"
        names.append(element.attributes["aria-label"])
    assert len(set(names)) == len(names)


def test_what_needs_the_script_is_hidden_without_it(page: Page) -> None:
    (form,) = page.all("form")
    assert "hidden" in form.attributes
    assert not [element for element in page.all() if "hidden" in element.attributes and element is not form]


def test_two_files_with_the_same_content_are_told_apart(tmp_path: Path) -> None:
    report = small(tmp_path, models=(MODEL, with_values(MODEL, path="other/conn.py")))
    assert report.details is not None
    again = replace(OVERWRITE, location=replace(OVERWRITE.location, path="other/nixl/conn.py"))
    page = Page(render(replace(report, findings=(*report.findings, again)), "html"))
    names = [region.attributes["aria-label"] for region in page.all(cls="scroll")]
    assert len(set(names)) == len(names)
    identifiers = [element.attributes["id"] for element in page.all() if "id" in element.attributes]
    assert len(set(identifiers)) == len(identifiers)


# -- what it shows --------------------------------------------------------------------


def test_every_finding_is_there_with_its_evidence(page: Page, tmp_path: Path) -> None:
    report = small(tmp_path)
    articles = page.all("article")
    assert [article.attributes["data-rule"] for article in articles] == [finding.code for finding in report.findings]
    skipped, overwrite, popped, *_ = articles
    assert [mark.text for mark in skipped.walk() if mark.tag == "mark"] == [
        "continue",
        "if chunk.room not in self.transfer_infos",
    ]
    hits = [line.attributes["data-number"] for line in skipped.walk() if "hit" in line.classes]
    assert hits == ["6", "5"]
    assert [line.text for line in skipped.walk() if line.tag == "ins"] == ["+ self.update_status(room, F)\n"]
    assert [line.text for line in popped.walk() if line.tag == "del"] == ["- self.transfer_infos.pop(room, None)\n"]
    assert "kvlint fix --unsafe-fixes" in popped.text
    (schedule,) = [table for table in overwrite.walk() if "schedule" in table.classes]
    rows = [[cell.text for cell in row.children] for row in schedule.walk() if row.tag == "tr"]
    assert rows[0] == ["step", "listener", "worker"]
    assert [(row[0], bool(row[1]), bool(row[2])) for row in rows[1:]] == [
        ("1", True, False),
        ("2", False, True),
        ("3", False, True),
    ]
    assert "nixl/conn.py:13" in rows[1][1]
    assert "self.update_status(room, Poll.Failed)" in rows[1][1]


def test_summaries_count(page: Page) -> None:
    by_rule, by_file = page.all("table")[:2]
    rows = [[cell.text for cell in row.children] for row in by_rule.walk() if row.tag == "tr"]
    assert rows[1] == ["KVL001", "non-terminal-write-after-failed", "error", "3"]
    assert rows[-1] == ["all", "6"]
    files = [[cell.text for cell in row.children] for row in by_file.walk() if row.tag == "tr"]
    assert files[1:] == [["nixl/conn.py", "5"], ["x\\n:y,\\xff<script>.py", "1"]]


def test_transition_tables_are_grids_with_a_meaning_for_each_cell(page: Page) -> None:
    (grid,) = page.all("table", cls="grid")
    rows = [row.children for row in grid.walk() if row.tag == "tr"][1:]
    meanings = [[next(iter(cell.classes - {"cell"})) for cell in row if "cell" in cell.classes] for row in rows]
    assert meanings == [
        ["creates", "creates", "creates"],
        ["kept", "bad", "unknown"],
        ["lost", "kept", "unknown"],
        ["ends", "bad", "kept"],
    ]
    assert rows[0][0].text == "nothing"
    assert rows[1][3].text == f"{MARKS['unknown']} never returns, or raises: {MEANINGS['unknown']}"
    assert rows[1][-1].text == "replaced by Transferring, Success; may raise on Success"
    assert rows[2][3].text.startswith("? ?")


def test_cells_of_other_kinds() -> None:
    rows = tuple(row for row in WRITER.rows if row.stored in {"-", "Transferring"})
    cells = {
        "-": {"Transferring": CellModel(("-",), False)},
        "Transferring": {"Transferring": CellModel(("Success", "~"), False)},
    }
    writer = with_values(WRITER, rows=rows, cells=cells)
    page = Page(render_models([with_values(MODEL, writers=(writer,))], []))
    (grid,) = page.all("table", cls="grid")
    told = [cell.text for cell in grid.walk() if "cell" in cell.classes]
    assert told == [
        f"= nothing: {MEANINGS['kept']}",
        f"{MARKS['moves']} Success or something else: {MEANINGS['moves']}",
    ]


def test_the_pop_site_catalogue_and_what_is_not_decided(page: Page) -> None:
    (catalogue,) = [table for table in page.all("table") if table.text.strip().startswith("Pop-site catalogue")]
    rows = [[cell.text for cell in row.children] for row in catalogue.walk() if row.tag == "tr"]
    assert rows[0] == ["place", "verdict", "removed from", "function", "threads", "reason"]
    assert [row[1] for row in rows[1:]] == ["unsafe", "safe", "unknown"]
    assert rows[1][3] == "Manager.listener (abort handler)"
    assert rows[2][0] == "common/base class.py:3"
    told = [item.text for item in page.all("li")]
    assert "base class, line 9: Foreign, base of Manager, was not found" in told


def test_suppressed_findings_crashes_and_warnings_have_their_places(page: Page) -> None:
    sections = {section.attributes.get("id"): section.text for section in page.all("section")}
    assert "KVL004 Failed is replaced" in (sections["suppressed"] or "")
    assert "kvlint failed on nixl/crash.py" in (sections["notes"] or "")
    assert "nixl/gone.py: cannot be read" in (sections["notes"] or "")
    assert page.all(cls="alarm")


def test_rules_are_explained(page: Page) -> None:
    (section,) = [section for section in page.all("section") if section.attributes.get("id") == "rules"]
    assert "What it does" in section.text
    assert any(code.text == "super()" for code in section.walk() if code.tag == "code")


def test_a_clean_run_says_so() -> None:
    text = render(Report((), FileCounts(3, 1), details=Details("/project")), "html")
    assert "<p>Nothing was found.</p>" in text
    assert "<article" not in text


def test_evidence_is_folded_where_there_is_much() -> None:
    source = decode("a.py", b"continue\n" * 40)
    findings = tuple(replace(SKIPPED, location=Location("a.py", Span(line, 1, line, 9))) for line in range(1, 41))
    report = Report(findings, FileCounts(1), details=Details("/", {"a.py": source}))
    page = Page(render(report, "html"))
    folds = page.all("details")
    assert len(folds) == 40
    assert not any("open" in fold.attributes for fold in folds)
    assert all("open" in fold.attributes for fold in Page(render(small(Path("/")), "html")).all("details"))
