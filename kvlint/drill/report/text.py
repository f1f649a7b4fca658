"""A drill for people at a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvlint.drill.results import (
    Comparison,
    DrillResult,
    Ends,
    Spread,
    StormResult,
    Throughput,
    TreeResult,
    counted_statuses,
    spread,
)
from kvlint.drill.storm import Storm
from kvlint.report.colour import BOLD, DIM, RED, paint
from kvlint.source.display import counted, one_line

_EDGE = "  "
_TITLE = 15  # columns
_DIGITS = 12  # shown of the digest
_MOST_ROOMS = 8


def render(result: DrillResult, *, colour: bool = False, verbose: bool = False) -> str:
    """All that was found out.

    Args:
        result: That.
        colour: Whether there is to be colour.
        verbose: Whether tracebacks and what the tree has logged are told as well.
    """
    blocks = [list(_tree(tree, result, colour, verbose)) for tree in result.trees]
    if result.comparison is not None:
        blocks.append(list(_comparison(result.comparison, result.trees, colour)))
    blocks.append(list(_verdict(result, colour)))
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _tree(tree: TreeResult, result: DrillResult, colour: bool, verbose: bool) -> Iterator[str]:
    ready = tree.ready
    release = "" if ready.version is None else f"  (release {one_line(ready.version)})"
    yield paint(f"{one_line(tree.root)}{release}", BOLD, colour)
    auto = f" (auto took {ready.took})" if result.device == "auto" else ""
    nixl = f"NIXL {ready.nixl or 'of an unknown release'}, torch {ready.torch}"
    yield _line("really run", f"the NIXL backend, SHA-256 {ready.digest[:_DIGITS]}…; {nixl}")
    processes = "one process" if result.processes == 1 else "two processes"
    yield _line("", f"{ready.device}{auto}, {processes}, {counted(ready.workers, 'transfer worker')}")
    if tree.storm is not None:
        yield ""
        yield from _storm(tree.storm, colour, verbose)
    if tree.throughput is not None:
        yield ""
        yield from _throughput(tree.throughput, colour)


def _line(title: str, text: str) -> str:
    return f"{_EDGE}{title:{_TITLE}}{text}".rstrip()


# -- the storm -------------------------------------------------------------------------


def _storm(result: StormResult, colour: bool, verbose: bool) -> Iterator[str]:
    storm = result.storm
    yield _line("storm", _measures(storm))
    widened = f", a transfer takes at least {storm.transfer * 1000:g} ms" if storm.transfer else ""
    given_up = f"abort probability {storm.abort_probability:g}, seed {storm.seed}"
    yield _line("", f"a step every {storm.step * 1000:g} ms, {given_up}{widened}")
    yield ""
    yield paint(_line("rooms", f"{'Success':>9}{'Failed':>9}{'pinned':>9}"), DIM, colour)
    yield _ends("aborted", result.aborted, colour)
    yield _ends("not aborted", result.not_aborted, colour)
    early = f"; {result.early} of the aborts came before the sender" if result.early else ""
    yield ""
    for title, text, is_bad in _findings(result):
        yield _line(title, paint(text, RED, colour) if is_bad else text)
    yield _line(
        "memory",
        f"at most {_megabytes(result.peak_memory.prefill)} (prefill), "
        f"{_megabytes(result.peak_memory.decode)} (decode){early}",
    )
    if verbose:
        yield from _details(result)


def _measures(storm: Storm) -> str:
    chunk = f"{counted(storm.chunks, 'chunk')} of {storm.chunk_bytes / (1 << 20):g} MiB"
    return f"{counted(storm.rooms, 'room')}, {storm.live} live, {chunk}"


def _ends(title: str, ends: Ends, colour: bool) -> str:
    pinned = f"{ends.pinned:>9}"
    return _line(title, f"{ends.succeeded:>9}{ends.failed:>9}{paint(pinned, RED, colour and ends.pinned > 0)}")


def _findings(result: StormResult) -> Iterator[tuple[str, str, bool]]:
    """Titles, what is said, and whether it is bad."""
    yield "pinned", _pinned(result), bool(result.pinned)
    flips = counted_statuses(flip.status for flip in result.flips)
    words = ", ".join(f"{count} by {status}" for status, count in flips.items())
    yield (
        "overwritten",
        f"Failed was written over {counted(len(result.flips), 'time')}: {words}" if flips else "none",
        False,
    )
    threads = result.dead_threads
    yield "dead threads", "; ".join(f"{dead.kind} {one_line(dead.reason)}" for dead in threads) or "none", bool(threads)
    zombies = ", ".join(f"{count} {status}" for status, count in counted_statuses(result.zombies.values()).items())
    yield (
        "zombies",
        f"{_listed(sorted(result.zombies))} back in the table: {zombies}" if zombies else "none",
        bool(zombies),
    )
    orphans = (
        (result.orphan_records, "failure record"),
        (result.orphan_exceptions, "exception"),
        (result.orphan_metadata, "room's metadata"),
    )
    yield "left behind", ", ".join(_left(len(rooms), noun) for rooms, noun in orphans if rooms) or "none", False
    wrong, integrity = result.integrity.wrong, result.integrity
    compared = f"{counted(integrity.compared, 'room')} compared, every byte"
    missed = (
        f"; {integrity.not_compared} not compared, for want of memory that was theirs alone"
        if integrity.not_compared
        else ""
    )
    bad = f": {_listed(sorted(wrong))} with {counted(sum(wrong.values()), 'wrong byte')}" if wrong else ": all right"
    yield "bytes", f"{compared}{bad if integrity.compared else ''}{missed}", bool(wrong)
    if result.not_started:
        yield "not let in", f"{counted(result.not_started, 'room')}: those before took too long", True
    if result.decode_waiting:
        yield "decode side", f"still waits for the pages of {counted(result.decode_waiting, 'room')}", True
    if result.errors:
        last = result.errors[0].strip().splitlines()[-1]
        yield "schedulers", f"{counted(len(result.errors), 'error')} raised; the first: {one_line(last)}", True


def _left(count: int, noun: str) -> str:
    if noun.endswith("metadata"):
        return f"metadata of {counted(count, 'room')}"
    return counted(count, noun)


def _pinned(result: StormResult) -> str:
    if not result.pinned:
        return "none" if result.settled else "none; the last rooms were still moving when the time was up"
    statuses = ", ".join(
        f"{count} {status}" for status, count in counted_statuses(room.status for room in result.pinned).items()
    )
    without = sum(not room.has_metadata for room in result.pinned)
    gone = "; of none" if without == len(result.pinned) else f"; of {len(result.pinned) - without}"
    settled = "" if result.settled else "; some may only have been slow: the time was up before all stood still"
    rooms = _listed([room.room for room in result.pinned])
    return f"{rooms}, for ever: {statuses}{gone} transfer_infos has metadata{settled}"


def _listed(rooms: Sequence[int]) -> str:
    shown = ", ".join(map(str, rooms[:_MOST_ROOMS]))
    more = f" and {len(rooms) - _MOST_ROOMS} more" if len(rooms) > _MOST_ROOMS else ""
    return f"{'room' if len(rooms) == 1 else 'rooms'} {shown}{more}"


def _details(result: StormResult) -> Iterator[str]:
    for dead in result.dead_threads:
        yield ""
        yield _line("dead thread", f"{dead.kind} {one_line(dead.name)}")
        yield from (f"{_EDGE}{_EDGE}{one_line(line)}" for line in dead.traceback.rstrip().splitlines())
    for error in result.errors:
        yield ""
        yield _line("raised", "")
        yield from (f"{_EDGE}{_EDGE}{one_line(line)}" for line in error.rstrip().splitlines())
    if result.log:
        yield ""
        yield _line("logged", "the last warnings and errors")
        yield from (f"{_EDGE}{_EDGE}{one_line(line)}" for line in result.log)


# -- rounds without aborts -----------------------------------------------------------------


def _throughput(result: Throughput, colour: bool) -> Iterator[str]:
    rounds = counted(len(result.seconds), "round")
    step = f"a step every {result.storm.step * 1000:g} ms"
    yield _line("no aborts", f"{rounds} of {_measures(result.storm)}, {step}")
    if result.seconds:
        yield _line("", f"{_spread(spread(result.gigabytes_per_second()), 'GB/s')}")
        yield _line("", f"{_spread(spread(result.rooms_per_second()), 'rooms/s')}")
    for fault in result.faults():
        yield _line("", paint(fault, RED, colour))


def _spread(found: Spread, unit: str) -> str:
    return f"{found.middle:.3g} {unit} (median; {found.least:.3g} to {found.greatest:.3g})"


def _comparison(result: Comparison, trees: Sequence[TreeResult], colour: bool) -> Iterator[str]:
    yield paint(f"{one_line(trees[1].root)} by {one_line(trees[0].root)}", BOLD, colour)
    pairs = f"{counted(len(result.ratios), 'pair')} of rounds, interleaved"
    yield _line("throughput", f"{result.median:.3f} times (median of {pairs})")
    interval = result.interval
    if interval is None:
        yield _line("", "too few pairs for an interval: six are the least")
    else:
        yield _line(
            "",
            f"{interval.low:.3f} to {interval.high:.3f} contains the true median "
            f"with {interval.coverage:.1%} confidence",
        )


def _verdict(result: DrillResult, colour: bool) -> Iterator[str]:
    for tree in result.trees:
        name = f"{one_line(tree.root)}: " if len(result.trees) > 1 else ""
        faults = tree.faults()
        if faults:
            yield paint(f"FAILED: {name}{'; '.join(faults)}", RED, colour)
        else:
            yield paint(
                f"PASSED: {name}every room ended, no thread died, and every compared byte is right", BOLD, colour
            )


def _megabytes(count: int) -> str:
    return f"{count / (1 << 20):.0f} MiB"
