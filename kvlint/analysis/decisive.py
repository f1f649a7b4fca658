"""Which local variables of a function can matter to the room: only these are followed on a worker's paths.

A long worker has dozens of locals (pointers, handles, timings).  Following all
of them multiplies the states of a path for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.analysis import ir, walk

_TAKING_OVER = frozenset({"put", "put_nowait", "submit", "append", "appendleft", "add", "insert", "push", "enqueue"})


def decisive_names(function: ir.Function) -> frozenset[str]:
    """Names read by a decision, a call on an object or a returned value, and what those are computed from."""
    seeds: set[str] = set(function.shared)
    flows: list[tuple[set[str], set[str]]] = []
    for nested in walk.nested_functions(function.body):
        seeds |= _names_in_function(nested)
    for statement in walk.statements(function.body):
        seeds |= _seeds(statement)
        for targets, sources in _flows(statement):
            flows.append((targets, sources))
    changed = True
    while changed:
        changed = False
        for targets, sources in flows:
            if targets & seeds and not sources <= seeds:
                seeds |= sources
                changed = True
    return frozenset(seeds)


def assigned_names(function: ir.Function) -> frozenset[str]:
    """Every name the function's own body binds, and those of ``*args`` and ``**kwargs``."""
    found: set[str] = {name for name in (function.rest, function.options) if name is not None}
    for statement in walk.statements(function.body):
        for targets, _ in _flows(statement):
            found |= targets
        if isinstance(statement, ir.Define):
            found.add(statement.function.name)
        if isinstance(statement, ir.Match):
            for case in statement.cases:
                found |= _captured(case.pattern)
        for expression in walk.expressions_of(statement):
            for part in walk.subexpressions(expression):
                if isinstance(part, ir.Repeated):
                    found |= part.names
    return frozenset(found - function.shared)


def _captured(pattern: ir.Pattern) -> set[str]:
    found = set(pattern.bound)
    if pattern.name is not None:
        found.add(pattern.name)
    return found.union(*(_captured(part) for part in pattern.parts))


def _names(expression: ir.Expression) -> set[str]:
    return {part.id for part in walk.subexpressions(expression) if isinstance(part, ir.Name)}


def _names_in_function(function: ir.Function) -> set[str]:
    found = {part.id for part in walk.expressions(function.body) if isinstance(part, ir.Name)}
    for nested in walk.nested_functions(function.body):
        found |= _names_in_function(nested)
    return found


def _seeds(statement: ir.Statement) -> set[str]:  # noqa: C901 - one arm a kind
    found: set[str] = set()
    match statement:
        case ir.If(test=test) | ir.While(test=test) | ir.Assert(test=test):
            found |= _names(test)
        case ir.For(iterable=iterable):
            found |= _names(iterable)
        case ir.Match(subject=subject, cases=cases):
            found |= _names(subject)
            for case in cases:
                found |= _names(case.guard) if case.guard is not None else set()
        case ir.Return(value=value) | ir.Raise(value=value):
            found |= _names(value) if value is not None else set()
        case ir.Delete(targets=targets):
            for target in targets:
                found |= _names(target)
        case ir.Assign(targets=targets, value=value):
            stores = [target for target in targets if isinstance(target, ir.Subscript | ir.Attribute)]
            for target in stores:
                found |= _names(target) | _names(value)  # what is stored may be the status
        case _:
            pass
    for expression in walk.expressions_of(statement):
        for part in walk.subexpressions(expression):
            found |= _seeds_of_expression(part)
    return found


def _seeds_of_expression(part: ir.Expression) -> set[str]:
    match part:
        case ir.Conditional(test=test):
            return _names(test)
        case ir.Call(callee=callee, arguments=arguments, keywords=keywords):
            passed = [*arguments, *(value for _, value in keywords)]
            if isinstance(callee, ir.Name):
                return {callee.id} | {argument.id for argument in passed if isinstance(argument, ir.Name)}
            if isinstance(callee, ir.Attribute) and (_on_object(callee) or callee.name in _TAKING_OVER):
                return _names(callee).union(*(_names(argument) for argument in passed))
            return _names(callee)
        case ir.Subscript(owner=ir.Attribute(), key=key):
            return _names(key)
        case _:
            return set()


def _on_object(callee: ir.Attribute) -> bool:
    dotted = walk.text_of(callee)
    return dotted is not None and not any(part.lower() in {"logger", "log", "logging"} for part in dotted.split("."))


def _flows(statement: ir.Statement) -> Iterator[tuple[set[str], set[str]]]:  # noqa: C901 - one arm a kind
    """(targets, sources) of every binding a statement makes."""
    match statement:
        case ir.Assign(targets=targets, value=value):
            for target in targets:
                yield _bound(target), _names(value)
        case ir.Update(target=target, value=value):
            yield _bound(target), _names(value) | _names(target)
        case ir.For(target=target, iterable=iterable):
            yield _bound(target), _names(iterable)
        case ir.With(items=items):
            for context, target_ in items:
                if target_ is not None:
                    yield _bound(target_), _names(context)
        case ir.Try(handlers=handlers):
            for handler in handlers:
                if handler.name is not None:
                    yield {handler.name}, set()
        case _:
            pass
    for expression in walk.expressions_of(statement):
        for part in walk.subexpressions(expression):
            if isinstance(part, ir.Bind):
                yield {part.name}, _names(part.value)


def _bound(target: ir.Expression) -> set[str]:
    match target:
        case ir.Name(id=name):
            return {name}
        case ir.Collection(items=items):
            return set().union(*(_bound(item) for item in items)) if items else set()
        case ir.Opaque(parts=parts):
            return set().union(*(_bound(part) for part in parts)) if parts else set()
        case _:
            return set()
