"""Stand-ins refuse what nobody foresaw."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import Any, Optional, Union

import pytest

from kvlint.loading import UnforeseenUse
from kvlint.loading.stand_in import Overlay, Placeholder, StandIn, StandInModule

from .driving import Idle


def _derive(value: Any) -> object:
    return types.new_class("Derived", (value,))


def _with(value: Any) -> None:
    with value:
        raise AssertionError("entered")


# What is done to a stand-in, and whether a StandIn refuses it as a Placeholder does.
USES: dict[str, tuple[Callable[[Any], object], bool]] = {
    "call": (lambda value: value(1, two=2), True),
    "attribute": (lambda value: value.anything, True),
    "attribute with a default": (lambda value: getattr(value, "anything", None), True),
    "hasattr": (lambda value: hasattr(value, "anything"), True),
    "base class": (_derive, True),
    "isinstance": (lambda value: isinstance(1, value), True),
    "issubclass": (lambda value: issubclass(int, value), True),
    "truth": (bool, False),
    "not": (operator.not_, False),
    "equality": (lambda value: value == 1, False),
    "inequality": (lambda value: value != 1, False),
    "membership of a list": (lambda value: value in (1, 2), False),
    "order": (lambda value: value < 1, True),
    "text": (str, False),
    "format": (lambda value: f"{value}", False),
    "number": (int, True),
    "float": (float, True),
    "index": (lambda value: [0][value], True),
    "length": (len, True),
    "iteration": (list, True),
    "unpacking": (lambda value: [*value], True),
    "next": (next, True),
    "in": (lambda value: 1 in value, True),
    "subscript": (lambda value: value[0], True),
    "subscript assignment": (lambda value: operator.setitem(value, 0, 0), True),
    "subscript deletion": (lambda value: operator.delitem(value, 0), True),
    "with": (_with, True),
    "sum": (lambda value: value + 1, True),
    "reflected sum": (lambda value: 1 + value, True),
    "negation": (operator.neg, True),
    "shift": (lambda value: 1 << value, True),
    "maximum": (lambda value: max(value, 1), True),
}


@pytest.mark.parametrize("use", USES)
def test_a_placeholder_refuses_every_use(use: str) -> None:
    with pytest.raises(UnforeseenUse, match=r"^torch\.nn(\.anything)? is a stand-in that does not know this use: "):
        USES[use][0](Placeholder("torch.nn"))


@pytest.mark.parametrize("use", [use for use, (_, both) in USES.items() if both])
def test_a_stand_in_refuses_to_be_operated_on(use: str) -> None:
    with pytest.raises(UnforeseenUse, match=r"^server_args(\.anything)? is a stand-in that does not know this use: "):
        USES[use][0](StandIn("server_args", known=1))


def test_a_stand_in_is_there_and_is_itself() -> None:
    one, other = StandIn("one", value=1), StandIn("one", value=1)
    assert one
    assert one == one
    assert one != other
    assert len({one, other}) == 2
    assert one.value == 1
    assert str(one) == "<stand-in for one>"
    vars(one)["other"] = 2
    assert one.other == 2


def test_what_is_not_special_to_python_is_refused_even_if_private() -> None:
    with pytest.raises(UnforeseenUse, match=r"one\._private"):
        StandIn("one")._private  # noqa: B018
    assert not hasattr(StandIn("one"), "__deepcopy__")


def test_an_unforeseen_use_is_no_exception_that_a_worker_would_catch() -> None:
    assert not issubclass(UnforeseenUse, Exception)


def test_placeholders_serve_as_annotations() -> None:
    placeholder = Placeholder("sglang.Req")
    assert Optional[placeholder] == Union[placeholder, None]  # noqa: UP007, UP045 (what older releases write)
    assert isinstance(placeholder | None, Placeholder)
    assert isinstance(None | placeholder, Placeholder)
    assert not hasattr(placeholder, "__path__")
    assert repr(placeholder) == "<stand-in for sglang.Req>"


def test_a_module_knows_some_names_and_holds_a_place_for_the_others() -> None:
    module = StandInModule("torch", {"int64": 8})
    assert vars(module)["int64"] == 8
    assert module.cuda is module.cuda
    assert not hasattr(module, "__path__")
    with pytest.raises(UnforeseenUse, match=r"torch\.cuda\.is_available is a stand-in .*: its value was read"):
        module.cuda.is_available()


@pytest.mark.parametrize("raised", [Idle, UnforeseenUse("torch", "it was called", None), ValueError])
def test_exceptions_pass_handlers_that_name_unknown_ones(raised: type[BaseException] | BaseException) -> None:
    torch = StandInModule("torch")
    with pytest.raises(raised if isinstance(raised, type) else type(raised)):  # noqa: PT012
        try:
            raise raised
        except (torch.OutOfMemoryError, torch.cuda.AcceleratorError, torch.error) as error:
            raise AssertionError from error
    assert torch.OutOfMemoryError is torch.OutOfMemoryError
    assert torch.OutOfMemoryError.__module__ == "torch"


def test_an_overlay_leaves_its_module_as_it_is() -> None:
    overlay = Overlay(operator, {"add": "replaced"})
    assert overlay.add == "replaced"
    assert overlay.sub is operator.sub
    assert overlay.__name__ == "operator"
    assert operator.add(1, 2) == 3
    with pytest.raises(AttributeError):
        overlay.nothing  # noqa: B018


def test_an_overlay_may_lie_over_any_object() -> None:
    overlay = Overlay(StandIn("engine", Lock="lock"), {"Thread": "thread"})
    assert (overlay.Lock, overlay.Thread, overlay.__name__) == ("lock", "thread", "StandIn")
