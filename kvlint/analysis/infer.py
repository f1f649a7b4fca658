"""Inference of a class's status protocol: enum, table, writers and readers, from what the code does with them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kvlint.analysis.conclusions import receiver_name
from kvlint.analysis.subject import StatusEnum, Subject, status_enum
from kvlint.analysis.transition import Signature, TransitionTable, transition_table
from kvlint.config import ProtocolOverride
from kvlint.semantics.constants import EnumInfo, enum_info, member_of
from kvlint.semantics.hierarchy import (
    ClassInfo,
    Method,
    annotation_class,
    class_info,
    classes_of,
    parameters,
    resolve_class,
)
from kvlint.semantics.module import Function, Module
from kvlint.semantics.world import Symbol, World, dotted_name


@dataclass(frozen=True, eq=False)
class Writer:
    """A method through which statuses are written, as run on an instance of ``cls``.

    ``primary`` where it stores into the table itself or overrides a method that
    does; the others only pass a status on.
    """

    cls: ClassInfo
    method: Method
    subject: Subject
    signature: Signature
    primary: bool

    @property
    def name(self) -> str:
        """The method's name."""
        return self.method.node.name

    @property
    def table(self) -> TransitionTable:
        """Its transition table."""
        return transition_table(self.cls.world, self.subject, self.cls, self.method, self.signature)


def override_of(world: World) -> ProtocolOverride | None:
    """The first configured protocol, None where nothing is configured."""
    return world.config.protocol[0] if world.config.protocol else None


def status_enum_of(cls: ClassInfo) -> StatusEnum | None:
    """``cls`` as a status enum, roles from the configuration where it names this class."""
    info = enum_info(cls)
    if info is None:
        return None
    for override in cls.world.config.protocol:
        if override.status_enum in {None, cls.name}:
            failures = tuple(name for name in override.failure if name in info.values) or None
            successes = tuple(name for name in override.success if name in info.values) or None
            if override.status_enum == cls.name or failures or successes:
                return _kept(cls.world, info, failures, successes)
    return _kept(cls.world, info, None, None)


def _kept(
    world: World, info: EnumInfo, failures: tuple[str, ...] | None, successes: tuple[str, ...] | None
) -> StatusEnum | None:
    key = ("status enum", info, failures, successes)
    if key not in world.memo:
        world.memo[key] = status_enum(info, failures, successes)
    known = world.memo[key]
    return known if isinstance(known, StatusEnum) else None


def member_named(world: World, module: Module, expression: ast.expr) -> tuple[StatusEnum, str] | None:
    """The status enum and member that ``expression`` names in ``module``."""
    dotted = dotted_name(expression) if isinstance(expression, ast.Name | ast.Attribute) else None
    if dotted is None:
        return None
    found = member_of(world, module, dotted)
    if found is None:
        return None
    enum = status_enum_of(found[0].owner)
    return None if enum is None else (enum, found[1])


def enums_in(world: World, module: Module) -> tuple[StatusEnum, ...]:
    """The status enums whose members ``module`` mentions or that it defines, in order of appearance."""
    key = ("enums", module)
    if key not in world.memo:
        found: dict[StatusEnum, None] = {}
        tried: set[str] = set()
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                enum = status_enum_of(class_info(world, module, node)) if _is_constant_class(node) else None
                if enum is not None:
                    found.setdefault(enum)
            elif isinstance(node, ast.Attribute):
                owner = dotted_name(node.value)
                if owner and owner not in tried and owner.rpartition(".")[2][:1].isupper():
                    tried.add(owner)
                    cls = resolve_class(world, module, owner)
                    enum = status_enum_of(cls) if cls is not None else None
                    if enum is not None:
                        found.setdefault(enum)
        world.memo[key] = tuple(found)
    known = world.memo[key]
    return known if isinstance(known, tuple) else ()


def _is_constant_class(node: ast.ClassDef) -> bool:
    return any(isinstance(statement, ast.Assign) for statement in node.body)


def methods_of(cls: ClassInfo) -> Iterator[Method]:
    """Every method of the class and its known bases, overridden ones included, most derived first."""
    for entry in cls.family():
        for node in entry.methods.values():
            yield Method(entry, node)


def subject_of(cls: ClassInfo) -> Subject | None:
    """The status table that instances of ``cls`` keep, None where there is none."""
    key = ("subject", cls)
    memo = cls.world.memo
    if key not in memo:
        memo[key] = None
        memo[key] = _infer_subject(cls)
    known = memo[key]
    return known if isinstance(known, Subject) else None


def _infer_subject(cls: ClassInfo) -> Subject | None:
    if not cls.world.config.protocol and not any(entry.module.is_candidate for entry in cls.family()):
        return None  # the text of a protocol's module says so; parsing is not the cost, walking it is
    override = override_of(cls.world)
    votes: Counter[tuple[str, StatusEnum]] = Counter()
    for entry in cls.family():
        for attribute, enum in _evidence(entry):
            votes[(attribute, enum)] += 1
    if override is not None and override.table is not None:
        votes = Counter({key: count for key, count in votes.items() if key[0] == override.table})
    if not votes:
        return _infer_attribute(cls)
    (attribute, enum), _ = votes.most_common(1)[0]
    subject = Subject(enum, "table", attribute)
    return replace(subject, writers=frozenset(_writer_names(cls, subject)))


def _infer_attribute(cls: ClassInfo) -> Subject | None:
    """A status that the object keeps for itself, written through a method: ``self.status = status``."""
    kept: dict[str, StatusEnum] = {}
    writers: list[tuple[str, Method, str]] = []
    for method in methods_of(cls):
        for attribute, value in _own_stores(method):
            named = member_named(cls.world, method.owner.module, value)
            if named is not None:
                kept.setdefault(attribute, named[0])
            elif isinstance(value, ast.Name) and method.node.name not in {"__init__", "__post_init__"}:
                writers.append((attribute, method, value.id))
    votes: Counter[tuple[str, StatusEnum]] = Counter()
    names: dict[tuple[str, StatusEnum], set[str]] = {}
    for attribute, method, name in writers:
        own = {argument.arg for argument in parameters(method.node)[1:]}
        enum = _enum_of_parameter(method.owner, method.node, name) or kept.get(attribute)
        if enum is not None and name in own:
            votes[(attribute, enum)] += 1
            names.setdefault((attribute, enum), set()).add(method.node.name)
    if not votes:
        return None
    (attribute, enum), _ = votes.most_common(1)[0]
    return Subject(enum, "attribute", attribute, frozenset(names[(attribute, enum)]))


def _own_stores(method: Method) -> Iterator[tuple[str, ast.expr]]:
    """(attribute, value) of every ``self.attribute = value`` in a method."""
    receiver = receiver_name(method.node)
    for part in method.owner.module.nodes_of(method.node):
        match part:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=owner), attr=attribute)], value=value):
                if owner == receiver:
                    yield attribute, value
            case _:
                pass


def attribute_subjects(world: World, module: Module) -> tuple[Subject, ...]:
    """Statuses kept in attributes of records (``session.state.status``): written live as well as failed."""
    key = ("attribute subjects", module)
    if key not in world.memo:
        found: dict[tuple[str, StatusEnum], set[str]] = {}
        for node in module.nodes:
            match node:
                case ast.Assign(targets=[ast.Attribute(attr=attribute)], value=value):
                    named = member_named(world, module, value)
                    if named is not None:
                        found.setdefault((attribute, named[0]), set()).add(named[1])
                case _:
                    pass
        own = {
            (subject.attribute, subject.enum): subject
            for cls in managers_in(world, module)
            if (subject := subject_of(cls)) is not None and subject.kind == "attribute"
        }
        for attribute, enum in found:
            members = found[(attribute, enum)]
            live = members - set(enum.terminals)
            if live and members & set(enum.failures) and (attribute, enum) not in own:
                own[(attribute, enum)] = Subject(enum, "attribute", attribute)
        world.memo[key] = tuple(own.values())
    known = world.memo[key]
    return known if isinstance(known, tuple) else ()


def _evidence(cls: ClassInfo) -> tuple[tuple[str, StatusEnum], ...]:
    """Each sign in the class's own body that an attribute maps keys to statuses of an enum."""
    key = ("evidence", cls)
    memo = cls.world.memo
    if key not in memo:
        found: list[tuple[str, StatusEnum]] = []
        for node in cls.methods.values():
            found.extend(_evidence_in(cls, node))
        memo[key] = tuple(found)
    known = memo[key]
    return known if isinstance(known, tuple) else ()


def _evidence_in(cls: ClassInfo, node: Function) -> Iterator[tuple[str, StatusEnum]]:
    for part in cls.module.nodes_of(node):
        match part:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    attribute = stored_attribute(target)
                    if attribute is not None:
                        enum = _enum_of_value(cls, node, value)
                        if enum is not None:
                            yield attribute, enum
            case ast.AnnAssign(target=ast.Attribute(attr=attribute), annotation=annotation):
                enum = _enum_of_annotation(cls, annotation)
                if enum is not None:
                    yield attribute, enum
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=attribute), attr="setdefault"), args=[_, value]):
                enum = _enum_of_value(cls, node, value)
                if enum is not None:
                    yield attribute, enum
            case _:
                pass


def stored_attribute(target: ast.expr) -> str | None:
    """The attribute of ``….attribute[key] = …``; a nested ``….attribute[key][other]`` is none."""
    match target:
        case ast.Subscript(value=ast.Attribute(attr=attribute)):
            return attribute
        case _:
            return None


def _enum_of_annotation(cls: ClassInfo, annotation: ast.expr) -> StatusEnum | None:
    if isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Tuple):
        name = annotation_class(annotation.slice.elts[-1])
        return _enum_named(cls, name)
    return None


def _enum_named(cls: ClassInfo, dotted: str | None) -> StatusEnum | None:
    named = resolve_class(cls.world, cls.module, dotted) if dotted else None
    return status_enum_of(named) if named is not None else None


def _enum_of_value(cls: ClassInfo, node: Function, value: ast.expr) -> StatusEnum | None:  # noqa: C901 - one arm a kind
    """The status enum a stored value belongs to: a member, or a parameter that carries one."""
    names: set[str] = set()
    for part in ast.walk(value):
        if isinstance(part, ast.Attribute):
            found = member_named(cls.world, cls.module, part)
            if found is not None:
                return found[0]
        if isinstance(part, ast.Name):
            names.add(part.id)
    for name in names:
        enum = _enum_of_parameter(cls, node, name)
        if enum is not None:
            return enum
    for name in names:
        for assigned in _assigned(node, name):
            if assigned is not value:
                for part in ast.walk(assigned):
                    enum = _enum_of_parameter(cls, node, part.id) if isinstance(part, ast.Name) else None
                    if enum is not None:
                        return enum
    return None


def _assigned(node: Function, name: str) -> Iterator[ast.expr]:
    for part in ast.walk(node):
        match part:
            case ast.Assign(targets=targets, value=value) if any(
                isinstance(target, ast.Name) and target.id == name for target in targets
            ):
                yield value
            case ast.NamedExpr(target=ast.Name(id=bound), value=value) if bound == name:
                yield value
            case _:
                pass


def _enum_of_parameter(cls: ClassInfo, node: Function, name: str) -> StatusEnum | None:
    for argument in parameters(node)[1:]:
        if argument.arg == name:
            enum = _enum_named(cls, annotation_class(argument.annotation))
            return enum or _compared_with(cls, node, name) or _passed_at(cls, node.name, _position(node, name), name)
    return None


def _position(node: Function, name: str) -> int:
    return [argument.arg for argument in parameters(node)].index(name) - 1


def _compared_with(cls: ClassInfo, node: Function, name: str) -> StatusEnum | None:
    for part in cls.module.nodes_of(node):
        if isinstance(part, ast.Compare):
            sides = [part.left, *part.comparators]
            if any(isinstance(side, ast.Name) and side.id == name for side in sides):
                for side in sides:
                    for inner in ast.walk(side):
                        found = member_named(cls.world, cls.module, inner) if isinstance(inner, ast.Attribute) else None
                        if found is not None:
                            return found[0]
        if isinstance(part, ast.Match) and isinstance(part.subject, ast.Name) and part.subject.id == name:
            for inner in ast.walk(part):
                found = member_named(cls.world, cls.module, inner) if isinstance(inner, ast.Attribute) else None
                if found is not None:
                    return found[0]
    return None


def _passed_at(cls: ClassInfo, method: str, position: int, name: str) -> StatusEnum | None:
    """The enum whose members callers in the same module pass for a parameter."""
    for call, argument in _calls_of(cls, method):
        del call
        for index, value in argument:
            if index in {position, name}:
                found = member_named(cls.world, cls.module, value)
                if found is not None:
                    return found[0]
    return None


def _calls_of(cls: ClassInfo, method: str) -> list[tuple[ast.Call, list[tuple[int | str, ast.expr]]]]:
    key = ("calls", cls.module)
    memo = cls.world.memo
    if key not in memo:
        index: dict[str, list[tuple[ast.Call, list[tuple[int | str, ast.expr]]]]] = {}
        for node in cls.module.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                arguments: list[tuple[int | str, ast.expr]] = list(enumerate(node.args))
                arguments.extend((keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg)
                index.setdefault(node.func.attr, []).append((node, arguments))
        memo[key] = index
    known = memo[key]
    return known.get(method, []) if isinstance(known, dict) else []


# -- writers -------------------------------------------------------------------


def _writer_names(cls: ClassInfo, subject: Subject) -> set[str]:
    """Names of the methods through which a status parameter reaches the table, directly or passed on."""
    names: set[str] = set()
    override = override_of(cls.world)
    if override is not None and override.writer is not None:
        names.add(override.writer)
    methods = [method for method in methods_of(cls) if len(parameters(method.node)) >= 3]
    names |= {method.node.name for method in methods if _stores_parameter(method.node, subject)}
    while True:
        more = {
            method.node.name
            for method in methods
            if method.node.name not in names and _passes_on(method.node, names, subject, method.owner)
        }
        if not more:
            return names
        names |= more


def _stores_parameter(node: Function, subject: Subject) -> bool:
    own = {argument.arg for argument in parameters(node)[1:]}
    for part in ast.walk(node):
        key: ast.expr | None = None
        value: ast.expr | None = None
        match part:
            case ast.Assign(targets=[ast.Subscript(value=ast.Attribute(attr=attr), slice=key)], value=value):
                pass
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=attr), attr=called), args=[key, value]):
                if called not in {"setdefault", "__setitem__"}:
                    continue
            case _:
                aliased = _aliased_store(node, part, subject)
                if aliased is None:
                    continue
                attr, key, value = subject.attribute, *aliased
        if attr == subject.attribute and isinstance(key, ast.Name) and key.id in own and value is not None:
            others = own - {key.id}
            if _depends_on(node, value, others):
                return True
    return False


def _aliased_store(node: Function, part: ast.AST, subject: Subject) -> tuple[ast.expr, ast.expr] | None:
    """``table = self.statuses; table[key] = value``."""
    match part:
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=key)], value=value):
            for assigned in _assigned(node, name):
                if isinstance(assigned, ast.Attribute) and assigned.attr == subject.attribute:
                    return key, value
        case _:
            pass
    return None


def _depends_on(node: Function, value: ast.expr, names: set[str]) -> bool:
    """Whether ``value`` is computed from, or chosen by a test of, one of the parameters ``names``."""
    mentioned = {part.id for part in ast.walk(value) if isinstance(part, ast.Name)}
    if mentioned & names:
        return True
    for name in mentioned:
        for assigned in _assigned(node, name):
            if {part.id for part in ast.walk(assigned) if isinstance(part, ast.Name)} & names:
                return True
    return False


def _passes_on(node: Function, names: set[str], subject: Subject, cls: ClassInfo) -> bool:
    own = {argument.arg for argument in parameters(node)[1:]}
    receiver = receiver_name(node)
    for part in ast.walk(node):
        match part:
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in names:
                on_self = isinstance(owner, ast.Name) and owner.id == receiver
                on_super = isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name) and owner.func.id == "super"
                arguments = [*part.args, *(keyword.value for keyword in part.keywords)]
                passed = {argument.id for argument in arguments if isinstance(argument, ast.Name)} & own
                if (on_self or on_super) and len(passed) >= 2 and _status_parameter(cls, node, passed, subject):
                    return True
            case _:
                pass
    return False


def _status_parameter(cls: ClassInfo, node: Function, among: set[str], subject: Subject) -> str | None:
    named = [argument for argument in parameters(node)[1:] if argument.arg in among]
    for argument in named:
        if _enum_named(cls, annotation_class(argument.annotation)) is subject.enum:
            return argument.arg
    for argument in named:
        if _compared_with(cls, node, argument.arg) is subject.enum:
            return argument.arg
    for argument in named:
        if _passed_at(cls, node.name, _position(node, argument.arg), argument.arg) is subject.enum:
            return argument.arg
    return None


def writer_for(cls: ClassInfo, name: str, after: ClassInfo | None = None) -> Writer | None:
    """The writer that ``name`` reaches on an instance of ``cls``, None where that is no known writer."""
    subject = subject_of(cls)
    if subject is None or name not in subject.writers:
        return None
    method = cls.lookup(name, after=after)
    return None if method is None else writer_of(cls, method, subject)


def writer_of(cls: ClassInfo, method: Method, subject: Subject) -> Writer | None:
    """``method`` as a writer run on an instance of ``cls``, None where its parameters cannot be told."""
    key = ("writer", cls, method.node, subject)
    memo = cls.world.memo
    if key not in memo:
        signature = _signature(method, subject)
        primary = _is_primary(cls, method, subject)
        memo[key] = None if signature is None else Writer(cls, method, subject, signature, primary)
    known = memo[key]
    return known if isinstance(known, Writer) else None


def _is_primary(cls: ClassInfo, method: Method, subject: Subject) -> bool:
    if subject.kind == "attribute":
        return method.node.name in subject.writers
    if _stores_parameter(method.node, subject):
        return True
    above = method.owner.lookup(method.node.name, after=method.owner)
    return above is not None and _is_primary(cls, above, subject)


def _signature(method: Method, subject: Subject) -> Signature | None:
    node, owner = method.node, method.owner
    named = [argument.arg for argument in parameters(node)]
    if subject.kind == "attribute":
        stored = [
            value.id
            for attribute, value in _own_stores(method)
            if attribute == subject.attribute and isinstance(value, ast.Name) and value.id in named[1:]
        ]
        return Signature(named[0], None, stored[0]) if stored and method.kind == "instance" else None
    if method.kind == "static" or len(named) < 3:
        return None
    candidates = set(named[1:])
    status = _status_parameter(owner, node, candidates, subject)
    room = _key_parameter(node, subject, candidates)
    if status is None:
        status = _stored_parameter(node, subject, candidates - {room} if room else candidates)
    if status is None:
        # An override that only passes its parameters on takes them in the order of what it overrides.
        above = owner.lookup(node.name, after=owner)
        inherited = None if above is None else _signature(above, subject)
        if above is None or inherited is None:
            return None
        names = [argument.arg for argument in parameters(above.node)]
        status = _same_place(named, names, inherited.status)
        room = room or _same_place(named, names, inherited.room)
    if room is None or room == status:
        others = [name for name in named[1:] if name != status]
        room = others[0] if others else None
    return None if status is None or room is None else Signature(named[0], room, status)


def _same_place(named: list[str], names: list[str], wanted: str | None) -> str | None:
    if wanted is None:
        return None
    if wanted in named:
        return wanted
    index = names.index(wanted)
    return named[index] if index < len(named) else None


def _key_parameter(node: Function, subject: Subject, candidates: set[str]) -> str | None:
    """The parameter used as a key of the status table."""
    for part in ast.walk(node):
        match part:
            case ast.Subscript(value=ast.Attribute(attr=attr), slice=ast.Name(id=name)):
                pass
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=attr)), args=[ast.Name(id=name), *_]):
                pass
            case ast.Compare(
                left=ast.Name(id=name), ops=[ast.In() | ast.NotIn()], comparators=[ast.Attribute(attr=attr)]
            ):
                pass
            case _:
                continue
        if attr == subject.attribute and name in candidates:
            return name
    return None


def _stored_parameter(node: Function, subject: Subject, candidates: set[str]) -> str | None:
    for part in ast.walk(node):
        match part:
            case ast.Assign(targets=[ast.Subscript(value=ast.Attribute(attr=attr))], value=value):
                if attr == subject.attribute:
                    for inner in ast.walk(value):
                        if isinstance(inner, ast.Name) and inner.id in candidates:
                            return inner.id
            case _:
                pass
    return None


def own_writers(cls: ClassInfo) -> tuple[Writer, ...]:
    """The primary writers that the class's own body defines, in source order."""
    subject = subject_of(cls)
    if subject is None:
        return ()
    found = []
    for node in cls.methods.values():
        if node.name in subject.writers:
            writer = writer_of(cls, Method(cls, node), subject)
            if writer is not None and writer.primary:
                found.append(writer)
    return tuple(found)


def carries_live_statuses(writer: Writer) -> bool:
    """Whether some caller in the writer's module passes it a live member and some caller a failure.

    A setter of a record that is only ever given ends is no writer of a protocol.
    """
    enum = writer.subject.enum
    passed = {
        found[1]
        for _, arguments in _calls_of(writer.method.owner, writer.name)
        for _, value in arguments
        if (found := member_named(writer.cls.world, writer.method.owner.module, value)) is not None and found[0] is enum
    }
    return bool(passed - set(enum.terminals)) and bool(passed & set(enum.failures))


def managers_in(world: World, module: Module) -> tuple[ClassInfo, ...]:
    """The classes of ``module`` that keep a status table."""
    return tuple(cls for cls in classes_of(world, module) if subject_of(cls) is not None)


__all__ = ["Symbol", "Writer", "enums_in", "managers_in", "own_writers", "subject_of", "writer_for"]
