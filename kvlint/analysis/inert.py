"""Statements that cannot matter to the room: on a worker's paths they are stepped over.

Most of a long worker computes addresses and sizes.  Evaluating all of it in
every state costs more than everything else, and changes none of them.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import dataclass

from kvlint.analysis import ir, walk
from kvlint.analysis.effects import is_bystander
from kvlint.semantics.module import Module

# Builtins that run or change what no analysis sees.
UNSEEN = frozenset({"exec", "eval", "compile", "globals", "locals", "vars", "__import__"})
_CHANGING = UNSEEN | {"setattr", "delattr", "super"}


@dataclass(frozen=True, slots=True)
class Inertness:
    """What makes code matter in one function.

    ``decisive`` are its locals that are followed, ``nones`` those that may be
    None (reading their attributes may raise); ``matters`` tells of an attribute
    whether it is the status or a followed room table.
    """

    module: Module
    decisive: frozenset[str]
    nones: frozenset[str]
    matters: Callable[[str], bool]

    def block(self, block: ir.Block) -> bool:
        """Whether nothing in ``block`` matters and control runs through it."""
        return all(self.statement(statement) for statement in block)

    def statement(self, statement: ir.Statement) -> bool:
        """Whether ``statement`` leaves every state as it is."""
        match statement:
            case ir.Evaluate(value=value):
                return self._harmless(value)
            case ir.Assign(targets=targets, value=value):
                return self._harmless(value) and all(self._target(target) for target in targets)
            case ir.Update(target=target, value=value):
                return self._harmless(value) and self._target(target)
            case ir.If(test=test, then=then, other=other):
                return self._harmless(test) and self.block(then) and self.block(other)
            case ir.With(items=items, body=body):
                contexts = all(target is None and self._harmless(context) for context, target in items)
                return contexts and self.block(body)
            case _:
                return False

    def _target(self, target: ir.Expression) -> bool:
        match target:
            case ir.Name(id=name):
                return name not in self.decisive
            case ir.Attribute(owner=owner, name=name):
                return not self.matters(name) and self._harmless(owner)
            case ir.Subscript(owner=ir.Attribute()):
                return self._harmless(target)
            case _:
                return False

    def _harmless(self, expression: ir.Expression) -> bool:
        match expression:
            case ir.Literal() | ir.Name() | ir.Closure():
                return True
            case ir.Attribute(owner=ir.Name(id=name)):
                return name not in self.nones
            case ir.Attribute(owner=owner):
                return self._harmless(owner)
            case ir.Subscript(owner=owner, key=key):
                is_table = isinstance(owner, ir.Attribute) and self.matters(owner.name)
                return not is_table and self._harmless(owner) and self._harmless(key)
            case ir.Call():
                return self._harmless_call(expression)
            case ir.Bind(name=name, value=value):
                return name not in self.decisive and self._harmless(value)
            case _:
                return all(self._harmless(part) for part in walk.parts_of(expression))

    def _harmless_call(self, call: ir.Call) -> bool:
        arguments = (*call.arguments, *(value for _, value in call.keywords))
        if not all(self._harmless(argument) for argument in arguments):
            return False
        match call.callee:
            case ir.Name(id=name) if name not in self.module.names and name not in self.decisive:
                return hasattr(builtins, name) and name not in _CHANGING
            case _:
                return is_bystander(call)


def names_of_none(function: ir.Function) -> frozenset[str]:
    """The locals of ``function`` that some assignment or default may set to None."""
    found = {name for name, default in function.defaults if _mentions_none(default)}
    for statement in walk.statements(function.body):
        if isinstance(statement, ir.Assign) and _mentions_none(statement.value):
            found |= {target.id for target in statement.targets if isinstance(target, ir.Name)}
    return frozenset(found)


def _mentions_none(expression: ir.Expression) -> bool:
    return any(isinstance(part, ir.Literal) and part.value is None for part in walk.subexpressions(expression))
