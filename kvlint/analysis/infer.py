"""Inference of a class's status protocol: enum, table, writers and readers, from what the code does with them."""

from __future__ import annotations

import ast
from collections import Counter

from msgspec import Struct
from msgspec.structs import replace

from kvlint.analysis.evidence import (
    calls_of,
    enum_of_parameter,
    member_named,
    methods_of,
    override_of,
    own_stores,
    table_evidence,
)
from kvlint.analysis.signatures import is_primary, signature_of, writer_names
from kvlint.analysis.subject import StatusEnum, Subject
from kvlint.analysis.transition import Signature, TransitionTable, transition_table
from kvlint.semantics.class_body import parameters
from kvlint.semantics.hierarchy import ClassInfo, Method, classes_of
from kvlint.semantics.module import Module
from kvlint.semantics.world import World


class Writer(Struct, frozen=True, eq=False, dict=True):
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
        for attribute, enum in table_evidence(entry):
            votes[(attribute, enum)] += 1
    if override is not None and override.table is not None:
        votes = Counter({key: count for key, count in votes.items() if key[0] == override.table})
    if not votes:
        return _infer_attribute(cls)
    (attribute, enum), _ = votes.most_common(1)[0]
    subject = Subject(enum, "table", attribute)
    return replace(subject, writers=frozenset(writer_names(cls, subject)))


def _infer_attribute(cls: ClassInfo) -> Subject | None:
    """A status that the object keeps for itself, written through a method: ``self.status = status``."""
    kept: dict[str, StatusEnum] = {}
    writers: list[tuple[str, Method, str]] = []
    for method in methods_of(cls):
        for attribute, value in own_stores(method):
            named = member_named(cls.world, method.owner.module, value)
            if named is not None:
                kept.setdefault(attribute, named[0])
            elif isinstance(value, ast.Name) and method.node.name not in {"__init__", "__post_init__"}:
                writers.append((attribute, method, value.id))
    votes: Counter[tuple[str, StatusEnum]] = Counter()
    names: dict[tuple[str, StatusEnum], set[str]] = {}
    for attribute, method, name in writers:
        own = {argument.arg for argument in parameters(method.node)[1:]}
        enum = enum_of_parameter(method.owner, method.node, name) or kept.get(attribute)
        if enum is not None and name in own:
            votes[(attribute, enum)] += 1
            names.setdefault((attribute, enum), set()).add(method.node.name)
    if not votes:
        return None
    (attribute, enum), _ = votes.most_common(1)[0]
    return Subject(enum, "attribute", attribute, frozenset(names[(attribute, enum)]))


def attribute_subjects(world: World, module: Module) -> tuple[Subject, ...]:
    """Statuses kept in attributes of records (``session.state.status``): written live as well as failed."""
    key = ("attribute subjects", module)
    if key not in world.memo:
        found: dict[tuple[str, StatusEnum], set[str]] = {}
        for node in module.nodes_of_kind(ast.Assign):
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


# -- writers -------------------------------------------------------------------


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
        signature = signature_of(method, subject)
        primary = is_primary(cls, method, subject)
        memo[key] = None if signature is None else Writer(cls, method, subject, signature, primary)
    known = memo[key]
    return known if isinstance(known, Writer) else None


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
        for _, arguments in calls_of(writer.method.owner, writer.name)
        for _, value in arguments
        if (found := member_named(writer.cls.world, writer.method.owner.module, value)) is not None and found[0] is enum
    }
    return bool(passed - set(enum.terminals)) and bool(passed & set(enum.failures))


def managers_in(world: World, module: Module) -> tuple[ClassInfo, ...]:
    """The classes of ``module`` that keep a status table."""
    return tuple(cls for cls in classes_of(world, module) if subject_of(cls) is not None)
