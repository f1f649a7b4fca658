"""Lowering of a function's syntax tree to the IR; the last place of the analysis that looks at syntax nodes."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from kvlint.analysis import ir
from kvlint.semantics.class_body import parameters
from kvlint.semantics.module import Function, children, statements_in
from kvlint.semantics.world import World

_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


def lower_function(node: Function | ast.Lambda) -> ir.Function:
    """The IR of one function or lambda, its nested functions included."""
    if isinstance(node, ast.Lambda):
        body: ir.Block = (ir.Return(lower_expression(node.body), node),)
        return _function("<lambda>", node, body, frozenset(), False)
    shared = frozenset(
        name
        for inner in statements_in(node.body)
        if isinstance(inner, ast.Global | ast.Nonlocal)
        for name in inner.names
    )
    return _function(node.name, node, lower_block(node.body), shared, _yields(node.body))


def lowered(world: World, node: Function | ast.Lambda) -> ir.Function:
    """``lower_function``, once per function and world."""
    key = ("ir", node)
    known = world.memo.get(key)
    if not isinstance(known, ir.Function):
        known = world.memo[key] = lower_function(node)
    return known


def _function(
    name: str, node: Function | ast.Lambda, body: ir.Block, shared: frozenset[str], generates: bool
) -> ir.Function:
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = list(zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True))
    keyword = [(arg, value) for arg, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value]
    return ir.Function(
        name=name,
        parameters=tuple(argument.arg for argument in parameters(node)),  # type: ignore[arg-type]
        positional=len(positional),
        nameless=len(arguments.posonlyargs),
        defaults=tuple((arg.arg, lower_expression(value)) for arg, value in [*defaults, *keyword]),
        rest=arguments.vararg.arg if arguments.vararg else None,
        options=arguments.kwarg.arg if arguments.kwarg else None,
        body=body,
        is_generator=generates,
        shared=shared,
        at=node,
    )


def _yields(body: Iterable[ast.AST]) -> bool:
    pending = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            pending.extend(children(node))
    return False


def lower_block(body: Iterable[ast.stmt]) -> ir.Block:
    """The IR of a statement list; ``pass``, docstrings and bare annotations vanish."""
    lowered = (lower_statement(statement) for statement in body)
    return tuple(statement for statement in lowered if statement is not None)


def lower_statement(node: ast.stmt) -> ir.Statement | None:  # noqa: C901 - one arm a statement kind
    """The IR of one statement, None where it does nothing."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.Global() | ast.Nonlocal() | ast.AnnAssign(value=None):
            return None
        case ast.Expr(value=value):
            return ir.Evaluate(lower_expression(value), node)
        case ast.Assign(targets=targets, value=value):
            return ir.Assign(tuple(lower_expression(target) for target in targets), lower_expression(value), node)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            return ir.Assign((lower_expression(target),), lower_expression(value), node)
        case ast.AugAssign(target=target, op=operator, value=value):
            return ir.Update(lower_expression(target), type(operator).__name__, lower_expression(value), node)
        case ast.If(test=test, body=then, orelse=other):
            return ir.If(lower_expression(test), lower_block(then), lower_block(other), node)
        case ast.While(test=test, body=body, orelse=other):
            return ir.While(lower_expression(test), lower_block(body), lower_block(other), node)
        case (
            ast.For(target=target, iter=iterable, body=body, orelse=other)
            | ast.AsyncFor(target=target, iter=iterable, body=body, orelse=other)
        ):
            return ir.For(
                lower_expression(target), lower_expression(iterable), lower_block(body), lower_block(other), node
            )
        case ast.Try() | ast.TryStar():
            return _try(node)
        case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
            pairs = tuple(
                (
                    lower_expression(item.context_expr),
                    None if item.optional_vars is None else lower_expression(item.optional_vars),
                )
                for item in items
            )
            return ir.With(pairs, lower_block(body), node)
        case ast.Return(value=value):
            return ir.Return(None if value is None else lower_expression(value), node)
        case ast.Raise(exc=value):
            return ir.Raise(None if value is None else lower_expression(value), node)
        case ast.Break():
            return ir.Break(node)
        case ast.Continue():
            return ir.Continue(node)
        case ast.Delete(targets=targets):
            return ir.Delete(tuple(lower_expression(target) for target in targets), node)
        case ast.Assert(test=test):
            return ir.Assert(lower_expression(test), node)
        case ast.Match(subject=subject, cases=cases):
            return ir.Match(lower_expression(subject), tuple(_case(case) for case in cases), node)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            if node.decorator_list:
                return ir.Forget(frozenset({node.name}), node)
            return ir.Define(lower_function(node), node)
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return ir.Forget(frozenset(alias.asname or alias.name.partition(".")[0] for alias in names), node)
        case _:  # a class, or `type name = …` of Python 3.12
            name: str | ast.Name = getattr(node, "name")  # noqa: B009 - the type checker knows no such statement
            return ir.Forget(frozenset({name if isinstance(name, str) else name.id}), node)


def _try(node: ast.Try | ast.TryStar) -> ir.Try:
    handlers = tuple(
        ir.Handler(_exception_names(handler.type), handler.name, lower_block(handler.body), handler)
        for handler in node.handlers
    )
    return ir.Try(lower_block(node.body), handlers, lower_block(node.orelse), lower_block(node.finalbody), node)


def _exception_names(node: ast.expr | None) -> tuple[str, ...]:
    match node:
        case None:
            return ()
        case ast.Tuple(elts=elements):
            return tuple(name for element in elements for name in _exception_names(element))
        case _:
            return (ast.unparse(node).rpartition(".")[2],)


def _case(case: ast.match_case) -> ir.Case:
    guard = None if case.guard is None else lower_expression(case.guard)
    return ir.Case(_pattern(case.pattern), guard, lower_block(case.body), case.pattern)


def _pattern(node: ast.pattern) -> ir.Pattern:
    match node:
        case ast.MatchValue(value=value):
            return ir.Pattern("value", lower_expression(value))
        case ast.MatchSingleton(value=value):
            return ir.Pattern("is", ir.Literal(value, node))
        case ast.MatchAs(pattern=None, name=name):
            return ir.Pattern("any", name=name)
        case ast.MatchAs(pattern=ast.pattern() as inner, name=name):
            return ir.Pattern("either", parts=(_pattern(inner),), name=name)
        case ast.MatchOr(patterns=patterns):
            return ir.Pattern("either", parts=tuple(_pattern(pattern) for pattern in patterns))
        case ast.MatchSequence(patterns=patterns) if not any(isinstance(p, ast.MatchStar) for p in patterns):
            return ir.Pattern("sequence", parts=tuple(_pattern(pattern) for pattern in patterns))
        case _:
            bound = frozenset(
                name
                for inner in ast.walk(node)
                for name in (getattr(inner, "name", None), getattr(inner, "rest", None))
                if isinstance(name, str)
            )
            first = (
                _pattern(node.patterns[0])
                if isinstance(node, ast.MatchSequence) and not isinstance(node.patterns[0], ast.MatchStar)
                else None
            )
            return ir.Pattern("other", parts=() if first is None else (first,), bound=bound)


def lower_expression(node: ast.expr) -> ir.Expression:  # noqa: C901 - one arm an expression kind
    """The IR of one expression; ``await`` vanishes (what is awaited runs here)."""
    match node:
        case ast.Constant(value=value):
            if value is Ellipsis or isinstance(value, complex):
                return ir.Opaque((), node)
            return ir.Literal(value, node)
        case ast.Name(id=name):
            return ir.Name(name, node)
        case ast.Attribute(value=owner, attr=name):
            return ir.Attribute(lower_expression(owner), name, node)
        case ast.Subscript(value=owner, slice=key):
            return ir.Subscript(lower_expression(owner), lower_expression(key), node)
        case ast.Call():
            return _call(node)
        case ast.Compare(left=left, ops=operators, comparators=others):
            rest = tuple(
                (_OPERATORS[type(operator)], lower_expression(other))
                for operator, other in zip(operators, others, strict=True)
            )
            return ir.Compare(lower_expression(left), rest, node)
        case ast.BoolOp(op=operator, values=values):
            return ir.Logical(isinstance(operator, ast.Or), tuple(lower_expression(value) for value in values), node)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ir.Not(lower_expression(operand), node)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return ir.Literal(-number, node)
        case ast.BinOp(left=left, op=operator, right=right):
            return ir.Arithmetic(type(operator).__name__, lower_expression(left), lower_expression(right), node)
        case ast.IfExp(test=test, body=then, orelse=other):
            return ir.Conditional(lower_expression(test), lower_expression(then), lower_expression(other), node)
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            return ir.Bind(name, lower_expression(value), node)
        case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items) if not any(
            isinstance(item, ast.Starred) for item in items
        ):
            return ir.Collection(type(node).__name__.lower(), tuple(lower_expression(item) for item in items), node)
        case ast.Dict(keys=keys, values=values) if None not in keys:
            pairs = zip(keys, values, strict=True)
            return ir.Mapping(
                tuple((lower_expression(key), lower_expression(value)) for key, value in pairs if key), node
            )
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            return _comprehension(node)
        case ast.Lambda():
            return ir.Closure(lower_function(node), node)
        case ast.Await(value=value):
            return lower_expression(value)
        case ast.Starred(value=value):
            return ir.Opaque((lower_expression(value),), node)
        case _:
            parts = (child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))
            return ir.Opaque(tuple(lower_expression(part) for part in parts), node)


def _call(node: ast.Call) -> ir.Call:
    spread = any(isinstance(argument, ast.Starred) for argument in node.args) or any(
        keyword.arg is None for keyword in node.keywords
    )
    named = [(keyword.arg, lower_expression(keyword.value)) for keyword in node.keywords if keyword.arg]
    unnamed = [lower_expression(keyword.value) for keyword in node.keywords if not keyword.arg]
    arguments = (*(lower_expression(argument) for argument in node.args), *unnamed)
    return ir.Call(lower_expression(node.func), arguments, tuple(named), spread, node)


def _comprehension(node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> ir.Repeated:
    parts: list[ast.expr] = []
    names: set[str] = set()
    for generator in node.generators:
        parts.extend([generator.iter, *generator.ifs])
        names |= {inner.id for inner in ast.walk(generator.target) if isinstance(inner, ast.Name)}
    parts.extend([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])
    return ir.Repeated(tuple(lower_expression(part) for part in parts), frozenset(names), node)
