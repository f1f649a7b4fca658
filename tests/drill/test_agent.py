"""The agent in place of NIXL's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kvlint.drill.agent import Transfers, agent_class

from . import sides

DESCRIBED = ("register_memory", "get_reg_descs", "get_xfer_descs")


class Nixl:
    """In place of nixl_agent: it notes what it is told."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[tuple[Any, ...]] = []
        self.states: list[Any] = []

    def register_memory(self, reg_list: Any, mem_type: Any = None, backends: Any = ()) -> str:
        self.calls.append((reg_list, mem_type, backends))
        return "registered"

    def get_reg_descs(self, descs: Any, mem_type: Any = None) -> str:
        self.calls.append((descs, mem_type))
        return "described"

    get_xfer_descs = get_reg_descs

    def prep_xfer_dlist(self, agent_name: str, xfer_list: Any, mem_type: Any = None, backends: Any = ()) -> str:
        self.calls.append((agent_name, xfer_list, mem_type, backends))
        return "prepared"

    def _state(self) -> str:
        state = self.states.pop(0)
        if isinstance(state, Exception):
            raise state
        return str(state)

    def transfer(self, handle: object, notif_msg: bytes = b"") -> str:
        self.calls.append((handle, notif_msg))
        return self._state()

    def check_xfer_state(self, handle: object) -> str:
        return self._state()

    def release_xfer_handle(self, handle: object) -> str:
        self.calls.append((handle,))
        return "released"


def agent(least: float = 0.0, on_host: bool = True) -> tuple[Any, Transfers]:
    transfers = Transfers(least)
    return agent_class(Nixl, transfers, on_host)("name"), transfers


@pytest.mark.parametrize(("on_host", "kind"), [(True, "DRAM"), (False, "VRAM")])
@pytest.mark.parametrize("name", DESCRIBED)
def test_vram_is_dram_on_the_host_however_it_is_given(name: str, on_host: bool, kind: str) -> None:
    made, _ = agent(on_host=on_host)
    call = getattr(made, name)
    first = "reg_list" if name == "register_memory" else "descs"
    answers = {call([1], "VRAM"), call([1], mem_type="VRAM"), call(**{first: [1], "mem_type": "VRAM"})}
    assert len(answers) == 1
    assert [given[:2] for given in made.calls] == [([1], kind)] * 3


@pytest.mark.parametrize(("on_host", "kind"), [(True, "DRAM"), (False, "VRAM")])
def test_a_prepared_list_is_told_too(on_host: bool, kind: str) -> None:
    made, _ = agent(on_host=on_host)
    assert made.prep_xfer_dlist("peer", [1], "VRAM", ["UCX"]) == "prepared"
    assert made.prep_xfer_dlist("peer", [1], mem_type="VRAM") == "prepared"
    assert made.prep_xfer_dlist(agent_name="", xfer_list=[1], mem_type="DRAM") == "prepared"
    assert made.calls == [("peer", [1], kind, ["UCX"]), ("peer", [1], kind, ()), ("", [1], "DRAM", ())]


def test_what_is_not_known_is_passed_on() -> None:
    made, _ = agent()
    array = np.zeros((2, 3))
    assert made.register_memory(array, None, ["UCX"]) == "registered"
    assert made.get_xfer_descs(array) == "described"
    assert made.name == "name"
    assert made.calls[0][0] is array
    assert [given[1] for given in made.calls] == [None, None]


def test_transfers_are_counted_until_they_are_over(clock: sides.Clock) -> None:
    made, transfers = agent()
    first, second, third = object(), object(), object()
    made.states = ["PROC", "DONE", "PROC", "PROC", "ERR"]
    assert [made.transfer(first), made.transfer(second, b"note"), made.transfer(third, notif_msg=b"x")] == [
        "PROC",
        "DONE",
        "PROC",
    ]
    assert transfers.posted == 3
    assert transfers.under_way == {id(first): 1000.0, id(third): 1000.0}
    assert made.calls == [(first, b""), (second, b"note"), (third, b"x")]
    assert [made.check_xfer_state(first), made.check_xfer_state(first)] == ["PROC", "ERR"]
    assert list(transfers.under_way) == [id(third)]
    assert made.release_xfer_handle(third) == "released"
    assert transfers.under_way == {}
    assert made.release_xfer_handle(third) == "released"


def test_a_transfer_seems_to_take_its_time(clock: sides.Clock) -> None:
    made, transfers = agent(least=0.5)
    handle = object()
    made.states = ["DONE"] * 4
    assert made.transfer(handle) == "PROC"
    clock.now += 0.4
    assert made.check_xfer_state(handle) == "PROC"
    assert transfers.under_way == {id(handle): 1000.0}
    clock.now += 0.1
    assert made.check_xfer_state(handle) == "DONE"
    assert transfers.under_way == {}
    # Nothing is known of it any more.
    assert made.check_xfer_state(handle) == "DONE"


def test_an_error_is_told_at_once(clock: sides.Clock) -> None:
    made, transfers = agent(least=0.5)
    made.states = ["ERR"]
    assert made.transfer(object()) == "ERR"
    assert transfers.under_way == {}


def test_a_transfer_that_raises_is_not_under_way(clock: sides.Clock) -> None:
    made, transfers = agent()
    handle = object()
    made.states = [RuntimeError("no"), "PROC", RuntimeError("gone")]
    with pytest.raises(RuntimeError, match="no"):
        made.transfer(handle)
    assert transfers.under_way == {}
    assert made.transfer(handle) == "PROC"
    with pytest.raises(RuntimeError, match="gone"):
        made.check_xfer_state(handle)
    assert transfers.under_way == {}
    assert transfers.posted == 2
