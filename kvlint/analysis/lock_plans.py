"""The edits that close a window between a test of shared state and what is done on it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import pairwise

from kvlint.analysis.atomicity import OpenStep, Outside, table_lock, writer_place
from kvlint.analysis.brevity import Terms, blocks, subclasses_in
from kvlint.analysis.facts import Facts
from kvlint.analysis.infer import Writer
from kvlint.analysis.places import Place, place_of
from kvlint.analysis.presence import Act, Use
from kvlint.analysis.roles import readers_of
from kvlint.analysis.sharing import Race, shared_modules
from kvlint.diagnostics import AtomicStatus, LockMaking
from kvlint.semantics.hierarchy import ClassInfo, Method, classes_of
from kvlint.semantics.module import Function, Module, inner_blocks
from kvlint.semantics.world import External

_NAMES = ("_status_lock", "_status_table_lock", "_room_status_lock")


@dataclass(frozen=True, slots=True)
class _Creation:
    """The first statement of a constructor that makes the status table."""

    owner: ClassInfo
    method: Method
    statement: ast.Assign | ast.AnnAssign


def lock_writer(facts: Facts, step: OpenStep) -> AtomicStatus | None:
    """The edit that puts the writer's body under the table's lock, made if need be; None where that could block.

    Where the lock is to be made in another file than the writer's, that comes first and by itself.
    """
    writer = step.writer
    creation = _creation_of(facts, writer)
    if creation is None or obstacle(facts, step) is not None or not _may_hold_locks(creation.owner):
        return None
    known = _reentrant_lock(writer, creation)
    if known is None and table_lock(writer.cls) is not None:
        return None  # a lock is there, and taking it twice would be the end of the thread
    name = known or _free_name(facts, writer)
    making = None if known else _making(creation, name)
    if known is None and making is None:
        return None
    module = writer.method.owner.module
    maker = creation.owner.module
    span = module.location(writer.method.node).span
    lock = f"{writer.signature.receiver}.{name}"
    if making is not None and maker is not module:
        return AtomicStatus(maker.path, making.line, making.column, making=making)
    return AtomicStatus(module.path, span.line, span.column, lock, writer.method.node.name, making)


def obstacle(facts: Facts, step: OpenStep) -> ast.AST | None:
    """What in the writer's body must not run under a lock, since it may wait or take another one."""
    return blocks(writer_place(step.writer), _terms(facts, step.writer))


def lock_access(facts: Facts, outside: Outside) -> AtomicStatus | None:
    """The edit that puts a removal or a store under the lock that the writer takes."""
    creation = _creation_of(facts, outside.writer)
    place, node = outside.place, outside.node
    if creation is None or _reentrant_lock(outside.writer, creation) != outside.lock or outside.owner is None:
        return None
    statement = _statement_of(place, node)
    if not isinstance(statement, ast.Expr | ast.Assign | ast.Delete):
        return None
    if blocks(place, _terms(facts, outside.writer), (statement,)) is not None:
        return None
    span = place.module.location(statement).span
    return AtomicStatus(place.module.path, span.line, span.column, f"{ast.unparse(outside.owner)}.{outside.lock}")


def _terms(facts: Facts, writer: Writer) -> Terms:
    return Terms(writer.cls, writer.subject, table_lock(writer.cls), _modules(facts, writer))


def _modules(facts: Facts, writer: Writer) -> tuple[Module, ...]:
    """The modules whose code may make, change or be the writer's object."""
    return tuple(dict.fromkeys((*shared_modules(facts), *(entry.module for entry in writer.cls.family()))))


# -- the lock ------------------------------------------------------------------


def _creation_of(facts: Facts, writer: Writer) -> _Creation | None:
    """Where the table is made, if every object that the writer may serve goes through there."""
    found = _first_creation(writer)
    if found is None:
        return None
    known = subclasses_in(_modules(facts, writer), found.owner)
    return found if all(_runs(cls, found, writer.subject.attribute) for cls in known) else None


def _runs(cls: ClassInfo, creation: _Creation, table: str) -> bool:
    """Whether each constructor that comes before the table's own passes on to it."""
    if set(cls.missing_bases) - set(creation.owner.missing_bases):
        return False
    order = cls.family()
    before = order[: order.index(creation.owner)]
    constructors = [(entry, entry.methods["__init__"]) for entry in before if "__init__" in entry.methods]
    return all(_passes_on(entry, constructor, table) for entry, constructor in constructors)


def _passes_on(entry: ClassInfo, constructor: Function, table: str) -> bool:
    """Whether a constructor always calls the next one, and touches no table before."""
    for statement in constructor.body:
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Call() as owner, attr="__init__"))):
                return ast.unparse(owner) == "super()" or ast.unparse(owner).startswith(f"super({entry.name}, ")
            case _:
                for node in ast.walk(statement):
                    if isinstance(node, ast.Return) or (isinstance(node, ast.Attribute) and node.attr == table):
                        return False
    return False


def _first_creation(writer: Writer) -> _Creation | None:
    for entry in writer.cls.family():
        constructor = entry.methods.get("__init__")
        if constructor is None or not constructor.args.args:
            continue
        for statement in constructor.body:
            match statement:
                case (
                    ast.Assign(targets=[ast.Attribute(value=ast.Name(id=owner), attr=attr)])
                    | ast.AnnAssign(target=ast.Attribute(value=ast.Name(id=owner), attr=attr), value=ast.expr())
                ):
                    method = Method(entry, constructor)
                    if attr == writer.subject.attribute and owner == constructor.args.args[0].arg:
                        return _Creation(entry, method, statement)
                case _:
                    pass
    return None


def _may_hold_locks(owner: ClassInfo) -> bool:
    """Whether objects take another attribute, and are not copied to processes, which no lock survives."""
    return "__slots__" not in owner.class_values and not owner.module.calls_of("Process")


def _reentrant_lock(writer: Writer, creation: _Creation) -> str | None:
    """The attribute of the table's own lock that may be taken twice: the writers', or the one made beside the table."""
    body = creation.method.node.body
    taken = table_lock(writer.cls)
    if taken is not None:
        return taken if any(_made_lock(statement) == taken for statement in body) else None
    beside = body[body.index(creation.statement) + 1 :][:1]
    return _made_lock(beside[0]) if beside else None


def _made_lock(statement: ast.stmt) -> str | None:
    """The attribute that a statement makes a re-entrant lock."""
    match statement:
        case ast.Assign(
            targets=[ast.Attribute(attr=attr)],
            value=ast.Call(func=ast.Attribute(attr="RLock") | ast.Name(id="RLock"), args=[]),
        ):
            return attr
        case _:
            return None


def _free_name(facts: Facts, writer: Writer) -> str:
    texts = {module.source.text for module in _modules(facts, writer)}
    numbered = (f"{_NAMES[0]}_{number}" for number in range(2, 10_000))
    return next(name for name in (*_NAMES, *numbered) if not any(name in text for text in texts))


def _making(creation: _Creation, name: str) -> LockMaking | None:
    module = creation.owner.module
    world = creation.owner.world
    span = module.location(creation.statement).span
    bound = world.resolve(module, "threading")
    receiver = creation.method.node.args.args[0].arg
    if "threading" in module.names and not (isinstance(bound, External) and bound.dotted == "threading"):
        return None  # the name means something else here
    imported = None if "threading" in module.names else "import threading"
    return LockMaking(span.line, span.column, f"{receiver}.{name} = threading.RLock()", imported)


# -- single operations ---------------------------------------------------------


def single_operation(facts: Facts, race: Race) -> AtomicStatus | None:
    """The edit that makes a use of a key one operation that cannot raise, where that keeps the meaning."""
    use, module = race.use, race.place.module
    edited = use.statement if use.act is Act.DELETE else use.node
    location = module.location(edited)
    old = ast.get_source_segment(module.source.text, edited)
    rewritten = _rewritten(facts, race) if location.span.line == location.span.end_line else None
    if rewritten is None or old is None:
        return None
    new, after = rewritten
    return AtomicStatus(module.path, location.span.line, location.span.column, old=old, new=new, after=after)


def _rewritten(facts: Facts, race: Race) -> tuple[str, tuple[str, ...]] | None:
    """The text that replaces the use, and the lines that follow its statement."""
    use = race.use
    alone = isinstance(use.statement, ast.Expr) and use.statement.value is use.node
    match use.node, use.statement:
        case ast.Call(func=func, args=[key]), _ if use.act is Act.POP and alone:
            return f"{_text(race, func)}({_text(race, key)}, None)", ()
        case ast.Call(func=ast.Attribute(value=owner), args=[key]), _ if use.act is Act.REMOVE and alone:
            return (f"{_text(race, owner)}.discard({_text(race, key)})", ()) if _is_set(race) else None
        case ast.Subscript(value=owner, slice=key), ast.Delete(targets=[target]) if target is use.node:
            return f"{_text(race, owner)}.pop({_text(race, key)}, None)", ()
        case ast.Subscript(), ast.Assign(targets=[ast.Name(id=name)], value=value) if value is use.node:
            return _read_once(race, name)
        case _ if use.act in {Act.SUBSCRIPT, Act.CALL}:
            return _compared(facts, race)
        case _:
            return None


def _text(race: Race, node: ast.expr) -> str:
    """An expression as it stands in the file, quotes and all."""
    return ast.get_source_segment(race.place.module.source.text, node) or ast.unparse(node)


def _is_plain_reader(facts: Facts, race: Race) -> bool:
    """Whether the reader does no more than look the status up, in every class that the call may reach."""
    owner = race.use.owner
    assert isinstance(owner, ast.Attribute)
    related = [cls for module in shared_modules(facts) for cls in classes_of(facts.world, module)]
    return all(
        any(reader.node is cls.methods[owner.attr] for reader in readers_of(cls))
        for cls in (*related, *race.cls.family())
        if owner.attr in cls.methods and cls.is_related(race.cls)
    )


def _compared(facts: Facts, race: Race) -> tuple[str, tuple[str, ...]] | None:
    """``k in d and d[k] != M``: a default that gives the answer which the test gives for a key that is gone."""
    use, seen = race.use, race.use.seen
    assert seen is not None
    if use.act is Act.CALL and not _is_plain_reader(facts, race):
        return None
    for node in race.place.nodes(ast.BoolOp):
        if not any(value is seen.test for value in node.values):
            continue
        # Only an operand as it stands: a `not`, a comparison or a call around it gives the default another meaning.
        for part in node.values:
            match part:
                case ast.Compare(
                    left=left, ops=[ast.Eq() | ast.NotEq() as op], comparators=[ast.Attribute() as member]
                ):
                    if left is use.node:
                        # An `or` holds already where the key is gone, an `and` fails.
                        needed = isinstance(op, ast.NotEq) is isinstance(node.op, ast.And)
                        return _get(race, member if needed else None), ()
                case _:
                    pass
    return None


def _read_once(race: Race, name: str) -> tuple[str, tuple[str, ...]] | None:
    """``x = d[k]`` right behind ``if k not in d: leave``: ask with ``get``, and leave as the test does."""
    use, seen = race.use, race.use.seen
    assert seen is not None
    guard = seen.statement
    if (
        not isinstance(guard, ast.If)
        or guard.orelse
        or guard.test is not seen.test
        or not _follows(race.place, guard, use)
    ):
        return None
    leave = guard.body[-1]
    if len(guard.body) != 1 or not isinstance(leave, ast.Return | ast.Continue | ast.Break):
        return None
    return _get(race, None), (f"if {name} is None:", f"\t{ast.unparse(leave)}")


def _get(race: Race, default: ast.expr | None) -> str:
    """``table.get(key)`` for a subscript of the table or a call of its reader."""
    tail = "" if default is None else f", {_text(race, default)}"
    node, owner = race.use.node, race.use.owner
    if isinstance(node, ast.Call):
        assert isinstance(owner, ast.Attribute)
        return f"{_text(race, owner.value)}.{race.table}.get({_text(race, node.args[0])}{tail})"
    assert isinstance(node, ast.Subscript)
    return f"{_text(race, owner)}.get({_text(race, node.slice)}{tail})"


def _follows(place: Place, guard: ast.If, use: Use) -> bool:
    """Whether the use's statement comes right after the guard."""
    pending = [place.node.body]
    while pending:
        block = pending.pop()
        for statement, following in pairwise(block):
            if statement is guard:
                return following is use.statement
        pending.extend(inner for statement in block for inner in inner_blocks(statement))
    return False


def _is_set(race: Race) -> bool:
    """Whether all that is ever assigned to the container are new sets."""
    found: list[bool] = []
    for entry in race.cls.family():
        for method in entry.methods.values():
            place = place_of(entry.world, entry.module, method)
            for node in () if place is None else place.nodes(ast.Assign, ast.AnnAssign):
                match node:
                    case (
                        ast.Assign(targets=[ast.Attribute(attr=attr)], value=value)
                        | ast.AnnAssign(target=ast.Attribute(attr=attr), value=ast.expr() as value)
                    ) if attr == race.table:
                        found.append(_makes_set(value))
                    case _:
                        pass
    return bool(found) and all(found)


def _makes_set(value: ast.expr) -> bool:
    match value:
        case ast.Set() | ast.SetComp() | ast.Call(func=ast.Name(id="set")):
            return True
        case _:
            return False


def _statement_of(place: Place, node: ast.AST) -> ast.stmt | None:
    """The innermost statement that a node is, or stands in."""
    found: ast.stmt | None = None
    for statement in place.body:
        if isinstance(statement, ast.stmt) and any(part is node for part in ast.walk(statement)):
            found = statement
    return found
