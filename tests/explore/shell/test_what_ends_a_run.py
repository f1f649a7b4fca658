"""What comes up in a thread of the tree and says nothing about it ends the run, and is no death of the thread."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NoReturn

import pytest

from kvlint.explore.actor import Actor
from kvlint.explore.control import Control
from kvlint.explore.operations import Choice
from kvlint.explore.switching import Greenlets, Switching, Threads
from kvlint.explore.watchdog import Stalled
from kvlint.loading import UnforeseenUse

PROBLEMS = [MemoryError("no more"), Stalled("it stands"), UnforeseenUse("zmq.X", "it was called", None)]


class Nothing:
    """A strategy that ends the run at once."""

    def __init__(self) -> None:
        self.script: list[Choice] = []
        self.histories: list[int] = []

    def choose(self, control: Control) -> Choice | None:
        return None


def controlled(switching: Switching, *bodies: Callable[[Control], None]) -> Control:
    control = Control(switching)
    control.actors = [
        Actor(number, f"actor {number}", functools.partial(body, control)) for number, body in enumerate(bodies)
    ]
    control.keep()
    return control


def raising(problem: BaseException) -> Callable[[Control], None]:
    def body(control: Control) -> NoReturn:
        raise problem

    return body


def waiting(control: Control) -> None:
    resource = control.resource("something")
    control.sharing.always_stop(resource)
    control.before(resource, "use", None, True)
    control.after(None)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)
@pytest.mark.parametrize("switching", [Greenlets, Threads])
def test_it_comes_out_of_the_run(switching: type[Greenlets] | type[Threads], problem: BaseException) -> None:
    # One actor waits by then, and one has not begun.
    control = controlled(switching(), waiting, raising(problem), waiting)
    for _ in range(2):
        with pytest.raises(type(problem)) as caught:
            control.run(Nothing())
        assert caught.value is problem
        assert [actor.died for actor in control.actors] == [None] * 3


def test_it_comes_out_of_the_end_of_a_run() -> None:
    problem = Stalled("it stands")

    def stubborn(control: Control) -> None:
        try:
            waiting(control)
        except BaseException:
            raise problem from None

    control = controlled(Greenlets(), stubborn, waiting)
    with pytest.raises(Stalled):
        control.run(Nothing())
    assert all(actor.finished for actor in control.actors)


def test_another_exception_is_the_end_of_its_thread() -> None:
    error = ValueError("odd")
    control = controlled(Greenlets(), raising(error), waiting)
    control.run(Nothing())
    assert [actor.died for actor in control.actors] == [error, None]
