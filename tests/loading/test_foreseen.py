"""What the stand-ins for other modules answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kvlint.loading import Hooks, Transfer, UnforeseenUse
from kvlint.loading.foreseen import other_modules, server_args
from kvlint.loading.network import BootstrapServer, Wire


@pytest.fixture
def hooks() -> Hooks:
    return Hooks()


@pytest.fixture
def wire(hooks: Hooks) -> Wire:
    return Wire(hooks)


@pytest.fixture
def modules(hooks: Hooks, wire: Wire) -> Mapping[str, Any]:
    return other_modules(hooks, wire, BootstrapServer())


def test_helpers_of_sglang_do_what_sglangs_do(modules: Mapping[str, Any]) -> None:
    utils = modules["sglang.srt.utils.common"]
    assert [utils.ceil_align(number, 4) for number in (0, 1, 4, 5)] == [0, 4, 4, 8]
    assert utils.run_with_deadline(lambda: "done", timeout_s=3, what="it") == "done"
    assert not utils.is_npu()
    assert utils.get_int_env_var("SGLANG_X", 3) == 3
    assert (utils.get_ip(), utils.get_local_ip_auto(), utils.get_local_ip_by_remote()) == ("127.0.0.1",) * 3
    assert utils.maybe_wrap_ipv6_address("::1") == "::1"
    assert utils.format_tcp_address("host", 1) == "tcp://host:1"
    assert utils.get_free_port() != 30000


def test_a_trace_that_is_off_takes_everything(modules: Mapping[str, Any]) -> None:
    trace = modules["sglang.srt.observability.trace"].TraceReqContext(rid="1", role="Sender")
    assert not trace.tracing_enable
    assert trace.copy_for_thread() is trace
    trace.trace_req_start()
    trace.trace_req_finish()
    trace.abort(abort_info={"reason": "none"})
    with pytest.raises(UnforeseenUse, match=r"TraceNullContext\.trace_event"):
        trace.trace_event("x")


def test_there_is_one_rank(modules: Mapping[str, Any]) -> None:
    arguments, context = server_args(), modules["sglang.srt.runtime_context"]
    for one in (arguments, context.get_parallel()):
        assert (one.pp_size, one.dp_size, one.nnodes, one.dist_init_addr, one.pp_group.world_size) == (1, 1, 1, None, 1)
    assert context.get_parallel().attn_cp_rank == 0
    assert context.get_serving().port == arguments.port
    assert context.get_disagg().disaggregation_bootstrap_port == arguments.disaggregation_bootstrap_port
    assert modules["sglang.srt.distributed"].get_pp_group() is arguments.pp_group
    assert modules["sglang.srt.layers.dp_attention"].get_attention_tp_size() == 1
    with pytest.raises(UnforeseenUse, match=r"get_schedule\(\)\.other"):
        context.get_schedule().other  # noqa: B018


def test_torch_sets_a_device_and_does_nothing_else(modules: Mapping[str, Any]) -> None:
    torch = modules["torch"]
    assert torch.get_device_module("cuda").set_device(0) is None
    with pytest.raises(UnforeseenUse, match=r"torch\.get_device_module\(\)\.synchronize"):
        torch.get_device_module().synchronize()


def test_an_agent_moves_nothing_and_asks_how_it_went(modules: Mapping[str, Any], hooks: Hooks) -> None:
    api = modules["nixl._api"]
    config = api.nixl_agent_config(backends=[], sync_mode=api.nixl_thread_sync_t.NIXL_THREAD_SYNC_STRICT)
    mine, peer = api.nixl_agent("a", config), api.nixl_agent("b")
    assert mine.name != peer.name
    assert mine.add_remote_agent(peer.get_agent_metadata()) == peer.name
    assert mine.check_remote_metadata(peer.name)
    assert mine.get_new_notifs() == {}
    assert mine.send_notif(peer.name, b"x") is None
    memory = mine.register_memory([(0, 1)], "VRAM")
    assert (memory.described, memory.memory) == ([(0, 1)], "VRAM")
    assert mine.deregister_memory(memory) is None
    prepared = mine.prep_xfer_dlist(peer.name, [(0, 1)], "VRAM")
    transfer = mine.make_prepped_xfer("WRITE", memory, [0], prepared, [0], b"note")
    assert (transfer.peer, transfer.notification, transfer.posted) == (peer.name, b"note", False)
    posted: list[Transfer] = []
    hooks.posted, hooks.transfer_state = posted.append, lambda of: "ERR" if of is transfer else "DONE"
    assert mine.transfer(transfer) == "PROC"
    assert posted == [transfer]
    assert mine.check_xfer_state(transfer) == "ERR"
    mine.release_xfer_handle(transfer)
    mine.release_dlist_handle(prepared)
    mine.remove_remote_agent(peer.name)
    with pytest.raises(UnforeseenUse, match=r"nixl\._api\.nixl_agent\.estimate_xfer_cost"):
        mine.estimate_xfer_cost(transfer)
    assert issubclass(modules["nixl._bindings"].nixlBackendError, Exception)


def test_sockets_hand_over_what_is_sent(modules: Mapping[str, Any], hooks: Hooks, wire: Wire) -> None:
    zmq, sent = modules["zmq"], list[tuple[str, list[bytes]]]()
    hooks.sent = lambda endpoint, frame: sent.append((endpoint, frame))
    context = zmq.Context()
    context.set(zmq.MAX_SOCKETS, 1)
    port, listening = modules["sglang.srt.utils"].get_zmq_socket_on_host(context, zmq.PULL, host="127.0.0.1")
    assert listening is wire.bound[-1]
    other = context.socket(zmq.PUSH)
    other.bind("tcp://*:1")
    other.setsockopt(zmq.LINGER, 0)
    other.connect(f"tcp://127.0.0.1:{port}")
    other.send_multipart((b"a", b"b"), flags=zmq.NOBLOCK)
    assert sent == [(f"tcp://127.0.0.1:{port}", [b"a", b"b"])]
    assert wire.captured(lambda: other.send_multipart([b"c"])) == [[b"c"]]
    assert len(sent) == 1


def test_sockets_close_and_refuse_what_nobody_foresaw(modules: Mapping[str, Any]) -> None:
    zmq = modules["zmq"]
    context = zmq.Context(1)
    socket = context.socket(zmq.PUSH)
    monitor = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    with pytest.raises(zmq.Again):
        monitor.recv_multipart(zmq.NOBLOCK)
    monitor.close()
    socket.close(linger=0)
    context.term()
    assert socket.closed
    assert zmq.error.Again is zmq.Again
    uses: list[Callable[[], object]] = [lambda: socket.poll(1), lambda: zmq.Poller(), lambda: socket.recv_multipart()]
    for use in uses:
        with pytest.raises(UnforeseenUse, match=r"zmq\.(Socket|Poller)"):
            use()


def test_what_is_captured_ends_with_an_exception_too(modules: Mapping[str, Any], wire: Wire) -> None:
    def fail() -> None:
        raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        wire.captured(fail)
    assert wire.capture is None


def test_the_bootstrap_server_answers_for_who_registered(modules: Mapping[str, Any]) -> None:
    requests = modules["requests"]
    session = requests.Session()
    session.mount("http://", requests.adapters.HTTPAdapter(pool_connections=1))
    address = "http://127.0.0.1:8998/route"
    assert requests.put(address, json={"rank_ip": "1.2.3.4", "rank_port": 5, "pp_size": 1}).status_code == 200
    assert session.get(f"{address}?engine_rank=0&target_dp_group=0").json() == {"rank_ip": "1.2.3.4", "rank_port": 5}
    assert session.get(f"{address}?engine_rank=-1&target_dp_group=-1").json()["pp_size"] == 1
    assert issubclass(requests.exceptions.ConnectionError, Exception)
    uses: list[Callable[[], object]] = [
        lambda: requests.post(address),
        lambda: requests.get(address).raise_for_status(),
    ]
    for use in uses:
        with pytest.raises(UnforeseenUse, match=r"requests\.(post|Response\.raise_for_status)"):
            use()
