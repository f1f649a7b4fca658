"""A session that loads a tree and runs its worker once per scenario, in place of a search; what it finds is made up."""

from __future__ import annotations

from pathlib import Path

from loading import driving

from kvlint.explore.events import Emit, Failed, FailureKind, Found, Loaded, Progress, Replayed
from kvlint.explore.request import Request
from kvlint.loading import load_backend

from . import results

#: A token that only the fake knows what to do with.
BROKEN = "broken"


def run(request: Request, emit: Emit) -> None:
    """The whole session."""
    backend = load_backend(Path(request.root), substitutes={"queue": driving.QUEUE})
    emit(Loaded(backend.version, backend.digest, tuple(backend.loaded), backend.stubbed))
    if request.replay is not None:
        _replay(request, emit)
        return
    driver = driving.Driver(backend)
    manager = backend.manager
    manager.steps = 0
    emit.watch(lambda: manager.steps)
    for name in request.scenarios:
        emit(Progress(name))
        manager.scenario = name
        sender = backend.make_sender(7)
        backend.begin(sender, 1)
        driver.listen(backend.metadata_frames(7, 1))
        backend.send(sender, 0, True)
        driver.work()
        emit(Found(results.violated(name) if name == "transfer-error" else results.scenario(name, request)))


def _replay(request: Request, emit: Emit) -> None:
    match request.replay:
        case "bad":
            emit(Failed(FailureKind.TOKEN, "--replay bad: this is no token"))
        case "silent":
            return
        case "broken":
            raise ZeroDivisionError("the session is broken")
        case _:
            emit(Replayed(results.WITNESS, request.replay == results.WITNESS.token, request.threads))
