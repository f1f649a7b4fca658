"""Looks at the HTML report in a real browser: nothing is fetched, nothing complains, and everybody can use it.

Needs a Chromium and two packages that kvlint itself does not:

    pip install playwright axe-playwright-python
    python tools/check_html_report.py [--screenshots FOLDER] [PAGE.html ...]

Without a page, the report on the demo's backend and the exploration of it are made
and looked at.  The browser is $KVLINT_BROWSER, else the first Chromium on the PATH,
else the one that `playwright install chromium` fetched.  The exit status is 0 if all
is well, 1 if something is not, 2 if there is no browser to look with.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import kvlint
from kvlint.cli import cli
from kvlint.explore.embedded import explore_embedded
from kvlint.explore.report.html import render_html

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTHS = {"wide": 1280, "narrow": 360}

#: WCAG 2.2 A and AA, and what axe calls best practice.
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE.html")
    parser.add_argument("--screenshots", type=Path, metavar="FOLDER", help="keep pictures of the pages there")
    parser.add_argument(
        "--rules", action="store_true", help="print the accessibility rules that hold or cannot be judged"
    )
    options = parser.parse_args(arguments)
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        print("no browser: pip install playwright axe-playwright-python", file=sys.stderr)
        return 2
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=_browser(), args=["--no-sandbox"])
        except Error as error:
            print(f"no browser: {error}", file=sys.stderr)
            return 2
        print(f"Chromium {browser.version}")
        for path in options.pages or [_demo(Path(folder)), _exploration(Path(folder))]:
            found = list(_look(browser, path.resolve(), options.screenshots, options.rules))
            print(f"{path}: {len(found)} problems")
            problems += found
        browser.close()
    for problem in problems:
        print(f"  {problem}")
    return 1 if problems else 0


def _browser() -> str | None:
    """The browser to start; None for Playwright's own."""
    return os.environ.get("KVLINT_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)


def _demo(folder: Path) -> Path:
    """A report on the demo's backend."""
    page = folder / "report.html"
    backend = Path(kvlint.__file__).with_name("demo_backend")
    cli(
        ["check", "--isolated", "--quiet", "--output-format", "html", "--output", str(page), str(backend)],
        standalone_mode=False,
    )
    return page


def _exploration(folder: Path) -> Path:
    """The page of what an exploration of the demo's backend finds."""
    page = folder / "exploration.html"
    found = explore_embedded(Path(kvlint.__file__).with_name("demo_backend"))
    page.write_text(render_html(found), encoding="utf-8")
    return page


def _look(browser: Browser, path: Path, pictures: Path | None, list_rules: bool) -> Iterator[str]:
    for scheme in ("light", "dark"):
        for name, width in WIDTHS.items():
            context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
            label = f"{path.stem}-{scheme}-{name}"
            yield from (f"{label}: {problem}" for problem in _use(context, path, pictures, label, list_rules))
            context.close()
    context = browser.new_context(java_script_enabled=False)
    yield from (f"{path.stem}, no JavaScript: {problem}" for problem in _without_script(context, path))
    context.close()


def _use(context: BrowserContext, path: Path, pictures: Path | None, label: str, list_rules: bool) -> Iterator[str]:
    page = context.new_page()
    heard: list[str] = []
    page.on("console", lambda message: heard.append(f"the console says {message.text}"))
    page.on("pageerror", lambda error: heard.append(f"the script fails: {error}"))
    page.on("request", lambda request: heard.append(request.url) if request.url != path.as_uri() else None)
    page.goto(path.as_uri())
    if pictures is not None:
        pictures.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=pictures / f"{label}.png", full_page=page.evaluate("document.body.scrollHeight") < 15_000)
    yield from _overflow(page)
    yield from _diagrams(page)
    yield from _accessibility(page, list_rules)
    yield from _filter(page)
    yield from _keyboard(page)
    yield from _colours(page)
    # The icon is a data address: it is asked of nobody.
    yield from (problem for problem in heard if not problem.startswith("data:"))


def _overflow(page: Page) -> Iterator[str]:
    if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
        yield "the page scrolls sideways"


def _diagrams(page: Page) -> Iterator[str]:
    """Of the two diagrams of a schedule, the one that fits is shown, and it is not cut off."""
    if page.locator("figure").count() != page.locator(".swimlane:visible").count():
        yield "not every schedule has one diagram"
    wider = "[...document.querySelectorAll('.swimlane svg')].some((e) => e.clientWidth > e.parentElement.clientWidth)"
    if page.evaluate(wider):
        yield "a diagram is wider than its place"


def _accessibility(page: Page, list_rules: bool) -> Iterator[str]:
    source = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
    # What the browser has not laid out yet has no colours to measure.
    page.evaluate("for (const e of document.querySelectorAll('.finding')) e.style.contentVisibility = 'visible'")
    page.evaluate(source)  # through the debugger, which the page's policy does not bind
    result = page.evaluate(f"axe.run(document, {{runOnly: {json.dumps(TAGS)}, resultTypes: ['violations']}})")
    if list_rules:
        print("  axe", result["testEngine"]["version"], "tried", ", ".join(rule["id"] for rule in result["passes"]))
    for violation in result["violations"]:
        nodes = violation["nodes"]
        yield f"axe {violation['id']} ({violation['impact']}), {len(nodes)} times: {nodes[0]['html'][:200]}"
    for doubt in result["incomplete"] if list_rules else ():
        node = doubt["nodes"][0]
        why = "; ".join(check["message"] for check in node["any"] + node["all"] + node["none"])
        print(f"  axe cannot tell {doubt['id']}, {len(doubt['nodes'])} times: {why}: {node['html'][:200]}")


def _filter(page: Page) -> Iterator[str]:
    from playwright.sync_api import expect

    if not page.locator("#filter").count():
        return
    findings = page.locator(".finding")
    total = findings.count()
    page.fill("#filter-text", "no such text anywhere")
    shown = page.locator("#shown")
    expect(shown).to_have_text(f"0 of {total} shown")
    if page.locator(".finding:visible").count():
        yield "findings that do not fit are shown"
    page.click("#filter button[type=reset]")
    expect(shown).to_have_text(f"{total} of {total} shown")
    boxes = page.locator('#filter input[name="rule"]')
    code = boxes.first.get_attribute("value")
    boxes.first.uncheck()
    hidden = page.locator(f'.finding[data-rule="{code}"]').count()
    expect(shown).to_have_text(f"{total - hidden} of {total} shown")
    boxes.first.check()


def _keyboard(page: Page) -> Iterator[str]:
    """Every control is reached by Tab and shows that it is."""
    page.reload()
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        kind = page.evaluate(
            "(() => { const e = document.activeElement; return e.id || e.type || e.tagName.toLowerCase(); })()"
        )
        if kind == "body":
            break  # behind the last control
        if page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "none":
            yield f"{kind} does not show its focus"
        reached.add(kind)
    missing = {"theme-auto"} | ({"filter-text", "fold"} if page.locator("#filter").count() else set())
    if not missing <= reached:
        yield f"Tab does not reach {', '.join(sorted(missing - reached))}"


def _colours(page: Page) -> Iterator[str]:
    ground = "getComputedStyle(document.body).backgroundColor"
    seen = []
    for theme in ("light", "dark"):
        page.check(f"#theme-{theme}")
        seen.append(page.evaluate(ground))
    if len(set(seen)) != 2:
        yield f"the choice of colours changes nothing: {seen}"


def _without_script(context: BrowserContext, path: Path) -> Iterator[str]:
    page = context.new_page()
    page.goto(path.as_uri())
    if page.locator("#filter:visible").count():
        yield "a filter that cannot work is shown"
    if page.locator(".copy:visible").count():
        yield "a button that cannot work is shown"
    articles = page.locator(".finding")
    if articles.count() and not articles.first.locator(".message").is_visible():
        yield "findings cannot be read"
    page.locator("#theme-dark").check()
    if page.locator("details").count():
        details = page.locator("details").first
        was_open = details.get_attribute("open") is not None
        details.locator("summary").first.click()
        if (details.get_attribute("open") is not None) is was_open:
            yield "evidence cannot be unfolded"
    page.emulate_media(media="print")
    if page.locator("nav:visible").count():
        yield "the navigation is printed"


if __name__ == "__main__":
    sys.exit(main())
