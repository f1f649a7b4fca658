"""Walking the IR without interpreting it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from kvlint.analysis import ir


def parts_of(expression: ir.Expression) -> tuple[ir.Expression, ...]:  # noqa: C901
    """The direct sub-expressions, in order of evaluation; a closure's body is not among them."""
    match expression:
        case ir.Name() | ir.Literal() | ir.Closure():  # most of them
            return ()
        case ir.Attribute(owner=owner):
            return (owner,)
        case ir.Subscript(owner=owner, key=key):
            return (owner, key)
        case ir.Call(callee=callee, arguments=arguments, keywords=keywords):
            return (callee, *arguments, *(value for _, value in keywords))
        case ir.Compare(first=first, rest=rest):
            return (first, *(value for _, value in rest))
        case ir.Logical(operands=operands):
            return operands
        case ir.Not(operand=operand):
            return (operand,)
        case ir.Arithmetic(left=left, right=right):
            return (left, right)
        case ir.Conditional(test=test, then=then, other=other):
            return (test, then, other)
        case ir.Bind(value=value):
            return (value,)
        case ir.Collection(items=items):
            return items
        case ir.Mapping(items=pairs):
            return tuple(part for pair in pairs for part in pair)
        case ir.Repeated(parts=parts) | ir.Opaque(parts=parts):
            return parts
        case _:
            assert_never(expression)


def expressions_of(statement: ir.Statement) -> tuple[ir.Expression, ...]:  # noqa: C901
    """The expressions a statement evaluates itself, those of nested blocks left out."""
    match statement:
        case ir.Assign(targets=targets, value=value):
            return (value, *targets)
        case ir.Update(target=target, value=value):
            return (target, value)
        case ir.Evaluate(value=value):
            return (value,)
        case ir.If(test=test) | ir.While(test=test) | ir.Assert(test=test):
            return (test,)
        case ir.For(target=target, iterable=iterable):
            return (iterable, target)
        case ir.With(items=items):
            return tuple(part for pair in items for part in pair if part is not None)
        case ir.Return(value=value) | ir.Raise(value=value):
            return () if value is None else (value,)
        case ir.Delete(targets=targets):
            return targets
        case ir.Match(subject=subject, cases=cases):
            return (subject, *(case.guard for case in cases if case.guard is not None))
        case ir.Try() | ir.Break() | ir.Continue() | ir.Define() | ir.Forget():
            return ()
        case _:
            assert_never(statement)


def blocks_of(statement: ir.Statement) -> tuple[ir.Block, ...]:
    """The blocks nested in a statement; a nested function's body is not among them."""
    match statement:
        case ir.If(then=then, other=other):
            return (then, other)
        case ir.While(body=body, other=other) | ir.For(body=body, other=other):
            return (body, other)
        case ir.Try(body=body, handlers=handlers, other=other, final=final):
            return (body, *(handler.body for handler in handlers), other, final)
        case ir.With(body=body):
            return (body,)
        case ir.Match(cases=cases):
            return tuple(case.body for case in cases)
        case _:
            return ()


def statements(block: ir.Block) -> Iterator[ir.Statement]:
    """Every statement of a block, nested blocks included, in source order."""
    for statement in block:
        yield statement
        for nested in blocks_of(statement):
            yield from statements(nested)


def subexpressions(expression: ir.Expression) -> Iterator[ir.Expression]:
    """``expression`` and everything in it, closures' bodies left out."""
    pending = [expression]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(parts_of(current)))


def expressions(block: ir.Block) -> Iterator[ir.Expression]:
    """Every expression evaluated in a block, nested blocks included."""
    for statement in statements(block):
        for expression in expressions_of(statement):
            yield from subexpressions(expression)


def nested_functions(block: ir.Block) -> Iterator[ir.Function]:
    """Functions defined directly in a block, lambdas included."""
    for statement in statements(block):
        if isinstance(statement, ir.Define):
            yield statement.function
        for expression in expressions_of(statement):
            for part in subexpressions(expression):
                if isinstance(part, ir.Closure):
                    yield part.function


def text_of(expression: ir.Expression) -> str | None:
    """``a.b.c`` for a chain of names, None for anything else."""
    match expression:
        case ir.Name(id=name):
            return name
        case ir.Attribute(owner=owner, name=name):
            base = text_of(owner)
            return None if base is None else f"{base}.{name}"
        case _:
            return None
