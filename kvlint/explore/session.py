"""What the process that explores a tree does with a request."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from kvlint.explore.control import Control
from kvlint.explore.events import Emit, Found, Loaded, Progress, Replayed
from kvlint.explore.exploration import BOUNDS, Plan, explore_scenario
from kvlint.explore.nixl_backend import NixlBackend
from kvlint.explore.program import Load, Program
from kvlint.explore.replay import BadToken, again, schedule
from kvlint.explore.request import Request
from kvlint.explore.scenarios import Scenario, scenario
from kvlint.explore.search.limits import Limits
from kvlint.explore.substitutes import Clock, substitutes
from kvlint.explore.switching import Greenlets, Threads
from kvlint.loading import load_backend


def run(request: Request, emit: Emit) -> None:
    """Do what is asked for, and tell it as it happens.

    Raises:
        LoadError: The tree cannot be loaded.
        BadToken: The token is none, or of a scenario that there is not.
    """
    root = Path(request.root)
    if request.replay is not None:
        emit(_replayed(root, request.replay, emit, threads=request.threads))
        return
    plan = Plan(
        scheduler=request.scheduler,
        limits=Limits(request.seconds, request.states, request.steps),
        complete=request.complete,
        bounds=BOUNDS if request.preemptions is None else tuple(range(request.preemptions + 1)),
        strategy=request.strategy,
    )
    _tell_what_is_loaded(root, emit)
    for name in request.scenarios:
        emit(Progress(name))

        def seen(states: int, runs: int, seconds: float, name: str = name) -> None:
            emit(Progress(name, states, runs, seconds))

        situation = scenario(name)
        emit(Found(explore_scenario(tree_loader(root, situation), situation, plan, seen, emit.watch)))


def _tell_what_is_loaded(root: Path, emit: Emit) -> None:
    control = Control(Greenlets())
    backend = load_backend(root, substitutes=substitutes(control, Clock()))
    emit(Loaded(backend.version, backend.digest, tuple(backend.loaded), tuple(backend.stubbed)))


def _replayed(root: Path, text: str, emit: Emit, *, threads: bool) -> Replayed:
    made = schedule(text)
    try:
        situation = scenario(made.scenario)
    except KeyError:
        raise BadToken(f"the token is of a scenario that there is not: {made.scenario}") from None
    switching = Threads() if threads else Greenlets()
    program = Program(tree_loader(root, situation), situation, switching, scheduler=made.scheduler)
    emit.watch(lambda: program.control.steps)
    _tell_what_is_loaded(root, emit)
    shown, confirmed = again(program, made)
    return Replayed(shown, confirmed, threads)


def tree_loader(root: Path, scenario: Scenario) -> Load:
    """Loads the NIXL backend of a tree."""
    return partial(NixlBackend, root, scenario.chunks)
