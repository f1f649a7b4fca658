"""From a diagnosis to the edit that mends it, in the terms of the file to be edited."""

from __future__ import annotations

import ast
from collections.abc import Callable

from kvlint.analysis.evidence import member_named
from kvlint.analysis.facts import Facts
from kvlint.analysis.infer import Writer, writer_of
from kvlint.analysis.places import Place
from kvlint.analysis.removals import RemovalSite, Verdict
from kvlint.analysis.subject import StatusEnum, Subject
from kvlint.analysis.values import EXCEPTION, STATUS
from kvlint.analysis.workers import Drop
from kvlint.analysis.writes import Write
from kvlint.diagnostics import DeferAbortCleanup, RecordFailure, SkipGuard, StickyTerminal
from kvlint.semantics.class_body import parameters
from kvlint.semantics.hierarchy import ClassInfo, Method
from kvlint.semantics.module import Module
from kvlint.semantics.world import Symbol, World, dotted_name


def spelled(world: World, module: Module, enum: StatusEnum) -> str | None:
    """How ``module`` names the enum's class (``KVPoll``, ``base.KVPoll``), None where it does not."""
    for node in module.nodes_of_kind(ast.Attribute):
        assert isinstance(node, ast.Attribute)
        found = member_named(world, module, node)
        if found is not None and found[0] is enum:
            return dotted_name(node.value)
    target = world.resolve(module, enum.info.name)
    return enum.info.name if isinstance(target, Symbol) and target.node is enum.info.owner.node else None


def terminal_texts(world: World, module: Module, enum: StatusEnum) -> tuple[str, ...] | None:
    """The terminal members as ``module`` can write them."""
    prefix = spelled(world, module, enum)
    return None if prefix is None else tuple(f"{prefix}.{name}" for name in enum.terminals)


def sticky_terminal(writer: Writer) -> StickyTerminal | None:
    """The edit that makes terminal statuses final, in the definition that is wrong."""
    wrong = wrong_definition(writer)
    module = wrong.method.owner.module
    world = wrong.cls.world
    terminals = terminal_texts(world, module, wrong.subject.enum)
    if terminals is None or not wrong.subject.enum.failures:
        return None
    stored = stored_text(wrong)
    node = wrong.method.node
    return StickyTerminal(module.path, node.lineno, node.name, stored, terminals)


def _overwrites(writer: Writer) -> bool:
    return any(writer.table.overwritten())


def wrong_definition(writer: Writer, is_wrong: Callable[[Writer], bool] = _overwrites) -> Writer:
    """The definition that lets a terminal status be overwritten: a base's where an override only passes on to it."""
    current = writer
    while _calls_super(current.method):
        owner = current.method.owner
        above = owner.lookup(current.name, after=owner)
        base = None if above is None else writer_of(above.owner, above, current.subject)
        if base is None or not is_wrong(base):
            break
        current = base
    return current


def _calls_super(method: Method) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == method.node.name
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "super"
        for node in ast.walk(method.node)
    )


def stored_text(writer: Writer) -> str:
    """An expression that reads the stored status in the writer's own terms and never raises."""
    table = _table_text(writer)
    if writer.subject.kind == "attribute":
        return table
    return f"{table}.get({writer.signature.room})"


def _table_text(writer: Writer) -> str:
    for node in ast.walk(writer.method.node):
        if isinstance(node, ast.Attribute) and node.attr == writer.subject.attribute:
            return ast.unparse(node)
    return f"{writer.signature.receiver}.{writer.subject.attribute}"


def record_failure(writer: Writer, lost: str) -> RecordFailure | None:
    """The edit that stores a failure written to a live room."""
    module = writer.method.owner.module
    terminals = terminal_texts(writer.cls.world, module, writer.subject.enum)
    prefix = spelled(writer.cls.world, module, writer.subject.enum)
    if terminals is None or prefix is None:
        return None
    failure = f"{prefix}.{lost}"
    table = _table_text(writer)
    target = table if writer.subject.kind == "attribute" else f"{table}[{writer.signature.room}]"
    calm = terminals if writer.subject.kind == "attribute" else ("None", *terminals)
    node = writer.method.node
    return RecordFailure(
        path=module.path,
        line=node.lineno,
        function=node.name,
        status=writer.signature.status,
        stored=stored_text(writer),
        calm=calm,
        failure=failure,
        store=f"{target} = {failure}",
    )


def skip_guard(facts: Facts, drop: Drop) -> SkipGuard | None:
    """The edit that fails a live room before its item is dropped."""
    place = facts.place_of(drop.frame)
    subject = drop.worker.subject
    if place is None or place.module is not facts.module or subject.kind != "table" or not subject.enum.failures:
        return None
    terminals = terminal_texts(facts.world, facts.module, subject.enum)
    room = _room_text(place, drop, subject)
    how = _conclusion(facts, place, subject, room, _reason(facts, drop)) if room is not None else None
    if terminals is None or room is None or how is None:
        return None
    owner, record, conclude = how
    node = drop.leave or drop.at
    if drop.leave is None and not isinstance(drop.at, ast.If | ast.ExceptHandler):
        return None
    span = facts.location(node).span
    return SkipGuard(
        path=facts.path,
        line=span.line,
        column=span.column,
        at_block_end=drop.leave is None,
        in_body=drop.taken,
        stored=f"{owner}.{subject.attribute}.get({room})",
        calm=("None", *terminals),
        record=record,
        conclude=conclude,
    )


def _reason(facts: Facts, drop: Drop) -> str:
    """What is recorded for a room whose item is dropped."""
    if facts.unsafe_removals(drop) or not drop.causes & {EXCEPTION, STATUS}:
        return "The transfer was dropped: the metadata of the room is gone"
    if EXCEPTION in drop.causes:
        return "The transfer was dropped: an exception was caught"
    return "The transfer was dropped: the status of the room is unexpected"


def _conclusion(
    facts: Facts, place: Place, subject: Subject, room: str, reason: str
) -> tuple[str, str | None, str] | None:
    """(owner text, recording statement, failing statement) for ``room`` in the terms of ``place``."""
    prefix = spelled(facts.world, facts.module, subject.enum)
    found = _owner_of_status(facts, place, subject)
    if prefix is None or found is None:
        return None
    owner, cls = found
    failure = f"{prefix}.{subject.enum.failures[0]}"
    conclude = f"{owner}.{subject.attribute}[{room}] = {failure}"
    for name in sorted(subject.writers):
        method = cls.lookup(name)
        writer = None if method is None else writer_of(cls, method, subject)
        if writer is not None and writer.primary:
            conclude = f"{owner}.{name}({_arguments(writer, room, failure)})"
            if isinstance(writer.method.node, ast.AsyncFunctionDef):
                conclude = f"await {conclude}"
            break
    recorder = failure_recorder(cls, subject)
    record = None if recorder is None else f'{owner}.{recorder}({room}, "{reason}")'
    return owner, record, conclude


def _arguments(writer: Writer, room: str, status: str) -> str:
    positional = [argument.arg for argument in writer.method.node.args.args][1:]
    if positional[:2] == [writer.signature.room, writer.signature.status]:
        return f"{room}, {status}"
    return f"{writer.signature.room}={room}, {writer.signature.status}={status}"


def _owner_of_status(facts: Facts, place: Place, subject: Subject) -> tuple[str, ClassInfo] | None:
    """How ``place`` reaches the object that keeps the status, and its class."""
    for write in facts.writes:
        if write.place.method is place.method and write.subject is subject:
            found = _written_on(write)
            if found is not None:
                return found
    for node in place.body:
        if isinstance(node, ast.Attribute) and node.attr == subject.attribute:
            holder = place.class_of(node.value)
            if holder is not None:
                return ast.unparse(node.value), holder
    if place.receiver is not None and place.cls is not None:
        return place.receiver, place.cls
    return None


def _written_on(write: Write) -> tuple[str, ClassInfo] | None:
    match write.node:
        case ast.Call(func=ast.Attribute(value=owner)) if not isinstance(owner, ast.Call):
            holder = write.place.class_of(owner)
            return None if holder is None else (ast.unparse(owner), holder)
        case _:
            return None


def _room_text(place: Place, drop: Drop, subject: Subject) -> str | None:
    """How ``place`` names the room: as the deciding test does, else as a use before the exit does."""
    nodes = list(ast.walk(drop.at.test)) if isinstance(drop.at, ast.If) else []
    limit = (drop.leave or drop.at).lineno  # type: ignore[attr-defined]
    earlier = [node for node in place.body if getattr(node, "lineno", limit) <= limit]
    later = [node for node in place.body if getattr(node, "lineno", 0) > limit]
    unsure = _bound_in_a_try(place, drop.leave or drop.at)
    for node in [*nodes, *reversed(earlier), *later]:
        key = _key_of(node, subject)
        if key is not None and isinstance(key, ast.Name | ast.Attribute) and _root(key) not in unsure:
            return ast.unparse(key)
    return None


def _bound_in_a_try(place: Place, node: ast.AST) -> frozenset[str]:
    """The names that may be unbound or stale at ``node``: those bound in the ``try`` whose handler it stands in."""
    found: set[str] = set()
    for statement in place.body:
        if isinstance(statement, ast.Try | ast.TryStar):
            handled = (part for handler in statement.handlers for part in ast.walk(handler))
            if any(part is node for part in handled):
                parts = (part for child in statement.body for part in ast.walk(child))
                found |= {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    return frozenset(found)


def _root(expression: ast.expr) -> str | None:
    while isinstance(expression, ast.Attribute):
        expression = expression.value
    return expression.id if isinstance(expression, ast.Name) else None


def _key_of(node: ast.AST, subject: Subject) -> ast.expr | None:
    match node:
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[ast.Attribute()]):
            return left
        case ast.Call(func=ast.Attribute(attr=name), args=[first, *_]) if name in subject.writers:
            return first
        case ast.Call(func=ast.Attribute(value=ast.Attribute(), attr="get" | "pop"), args=[first, *_]):
            return first
        case ast.Subscript(value=ast.Attribute(), slice=key):
            return key
        case _:
            return None


def failure_recorder(cls: ClassInfo, subject: Subject) -> str | None:
    """The method that keeps a reason for a failed room: it stores its second parameter under its first."""
    for override in cls.world.config.protocol:
        if override.failure_recorder is not None and cls.lookup(override.failure_recorder) is not None:
            return override.failure_recorder
    for entry in cls.family():
        for node in entry.methods.values():
            names = [argument.arg for argument in parameters(node)]
            if len(names) != 3 or node.name in subject.writers or isinstance(node, ast.AsyncFunctionDef):
                continue
            if "fail" not in node.name and "error" not in node.name:
                continue
            for part in ast.walk(node):
                match part:
                    case ast.Assign(
                        targets=[ast.Subscript(value=ast.Attribute(attr=attr), slice=ast.Name(id=key))],
                        value=ast.Name(id=value),
                    ) if attr != subject.attribute and (key, value) == (names[1], names[2]):
                        return node.name
                    case _:
                        pass
    return None


def defer_abort_cleanup(facts: Facts, site: RemovalSite, drop: Drop) -> DeferAbortCleanup | None:
    """The edit that drops a removal, where another one gets rid of the room anyway."""
    cls = drop.worker.holder
    others = facts.removals(site.table, cls) if cls is not None else ()
    if not any(other.verdict is Verdict.SAFE for other in others if other.node is not site.node):
        return None
    node = next(
        node
        for node in site.place.body
        if node is site.node or (isinstance(node, ast.Expr) and node.value is site.node)
    )
    location = site.place.module.location(node)
    return DeferAbortCleanup(location.path, location.span.line, location.span.column)
