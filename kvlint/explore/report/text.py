"""The exploration for people at a terminal: a verdict per scenario, and the gravest schedule of each as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from kvlint.explore.report.pointers import replay_command, rules_that_find
from kvlint.explore.report.text_witness import witness_lines
from kvlint.explore.results import Exploration, PropertyResult, ScenarioResult, Verdict, Witness
from kvlint.explore.run import Outcome
from kvlint.properties import BY_GRAVITY
from kvlint.report.colour import BOLD, CYAN, DIM, RED, YELLOW, paint
from kvlint.source.display import counted, one_line

#: Columns where no terminal sets their number.
WIDTH = 100
_NARROWEST = 40
_STYLES = {Verdict.VIOLATED: RED, Verdict.INCONCLUSIVE: YELLOW, Verdict.HOLDS: BOLD}
_EDGE = "  "
_DIGITS = 12  # shown of the digest
_MOST_DETAILS = 4
_MEANINGS = {
    Verdict.VIOLATED: "",
    Verdict.INCONCLUSIVE: "nothing was found to be broken, and not everything was searched",
    Verdict.HOLDS: "in these scenarios no schedule breaks any property",
}


def render(outcome: Outcome, *, colour: bool = False, width: int | None = None) -> str:
    """All that came of a request; ``width`` in columns is that of the terminal, None for 100."""
    columns = max(_NARROWEST, WIDTH if width is None else width)
    exploration, replayed = outcome.exploration, outcome.replayed
    blocks = [_head(exploration, columns, colour)]
    if replayed is not None:
        how = "on real threads" if replayed.with_threads else "again"
        told = "broke its property" if replayed.confirmed else "did not break its property"
        verdict = paint("confirmed" if replayed.confirmed else "not confirmed", _STYLES[outcome.verdict], colour)
        blocks.append([f"{verdict}: the schedule was run {how} and {told}"])
        blocks.append(list(_witness(replayed.witness, exploration, columns, colour)))
    blocks += [list(_scenario(result, exploration, columns, colour)) for result in exploration.scenarios]
    if exploration.scenarios:
        blocks.append(list(_summary(exploration, columns, colour)))
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks if block) + "\n"


def _head(exploration: Exploration, width: int, colour: bool) -> list[str]:
    release = "" if exploration.version is None else f"  (release {one_line(exploration.version)})"
    lines = [paint(f"{one_line(exploration.tree)}{release}", BOLD, colour)]
    if exploration.loaded:
        digest = f"; SHA-256 {exploration.digest[:_DIGITS]}…" if exploration.digest else ""
        modules = f"{counted(len(exploration.loaded), 'module')}{digest}"
        lines += _listed("really run", (f"{modules}: " + ", ".join(_short(exploration.loaded)),), width)
    if exploration.stubbed:
        lines += _listed("stand-ins", exploration.stubbed, width)
    if not exploration.scheduler:
        lines += _listed("left out", ("the scheduler: rooms are opened and chunks queued before threads race",), width)
    return lines


def _short(modules: Sequence[str]) -> list[str]:
    """Names of modules without the part that all of them share."""
    split = [one_line(name).split(".") for name in modules]
    shared = 0
    while all(len(parts) > shared + 1 for parts in split) and len({parts[shared] for parts in split}) == 1:
        shared += 1
    return [".".join(parts[shared:]) for parts in split]


def _listed(title: str, entries: Sequence[str], width: int) -> list[str]:
    """A title with its entries beside it."""
    indent = " " * 14
    lines = [line for entry in entries for line in _wrapped(entry, width - len(indent) - 2)]
    return [f"{_EDGE}{title if number == 0 else '':12}{line}" for number, line in enumerate(lines)]


def _wrapped(text: str, width: int, indent: str = "  ") -> list[str]:
    return wrap(one_line(text), max(width, 20), subsequent_indent=indent, break_on_hyphens=False)


# -- a scenario ------------------------------------------------------------------


def scenario_lines(result: ScenarioResult, width: int, colour: bool, *, timed: bool = True) -> Iterator[str]:
    """The verdict on a scenario, what was searched, and the properties; no schedules."""
    verdict = f"{result.verdict.value:12}"
    first, *rest = _wrapped(f"{verdict}  {result.scenario}: {result.summary}", width)
    yield paint(verdict, _STYLES[result.verdict], colour) + first.removeprefix(verdict)
    yield from rest
    yield from (f"{_EDGE}{line}" for line in _wrapped(_measures(result, timed=timed), width - 2))
    if result.reason:
        yield from (f"{_EDGE}{line}" for line in _wrapped(result.reason, width - 2))
    if result.shared:
        shared = f"shared: {', '.join(result.shared)}"
        yield from (paint(f"{_EDGE}{line}", DIM, colour) for line in _wrapped(shared, width - 2))
    yield from _properties(result, width, colour)


def _scenario(result: ScenarioResult, exploration: Exploration, width: int, colour: bool) -> Iterator[str]:
    yield from scenario_lines(result, width, colour)
    gravest = min((entry for entry in result.properties if entry.witness is not None), key=gravity, default=None)
    if gravest is not None and gravest.witness is not None:
        yield ""
        yield from _witness(gravest.witness, exploration, width, colour)
    others = [entry for entry in sorted(result.properties, key=gravity) if entry.witness and entry is not gravest]
    for entry in others:
        assert entry.witness is not None
        yield ""
        words = f"a schedule for {entry.property}, to be shown by"
        yield from (f"{_EDGE}{line}" for line in _wrapped(words, width - 2, ""))
        yield _replay(entry.witness, exploration)


def _measures(result: ScenarioResult, *, timed: bool) -> str:
    schedules = "schedules not counted" if result.schedules is None else grouped(result.schedules, "schedule")
    quick = "" if result.quick_seconds is None else f", the first witness after {result.quick_seconds:.2f} s"
    if not result.runs:
        return f"{schedules}{quick}"
    # The search by partial orders knows no states.
    states = f", {grouped(result.states, 'state')}" if result.states else ""
    runs = grouped(result.runs, "run")
    seconds = f", {result.seconds:.2f} s{quick}" if timed else ""
    return f"{schedules}{states}, {runs}{seconds}"


def _properties(result: ScenarioResult, width: int, colour: bool) -> Iterator[str]:
    for entry in sorted(result.properties, key=gravity):
        if entry.verdict is Verdict.VIOLATED:
            yield from _violated(entry, width, colour)
    for verdict, words in ((Verdict.INCONCLUSIVE, "not decided"), (Verdict.HOLDS, "holds")):
        names = [entry.property for entry in result.properties if entry.verdict is verdict]
        if names:
            yield from (f"{_EDGE}{line}" for line in _wrapped(f"{words}: {', '.join(names)}", width - 2))


def _violated(entry: PropertyResult, width: int, colour: bool) -> Iterator[str]:
    counts = "" if entry.schedules is None else f" in {grouped(entry.schedules, 'schedule')}"
    fewest = "" if entry.witness is None else f", {_preemptions(entry.witness)}"
    rules = rules_that_find(entry.property)
    named = f" (see {', '.join(rules)})" if rules else ""
    first, *rest = _wrapped(f"{entry.property}{counts}{fewest}{named}", width - 2)
    yield f"{_EDGE}{paint(entry.property, RED, colour)}{first.removeprefix(entry.property)}"
    yield from (f"{_EDGE}{line}" for line in rest)
    for detail in entry.details[:_MOST_DETAILS]:
        yield from (f"{_EDGE * 2}{line}" for line in _wrapped(detail, width - 4))
    if len(entry.details) > _MOST_DETAILS:
        yield f"{_EDGE * 2}and {len(entry.details) - _MOST_DETAILS} more ways"


def _preemptions(witness: Witness) -> str:
    return f"first with {counted(witness.preemptions, 'preemption')}"


def _witness(witness: Witness, exploration: Exploration, width: int, colour: bool) -> Iterator[str]:
    title = f"{witness.property}, with {counted(witness.preemptions, 'preemption')}: {one_line(witness.detail)}"
    yield from (f"{_EDGE}{paint(line, CYAN, colour)}" for line in _wrapped(title, width - 2))
    yield from (f"{_EDGE}{line}" for line in witness_lines(witness, exploration.tree, width - 2, colour))
    yield f"{_EDGE}run it again:"
    yield _replay(witness, exploration)


def _replay(witness: Witness, exploration: Exploration) -> str:
    """The command on a line of its own and never broken, to be copied."""
    return f"{_EDGE * 2}{one_line(replay_command(exploration.tree, exploration.scheduler, witness.token))}"


# -- the whole -------------------------------------------------------------------


def _summary(exploration: Exploration, width: int, colour: bool) -> Iterator[str]:
    verdict = exploration.verdict
    violated = {
        entry.property
        for result in exploration.scenarios
        for entry in result.properties
        if entry.verdict is Verdict.VIOLATED
    }
    told = ", ".join(name for name in BY_GRAVITY if name in violated) or _MEANINGS[verdict]
    first, *rest = _wrapped(f"{verdict.value}: {told}", width)
    yield paint(verdict.value, _STYLES[verdict], colour) + first.removeprefix(verdict.value)
    yield from rest


def gravity(entry: PropertyResult) -> int:
    """The place of a property in the order of what to look at first."""
    return BY_GRAVITY.index(entry.property) if entry.property in BY_GRAVITY else len(BY_GRAVITY)


def grouped(number: int, noun: str) -> str:
    """``6,662,462 schedules``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
