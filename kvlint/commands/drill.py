"""``kvlint drill``: an abort storm over a tree's real NIXL backend."""

from __future__ import annotations

import math
import os
import sys
from typing import TYPE_CHECKING

import click

from kvlint.commands.progress_line import ProgressLine
from kvlint.commands.streams import colour_for, emit, say
from kvlint.commands.tree_root import tree_root

if TYPE_CHECKING:
    from kvlint.drill.results import DrillResult
    from kvlint.drill.run import Moment
    from kvlint.drill.storm import Storm

_MIB = 1 << 20
_NEEDED = {
    "torch": "torch",
    "nixl": "nixl",
    "zmq": "pyzmq",
    "aiohttp": "aiohttp",
    "requests": "requests",
    "psutil": "psutil",
    "numpy": "numpy",
}


@click.command(short_help="Run an abort storm over real NIXL (executes a tree's code).")
@click.argument("root", required=False, type=click.Path(), metavar="[ROOT]")
@click.option("--installed", metavar="NAME", help="Drill an installed distribution; its backend is run.")
@click.option("--compare", type=click.Path(), metavar="OTHER_ROOT", help="Drill another tree, too; compare them.")
@click.option(
    "--seed",
    type=click.IntRange(0, (1 << 63) - 1),
    default=1,
    metavar="N",
    help="What the storm's plan follows from.  [default: 1]",
)
@click.option("--rooms", type=click.IntRange(1, 100_000), default=100, metavar="N", help="Rooms.  [default: 100]")
@click.option("--live", type=click.IntRange(1, 64), default=4, metavar="N", help="Rooms at a time.  [default: 4]")
@click.option("--chunks", type=click.IntRange(1, 1024), default=8, metavar="N", help="Chunks of a room.  [default: 8]")
@click.option(
    "--chunk-mib",
    type=click.FloatRange(min=0, min_open=True, max=1024),
    default=2.0,
    metavar="MIB",
    help="Size of a chunk.  [default: 2]",
)
@click.option(
    "--step-ms",
    type=click.FloatRange(0, 10_000),
    default=10.0,
    metavar="MS",
    help="How long a scheduler sleeps after each step.  [default: 10]",
)
@click.option(
    "--abort-probability",
    type=click.FloatRange(0, 1),
    default=0.6,
    metavar="P",
    help="How likely a room is given up.  [default: 0.6]",
)
@click.option(
    "--half-aborts",
    is_flag=True,
    help="Aborts that come before the prefill side's sender reach the decode side only.",
)
@click.option(
    "--transfer-ms",
    type=click.FloatRange(0, 10_000),
    default=0.0,
    metavar="MS",
    help="Have each transfer seem to take at least this long.  [default: 0]",
)
@click.option(
    "--device",
    type=click.Choice(("auto", "cpu", "cuda")),
    default="auto",
    help="Where the pages are: in host memory or on a GPU; auto takes a GPU if there is one.  [default: auto]",
)
@click.option("--one-process", is_flag=True, help="Both sides in one process, for sandboxes without CUDA IPC.")
@click.option("--workers", type=click.IntRange(1, 64), metavar="N", help="Transfer workers.  [default: the release's]")
@click.option("--backend", default="UCX", metavar="PLUGIN", help="NIXL's plugin.  [default: UCX]")
@click.option(
    "--settle",
    type=click.FloatRange(0.1, 60),
    default=1.0,
    metavar="SECONDS",
    help="What has not moved for this long, twice, is pinned.  [default: 1]",
)
@click.option(
    "--rounds",
    type=click.IntRange(0, 1000),
    metavar="N",
    help="Measure throughput in N rounds without aborts; 0: do not.  [default: 5, with --compare 10]",
)
@click.option("--no-storm", is_flag=True, help="Measure throughput only.")
@click.option(
    "--output-format", type=click.Choice(("text", "json")), default="text", help="How it is told.  [default: text]"
)
@click.option("--output", type=click.Path(), metavar="FILE", help="Write the result to FILE.")
@click.option("-q", "--quiet", is_flag=True, help="Print the result only.")
@click.option("-v", "--verbose", is_flag=True, help="Tell tracebacks, and what the tree has logged.")
@click.pass_context
def drill(
    ctx: click.Context,
    /,
    *,
    root: str | None,
    installed: str | None,
    compare: str | None,
    rounds: int | None,
    no_storm: bool,
    device: str,
    one_process: bool,
    workers: int | None,
    backend: str,
    settle: float,
    output_format: str,
    output: str | None,
    quiet: bool,
    verbose: bool,
    **measures: float,
) -> None:
    """Run an abort storm over the NIXL backend of an SGLang tree (the current folder if no ROOT is given).

    THIS EXECUTES CODE OF THE TREE, with your rights, in processes of its own: drill only what you would run anyway.
    Linux only; needs the extra `drill` (torch, nixl, pyzmq, aiohttp, requests, psutil), but neither a GPU nor a
    network card.

    A prefill and a decode process of the tree's own managers, threads, senders and receivers move torch tensors over
    loopback, and clients give up at random moments. What users would see is told: rooms that hang, threads that die,
    bytes that are wrong, and how fast it is.

    Exits with 0 if nothing is wrong, 1 if rooms are pinned, came back, failed by themselves or never got their pages,
    threads or schedulers died, or bytes are wrong, 2 if the command failed.
    """
    _require()
    from kvlint.config import KvlintError
    from kvlint.drill.drill import Request
    from kvlint.drill.drill import drill as drilled
    from kvlint.drill.parent import DrillError

    if not math.isfinite(settle):
        raise click.UsageError(f"--settle {settle}: give a number of seconds")
    _check_output(output)
    storm = _storm(measures)
    if rounds is None:
        rounds = 5 if compare is None else 10
    if no_storm and not rounds:
        raise click.UsageError("--no-storm with --rounds 0 leaves nothing to do")
    request = Request(
        roots=tuple(path for path in (tree_root(root, installed), compare) if path is not None),
        storm=None if no_storm else storm,
        measures=storm,
        rounds=rounds,
        device=device,
        one_process=one_process,
        workers=workers,
        backend=backend,
        settle=settle,
    )
    try:
        with DrillProgress(quiet=quiet) as progress:
            result = drilled(request, progress)
    except DrillError as error:
        if verbose and error.details:
            say(error.details)
        raise KvlintError(str(error) if verbose or not error.details else f"{error} (--verbose tells more)") from error
    emit(_rendered(result, output_format, output, verbose), output)
    ctx.exit(1 if result.has_faults else 0)


# -- what is asked for -------------------------------------------------------------------


def _check_output(output: str | None) -> None:
    """Raise click.UsageError where a result could not be written: after a drill it would be lost."""
    folder = os.path.dirname(output or "") or os.curdir
    if output is not None and (not os.access(folder, os.W_OK) or os.path.isdir(output)):
        raise click.UsageError(f"--output {output}: nothing can be written there")


def _storm(measures: dict[str, float]) -> Storm:
    """The storm that options describe.

    Raises:
        click.UsageError: A chunk cannot be cut into pages.
    """
    from kvlint.drill.memory import PIECES, WORD
    from kvlint.drill.storm import Storm

    for name, value in measures.items():
        if not math.isfinite(value):
            raise click.UsageError(f"--{name.replace('_', '-')} {value}: give a number")
    chunk_bytes = round(measures["chunk_mib"] * _MIB)
    if not chunk_bytes or chunk_bytes % (PIECES * WORD):
        raise click.UsageError(
            f"--chunk-mib {measures['chunk_mib']:g}: a chunk of {chunk_bytes} bytes cannot be cut into {PIECES} pieces "
            f"of whole words; give a multiple of {PIECES * WORD / _MIB:g}"
        )
    return Storm(
        seed=int(measures["seed"]),
        rooms=int(measures["rooms"]),
        live=int(measures["live"]),
        chunks=int(measures["chunks"]),
        chunk_bytes=chunk_bytes,
        step=measures["step_ms"] / 1000,
        abort_probability=measures["abort_probability"],
        transfer=measures["transfer_ms"] / 1000,
        early_reaches_prefill=not measures["half_aborts"],
    )


def _require() -> None:
    """Raise click.UsageError where a drill cannot be run."""
    if sys.platform != "linux":
        raise click.UsageError("kvlint drill needs Linux: NIXL is made for no other system")
    from importlib.util import find_spec

    missing = [distribution for module, distribution in _NEEDED.items() if find_spec(module) is None]
    if missing:
        raise click.UsageError(f"kvlint drill needs {', '.join(missing)}: pip install 'flake8-kvlint[drill]'")


# -- the work ------------------------------------------------------------------------------


class DrillProgress(ProgressLine):
    """A line that says how far a drill is."""

    def __call__(self, moment: Moment) -> None:
        """Note how far it is."""
        rooms = f": {moment.done} of {moment.rooms} rooms done, {moment.started} started" if moment.rooms else ""
        self.tell(f"{moment.what}{rooms}")


def _rendered(result: DrillResult, output_format: str, output: str | None, verbose: bool) -> str:
    if output_format == "json":
        from kvlint.drill.report import json_report

        return json_report.render(result)
    from kvlint.drill.report import text

    return text.render(result, colour=colour_for(output), verbose=verbose)
