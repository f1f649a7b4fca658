"""What a class statement itself says: its names, what its methods set, the types it annotates."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kvlint.semantics.module import Function, statements_in
from kvlint.semantics.world import dotted_name


def annotation_class(annotation: ast.expr | None) -> str | None:
    """The class an annotation names: ``C``, ``"C"``, ``Optional[C]``, ``C | None``, ``Annotated[C, …]``."""
    match annotation:
        case None:
            return None
        case ast.Subscript(value=value, slice=inner):
            outer = (dotted_name(value) or "").rpartition(".")[2]
            if outer == "Annotated" and isinstance(inner, ast.Tuple):
                return annotation_class(inner.elts[0])
            return annotation_class(inner) if outer in {"Optional", "Final", "ClassVar"} else None
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            sides = [side for side in (left, right) if not (isinstance(side, ast.Constant) and side.value is None)]
            return annotation_class(sides[0]) if len(sides) == 1 else None
        case ast.Constant(value=str(text)):
            try:
                return annotation_class(ast.parse(text, mode="eval").body)
            except SyntaxError:
                return None
        case _:
            return dotted_name(annotation)


def parameters(function: Function) -> list[ast.arg]:
    """The named parameters in order: positional-only, positional, keyword-only."""
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def class_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a class body, those below ``if`` and ``try`` included."""
    for statement in body:
        match statement:
            case ast.If(body=then, orelse=orelse):
                yield from class_statements(then)
                yield from class_statements(orelse)
            case ast.Try(body=block, handlers=handlers):
                yield from class_statements(block)
                for handler in handlers:
                    yield from class_statements(handler.body)
            case _:
                yield statement


def bound_names(statement: ast.stmt) -> list[str]:
    """The names that a statement of a class body binds."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()) | ast.AugAssign(target=ast.Name(id=name)):
            return [name]
        case _:
            return []


def is_new_container(value: ast.expr) -> bool:
    """Whether an expression makes a built-in container."""
    match value:
        case ast.Dict() | ast.List() | ast.Set() | ast.DictComp() | ast.ListComp() | ast.SetComp():
            return True
        case ast.Call(func=callee):
            name = (dotted_name(callee) or "").rpartition(".")[2]
            return name in {"dict", "list", "set", "defaultdict", "deque", "OrderedDict", "Counter"}
        case _:
            return False


def note_attribute_types(method: Function, found: dict[str, str]) -> None:
    """Add the dotted class names of the attributes that ``method`` annotates or sets; what is known already stays."""
    named = parameters(method)
    if not named:
        return
    receiver = named[0].arg
    annotated = {argument.arg: annotation_class(argument.annotation) for argument in named}
    for node in statements_in(method.body):
        match node:
            case ast.AnnAssign(target=ast.Attribute(value=ast.Name(id=owner), attr=attr)) if owner == receiver:
                _note(found, attr, annotation_class(node.annotation))
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=owner), attr=attr)]) if owner == receiver:
                match node.value:
                    case ast.Name(id=parameter):
                        _note(found, attr, annotated.get(parameter))
                    case ast.Call(func=callee):
                        name = dotted_name(callee)
                        if name and name.rpartition(".")[2][:1].isupper():
                            _note(found, attr, name)
                    case _:
                        pass
            case _:
                pass


def _note(found: dict[str, str], name: str, dotted: str | None) -> None:
    if dotted is not None:
        found.setdefault(name, dotted)
