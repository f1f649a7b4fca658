"""Taking the objects of a built program under control, and putting them back as they were."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from typing import Any

from kvlint.explore.containers import ABSENT, CONTROLLED, Controlled, adopt
from kvlint.explore.control import Control
from kvlint.explore.operations import WHOLE
from kvlint.explore.primitive import Primitive
from kvlint.explore.stored_attributes import stored_attributes

_LIMIT = 10_000


class _Attribute:
    """An attribute that changes in runs, as operations on a shared thing."""

    def __init__(self, control: Control, owner: Any, name: str, label: str) -> None:
        self._control = control
        self.owner = owner
        self.name = name
        self._label = label
        self.resource = control.resource(label)

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        if owner is None:
            return self
        self._control.before(self.resource, "read", WHOLE, False)
        try:
            value = owner.__dict__[self.name]
        except KeyError:
            problem = AttributeError(self.name)
            self._control.note_read(self._control.content_of, (self,), self._control.content_of(self))
            self._control.after(problem)
            raise problem from None
        self._control.note_read(owner.__dict__.get, (self.name,), value)
        self._control.after(value)
        return value

    def __set__(self, owner: Any, value: Any) -> None:
        value = adopt(self._control, value, self._label)
        self._control.before(self.resource, "store", WHOLE, True)
        owner.__dict__[self.name] = value
        self.renewed()
        self._control.after(value)

    def __delete__(self, owner: Any) -> None:
        self._control.before(self.resource, "del", WHOLE, True)
        del owner.__dict__[self.name]
        self.renewed()
        self._control.after(None)

    def content(self) -> Hashable:
        """What the attribute holds, as a key."""
        control = self._control
        return control.identities.frozen(self.owner.__dict__.get(self.name, ABSENT), control.moment())

    def renewed(self) -> None:
        """The attribute was stored."""
        self._control.changed(self)


class Adopted:
    """The objects below some roots that code of the tree made, with their containers and locks controlled.

    ``roots`` has them by the name that is put before their attributes, "" for
    none; ``is_ours`` tells whether a class belongs to the tree.
    """

    def __init__(self, control: Control, roots: Mapping[str, Any], is_ours: Callable[[type], bool]) -> None:
        self._control = control
        self._is_ours = is_ours
        self._objects: list[tuple[Any, str]] = []
        self._contents: dict[int, tuple[Any, int]] = {}
        self._primitives: list[Primitive] = []
        self._attributes: list[_Attribute] = []
        self._seen: set[int] = set()
        self.tables: dict[str, Any] = {}
        for name, root in roots.items():
            self._visit(root, name)
        control.identities.controlled.update(id(found) for found, _ in self._objects)
        self._saved = [dict(vars(found)) for found, _ in self._objects]
        self._values = [list(map(id, saved.values())) for saved in self._saved]
        self._control_stored_attributes()
        self._note_contents()

    def _visit(self, found: Any, label: str) -> None:
        if id(found) in self._seen or len(self._seen) > _LIMIT:
            return
        self._seen.add(id(found))
        if isinstance(found, Primitive):
            self._name(found, label)
        elif issubclass(type(found), Controlled):
            # Those of one list have one label, and each is to be put back.
            self.tables[label if label not in self.tables else f"{label} ({len(self.tables)})"] = found
            for value in _held(found):
                self._visit(value, label + "[…]")
        elif self._is_ours(type(found)) and hasattr(found, "__dict__") and not isinstance(found, Enum):
            self._visit_object(found, label)
        elif type(found) is tuple:
            for value in found:
                if type(value) in CONTROLLED:
                    self._control.limits.add(f"{label} is a tuple with a {type(value).__qualname__}, which is not seen")
                self._visit(value, f"{label}[…]")

    def _visit_object(self, found: Any, label: str) -> None:
        self._objects.append((found, label))
        for name, value in list(vars(found).items()):
            path = f"{label}.{name}" if label else name
            adopted = adopt(self._control, value, path)
            if adopted is not value:
                vars(found)[name] = adopted
            self._visit(adopted, path)
        self._visit_class(type(found))

    def _visit_class(self, kind: type) -> None:
        """What classes of the tree hold for all of their objects; slots are only told, as nothing can stand in them."""
        for each in kind.__mro__:
            if id(each) in self._seen or not self._is_ours(each):
                continue
            self._seen.add(id(each))
            if vars(each).get("__slots__"):
                self._control.limits.add(f"objects of {each.__qualname__} have slots, whose changes are not seen")
            for name, value in list(vars(each).items()):
                if type(value) in CONTROLLED and not name.startswith("__"):
                    adopted = adopt(self._control, value, f"{each.__qualname__}.{name}")
                    setattr(each, name, adopted)
                    self._visit(adopted, f"{each.__qualname__}.{name}")

    def _name(self, primitive: Any, label: str) -> None:
        uses, earlier = self._control.sharing.uses(label), primitive.resource.uses
        uses.shared |= earlier.shared
        uses.exposed |= earlier.exposed
        uses.waits_for_anything |= earlier.waits_for_anything
        primitive.resource.uses = uses
        self._primitives.append(primitive)
        inner = getattr(primitive, "_lock", None)
        if inner is not None:
            self._visit(inner, label)

    def _note_contents(self) -> None:
        control = self._control
        for table in _all_controlled(list(self.tables.values())):
            plain = table.plain()
            # So that the first run finds it laid out in memory as every other does.
            table.refill(plain)
            self._contents[table.resource.identity] = (plain, control.content_of(table))
        for primitive in self._primitives:
            self._contents[primitive.resource.identity] = (primitive.saved(), control.content_of(primitive))
        for holder in control.touched:
            holder.resource.touched = False
        control.touched.clear()

    def restore(self) -> None:
        """Put everything back as it was when it was adopted."""
        control = self._control
        touched, control.touched = control.touched, []
        for holder in touched:
            resource = holder.resource
            resource.touched = resource.stale = False
            saved = self._contents.get(resource.identity)
            if saved is None:
                continue  # It was made in a run.
            plain, resource.content = saved
            if isinstance(holder, Primitive):
                holder.put_back(plain)
            elif isinstance(holder, Controlled):
                holder.refill(plain)
        for (found, _), attributes, values in zip(self._objects, self._saved, self._values, strict=True):
            now = vars(found)
            if list(map(id, now.values())) != values:
                now.clear()
                now.update(attributes)
        for attribute in self._attributes:
            attribute.renewed()

    def _control_stored_attributes(self) -> None:
        """Attributes that code stores outside of constructors are operations from the first run on.

        What is stored and is as before at the end of a run would not be found by comparing.
        """
        stored = stored_attributes({type(found) for found, _ in self._objects})
        for (found, label), saved in zip(self._objects, self._saved, strict=True):
            names = [name for name in saved if name in stored]
            if names:
                self._attributes += _install(self._control, found, label, names)

    def control_changed_attributes(self) -> list[str]:
        """Make attributes that differ from what was adopted operations; their names, when there are new ones."""
        names = []
        known = {(id(attribute.owner), attribute.name) for attribute in self._attributes}
        for (found, label), saved, values in zip(self._objects, self._saved, self._values, strict=True):
            now = vars(found)
            if list(map(id, now.values())) == values:
                continue
            changed = [name for name in {**saved, **now} if now.get(name, self) is not saved.get(name, self)]
            changed = [name for name in changed if (id(found), name) not in known]
            if changed:
                names += [f"{label}.{name}" for name in changed]
                self._attributes += _install(self._control, found, label, changed)
        return names


def _install(control: Control, found: Any, label: str, names: list[str]) -> list[_Attribute]:
    attributes = {name: _Attribute(control, found, name, f"{label}.{name}") for name in names}
    kind = type(found)
    names_of_kind = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    found.__class__ = type(kind.__name__, (kind,), {**attributes, **names_of_kind})
    return list(attributes.values())


def _held(found: Any) -> list[Any]:
    if isinstance(found, dict):
        return list(dict.values(found))
    if isinstance(found, (list, deque)):
        return list(found.held())  # type: ignore[union-attr]
    return []


def _all_controlled(tables: list[Any]) -> list[Any]:
    found: dict[int, Any] = {}
    todo = list(tables)
    while todo:
        table = todo.pop()
        if issubclass(type(table), Controlled) and id(table) not in found:
            found[id(table)] = table
            todo += _held(table)
    return list(found.values())
