"""What code may do, told without running it: whether it can still conclude the room, and what a method touches."""

from __future__ import annotations

import ast
import builtins

from msgspec import Struct
from msgspec.structs import replace

from kvlint.analysis import ir, walk
from kvlint.analysis.frames import After
from kvlint.analysis.lower import lowered
from kvlint.analysis.subject import Subject
from kvlint.semantics.constants import NotConstant, constant_of
from kvlint.semantics.hierarchy import ClassInfo, Method
from kvlint.semantics.module import Function, Module
from kvlint.semantics.world import Symbol, World

QUEUE_CALLS = frozenset({"put", "put_nowait", "submit", "send_nowait", "enqueue", "push", "call_soon_threadsafe"})
ITEM_CONCLUSIONS = frozenset({"set_result", "set_exception", "cancel"})
LIST_CALLS = frozenset({"append", "appendleft", "insert", "add", "heappush"})
_DYNAMIC = frozenset({"setattr", "delattr", "vars", "__dict__", "exec", "eval"})


class Context(Struct, frozen=True, eq=False):
    """Where a piece of code stands.

    ``cls`` is the receiver's class, ``owner`` the class whose body holds the
    code, ``receiver`` the receiver's name, ``items`` the names of work items.
    """

    subject: Subject
    module: Module
    cls: ClassInfo | None
    owner: ClassInfo | None
    receiver: str | None
    items: frozenset[str] = frozenset()


class Reach:
    """Answers about functions, kept once per function; ``tables`` are the room tables of interest."""

    def __init__(self, world: World, tables: frozenset[str] = frozenset()) -> None:
        self._world = world
        self._tables = tables
        self._memo: dict[object, bool] = {}
        self._kept: list[ir.Block] = []

    def follows(self, table: str) -> bool:
        """Whether ``table`` is one of the room tables of interest."""
        return table in self._tables

    # -- what a function touches ----------------------------------------------

    def touches(self, method: Method, cls: ClassInfo, subject: Subject) -> bool:
        """Whether running ``method`` on an instance of ``cls`` can matter to the room's status."""
        key = ("touches", method.node, cls, subject)
        if key not in self._memo:
            self._memo[key] = False  # a recursive call adds nothing new
            self._memo[key] = self._touches(method.node, method.owner.module, cls, method.owner, subject)
        return self._memo[key]

    def function_touches(self, module: Module, node: Function, subject: Subject) -> bool:
        """Whether a module-level function can matter to the room's status."""
        key = ("function", node, subject)
        if key not in self._memo:
            self._memo[key] = False
            self._memo[key] = self._touches(node, module, None, None, subject)
        return self._memo[key]

    def nested_touches(
        self,
        node: ast.AST,
        module: Module,
        cls: ClassInfo | None,
        owner: ClassInfo | None,
        receiver: str | None,
        subject: Subject,
    ) -> bool:
        """Whether a function nested in a method, which sees its ``receiver``, can matter to the room's status."""
        key = ("nested", node, cls, subject)
        if key not in self._memo:
            self._memo[key] = False
            self._memo[key] = self._touches(node, module, cls, owner, subject, receiver)
        return self._memo[key]

    def _touches(
        self,
        node: ast.AST,
        module: Module,
        cls: ClassInfo | None,
        owner: ClassInfo | None,
        subject: Subject,
        receiver: str | None = None,
    ) -> bool:
        interesting = {subject.attribute, *subject.writers} | self._tables | _DYNAMIC
        receiver = receiver or (receiver_name(node) if owner is not None else None)
        for part in module.nodes_of(node, ast.Attribute, ast.Name, ast.Call):
            if isinstance(part, ast.Attribute) and part.attr in interesting:
                return True
            if isinstance(part, ast.Name) and part.id in interesting:
                return True
            if isinstance(part, ast.Call) and self._call_touches(part, module, cls, owner, receiver, subject):
                return True
        return False

    def _call_touches(
        self,
        call: ast.Call,
        module: Module,
        cls: ClassInfo | None,
        owner: ClassInfo | None,
        receiver: str | None,
        subject: Subject,
    ) -> bool:
        harmless = isinstance(call.func, ast.Name) and call.func.id in {"isinstance", "type", "id", "hasattr"}
        if not harmless and any(isinstance(given, ast.Name) and given.id == receiver for given in call.args):
            return True
        match call.func:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == receiver and cls is not None:
                target = cls.lookup(attr)
                if target is None:
                    return bool(cls.missing_bases)
                return self.touches(target, cls, subject)
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=attr) if cls and owner:
                target = cls.lookup(attr, after=owner)
                return target is None or self.touches(target, cls, subject)
            case ast.Name(id=name):
                found = self._world.resolve(module, name)
                if isinstance(found, Symbol) and isinstance(found.node, ast.FunctionDef | ast.AsyncFunctionDef):
                    return self.function_touches(found.module, found.node, subject)
                return False
            case _:
                return False

    def hands_over(self, method: Method, cls: ClassInfo, depth: int = 4) -> bool:
        """Whether ``method`` or a helper of it puts anything on a queue or tells an item's sender about its end."""
        key = ("hands over", method.node, cls)
        if key not in self._memo:
            self._memo[key] = False
            receiver = receiver_name(method.node)
            for part in method.owner.module.nodes_of(method.node, ast.Call):
                match part:
                    case ast.Call(func=ast.Attribute(attr=name)) if name in QUEUE_CALLS | ITEM_CONCLUSIONS | LIST_CALLS:
                        self._memo[key] = True
                    case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)) if (
                        owner == receiver and depth
                    ):
                        target = cls.lookup(name)
                        if target is None or self.hands_over(target, cls, depth - 1):
                            self._memo[key] = True
                    case _:
                        pass
        return self._memo[key]

    def is_hook(self, method: Method) -> bool:
        """Whether a method is only a place for subclasses to fill."""
        body = [
            statement
            for statement in method.node.body
            if not (isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str))
        ]
        if any("abstractmethod" in ast.unparse(decorator) for decorator in method.node.decorator_list):
            return True
        match body:
            case [ast.Expr(value=ast.Constant(value=value))]:
                return value is Ellipsis
            case [ast.Raise(exc=ast.expr() as raised)]:
                return "NotImplementedError" in ast.unparse(raised)
            case _:
                return False

    # -- whether a room can still be concluded --------------------------------

    def can(self, block: ir.Block, after: After, context: Context, start: int = 0) -> bool:
        """Whether the room may be concluded from statement ``start`` of ``block`` on."""
        if start >= len(block):
            return after.normal
        key = ("can", id(block), start, after, context.cls, context.subject, context.items)
        if key not in self._memo:
            following = replace(after, normal=self.can(block, after, context, start + 1))
            self._kept.append(block)  # its identity is part of the key
            self._memo[key] = self._statement_can(block[start], following, context)
        return self._memo[key]

    def _statement_can(self, statement: ir.Statement, after: After, context: Context) -> bool:  # noqa: C901
        if self.statement_concludes(statement, context):
            return True
        match statement:
            case ir.Return():
                return after.returning
            case ir.Break():
                return after.breaking
            case ir.Continue():
                return after.continuing
            case ir.Raise():
                return after.raising
            case ir.If(then=then, other=other):
                return self.can(then, after, context) or self.can(other, after, context)
            case ir.While(body=body, other=other) | ir.For(body=body, other=other):
                inner = replace(after, breaking=after.normal, continuing=after.normal)
                return self.can(body, inner, context) or self.can(other, after, context)
            case ir.Try(body=body, handlers=handlers, other=other, final=final):
                ending = replace(after, normal=self.can(final, after, context))
                continuing = replace(ending, normal=self.can(other, ending, context))
                if self.can(body, continuing, context):
                    return True
                return any(self.can(handler.body, ending, context) for handler in handlers)
            case ir.With(body=body):
                return self.can(body, after, context)
            case ir.Match(cases=cases):
                return after.normal or any(self.can(case.body, after, context) for case in cases)
            case _:
                return after.normal

    def block_concludes(self, block: ir.Block, context: Context) -> bool:
        """Whether anything in ``block`` may conclude the room."""
        return any(self.statement_concludes(statement, context) for statement in walk.statements(block))

    def statement_concludes(self, statement: ir.Statement, context: Context) -> bool:
        """Whether the statement itself, nested blocks left out, may conclude the room."""
        key = (statement, context.cls, context.subject, context.items)
        if key not in self._memo:
            self._memo[key] = self._statement_concludes(statement, context)
        return self._memo[key]

    def _statement_concludes(self, statement: ir.Statement, context: Context) -> bool:
        if isinstance(statement, ir.Assign) and any(
            self._stores_end(target, statement.value, context) for target in statement.targets
        ):
            return True
        if isinstance(statement, ir.Delete) and any(
            isinstance(target, ir.Subscript) and self._is_status(target.owner, context) for target in statement.targets
        ):
            return True
        return any(self._call_concludes(call, context) for call in self._calls_in(statement))

    def _calls_in(self, statement: ir.Statement) -> tuple[ir.Call, ...]:
        key = ("calls", statement)
        known = self._world.memo.get(key)
        if not isinstance(known, tuple):
            known = self._world.memo[key] = tuple(
                part
                for expression in walk.expressions_of(statement)
                for part in walk.subexpressions(expression)
                if isinstance(part, ir.Call)
            )
        return known

    def _stores_end(self, target: ir.Expression, value: ir.Expression, context: Context) -> bool:
        subject = context.subject
        if subject.kind == "attribute":
            stores = isinstance(target, ir.Attribute) and target.name == subject.attribute
        else:
            stores = isinstance(target, ir.Subscript) and self._is_status(target.owner, context)
        return stores and not self._is_live_constant(value, context)

    def _is_status(self, expression: ir.Expression, context: Context) -> bool:
        return isinstance(expression, ir.Attribute) and expression.name == context.subject.attribute

    def _is_live_constant(self, expression: ir.Expression, context: Context) -> bool:
        dotted = walk.text_of(expression)
        if dotted is None:
            return False
        value = constant_of(self._world, context.module, dotted)
        return not isinstance(value, NotConstant) and context.subject.is_live(value)

    def _call_concludes(self, call: ir.Call, context: Context) -> bool:
        match call.callee:
            case ir.Attribute(owner=owner, name=name):
                if name in QUEUE_CALLS or name in ITEM_CONCLUSIONS:
                    return True
                if name in {"pop", "clear", "popitem"} and self._is_status(owner, context):
                    return True
                if name in context.subject.writers:
                    arguments = [*call.arguments, *(value for _, value in call.keywords)]
                    return not any(self._is_live_constant(argument, context) for argument in arguments)
                if name in {"__setitem__", "update"} and self._is_status(owner, context):
                    return True
                return self._method_concludes(call, owner, name, context)
            case ir.Name(id=name):
                found = self._world.resolve(context.module, name)
                if isinstance(found, Symbol) and isinstance(found.node, ast.FunctionDef | ast.AsyncFunctionDef):
                    return self._function_concludes(found.node, _moved(context, found.module, None, None))
                return _passes(call, context.items) and not hasattr(builtins, name)
            case _:
                return _passes(call, context.items)

    def _method_concludes(self, call: ir.Call, owner: ir.Expression, name: str, context: Context) -> bool:
        cls = self._class_of(owner, context)
        if cls is not None:
            after = context.owner if _is_super(owner) else None
            method = cls.lookup(name, after=after)
            if method is None or method.kind == "wrapped" or self.is_hook(method):
                return bool(cls.missing_bases) or method is not None
            inner = _moved(context, method.owner.module, cls, method.owner)
            return self._function_concludes(method.node, inner)
        if isinstance(owner, ir.Name) and owner.id in context.items:
            return True
        return _passes(call, context.items) and not _is_logging(owner)

    def _class_of(self, owner: ir.Expression, context: Context) -> ClassInfo | None:
        match owner:
            case ir.Name(id=name) if name == context.receiver:
                return context.cls
            case ir.Attribute(owner=inner, name=name):
                outer = self._class_of(inner, context)
                return None if outer is None else outer.attribute_class(name)
            case _:
                return context.cls if _is_super(owner) else None

    def _function_concludes(self, node: Function, context: Context) -> bool:
        key = ("concludes", node, context.cls, context.subject)
        if key not in self._memo:
            self._memo[key] = False
            function = lowered(self._world, node)
            inner = Context(
                context.subject,
                context.module,
                context.cls,
                context.owner,
                receiver_name(node),
            )
            self._memo[key] = self.block_concludes(function.body, inner)
        return self._memo[key]


def _moved(context: Context, module: Module, cls: ClassInfo | None, owner: ClassInfo | None) -> Context:
    return Context(context.subject, module, cls, owner, context.receiver)


def receiver_name(node: ast.AST) -> str | None:
    """The parameter of a method that holds its object, None for a static method and what is no function."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        if any(isinstance(decorator, ast.Name) and decorator.id == "staticmethod" for decorator in node.decorator_list):
            return None
        named = [*node.args.posonlyargs, *node.args.args]
        return named[0].arg if named else None
    return None


def _is_super(owner: ir.Expression) -> bool:
    return isinstance(owner, ir.Call) and isinstance(owner.callee, ir.Name) and owner.callee.id == "super"


def _is_logging(owner: ir.Expression) -> bool:
    dotted = walk.text_of(owner) or ""
    return any(part.lower().lstrip("_") in {"logger", "log", "logging"} for part in dotted.split("."))


def _passes(call: ir.Call, items: frozenset[str]) -> bool:
    return any(isinstance(argument, ir.Name) and argument.id in items for argument in call.arguments)
