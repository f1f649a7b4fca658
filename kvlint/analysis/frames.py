"""Activations of functions, and the ways in which control leaves a block."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from kvlint.analysis.liveness import Liveness
from kvlint.analysis.states import Env, State
from kvlint.analysis.values import Causes
from kvlint.semantics.hierarchy import ClassInfo
from kvlint.semantics.module import Module

if TYPE_CHECKING:
    from kvlint.analysis import ir
    from kvlint.analysis.recall import Evaluations

ANY: Final = "*"


class GaveUp(Exception):
    """The code has more states than the analysis follows; nothing is known of it."""


class After(Struct, frozen=True):
    """Whether the room can still be concluded once control leaves a block in each way."""

    normal: bool = False
    breaking: bool = False
    continuing: bool = False
    returning: bool = False
    raising: bool = False


class Raised(Struct, frozen=True):
    """An exception on its way: its class name, the state, and what decided it.

    The name is ``?`` where a call of unknown code may raise anything, ANY where
    a ``raise`` certainly does and the class cannot be told.
    """

    name: str
    state: State
    causes: Causes


class Frame(Struct, eq=False):
    """One activation of a function: where its code stands and what catches what it raises."""

    module: Module
    defined_in: ClassInfo | None
    node: ast.AST
    number: int
    raised: list[Raised] | None = None  # the innermost try body, None outside of any
    after_call: bool = False  # whether a conclusion can follow the statement being run
    caught: str = "?"
    caught_as: str | None = None  # the variable that holds what was caught
    locals: frozenset[str] = frozenset()  # every name the function binds
    volatile: frozenset[str] = frozenset()  # those that nested functions may bind again
    enclosing: tuple[tuple[int, Env], ...] = ()  # activations whose locals the code sees, outermost first
    decisive: frozenset[str] | None = None  # the locals to follow, None: all
    live: Liveness | None = None  # which of them are still read, None: all
    handled: frozenset[str] | None = None  # the locals read once the innermost try has caught something
    receiver: str | None = None  # the variable that holds the object the method runs on
    evaluations: dict[ir.Expression, Evaluations] = field(default_factory=dict)  # of activations that see the same


def forget(state: State, live: frozenset[str], receiver: str | None) -> State:
    """``state`` with every local that is not ``live`` unknown."""
    env = state.env.keep(live, receiver)
    return state if env is state.env else state.within(env)
