"""The objects of a backend, and driving them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kvlint.loading import Backend, LoadError, Transfer, UnforeseenUse

from .driving import Driver
from .minitree import COMMON, CONN, edited

Load = Callable[..., Backend]
ROOM = 7


def ready(driver: Driver, pages: int = 2) -> object:
    """A sender that was begun, its room's metadata received."""
    backend = driver.backend
    sender = backend.make_sender(ROOM)
    assert driver.status(sender) == "Bootstrapping"
    driver.listen(backend.registration_frames() + backend.metadata_frames(ROOM, pages))
    assert driver.status(sender) == "WaitingForInput"
    backend.begin(sender, pages)
    return sender


def test_two_chunks_succeed(driver: Driver) -> None:
    backend, posted = driver.backend, list[Transfer]()
    backend.hooks.posted = posted.append
    sender = ready(driver)
    backend.send(sender, 0, last=False)
    driver.work()
    assert driver.status(sender) == "Transferring"
    backend.send(sender, 1, last=True)
    driver.work()
    assert driver.status(sender) == "Success"
    assert [(transfer.number, transfer.operation, transfer.peer) for transfer in posted] == [
        (1, "WRITE", "agent-2"),
        (2, "WRITE", "agent-2"),
    ]
    assert all(transfer.posted and transfer.notification == b"done" for transfer in posted)
    backend.clear(sender)
    assert backend.manager.request_status == {}
    assert backend.faults == []


def test_the_metadata_name_as_many_pages_as_are_sent(driver: Driver) -> None:
    ready(driver, pages=3)
    assert driver.backend.manager.transfer_infos[ROOM].tolist() == [0, 1, 2]


def test_a_transfer_is_as_the_hook_says(driver: Driver) -> None:
    answers = iter(["PROC", "PROC", "ERR"])
    driver.backend.hooks.transfer_state = lambda _: next(answers)
    sender = ready(driver)
    driver.backend.send(sender, 0, last=False)
    driver.work()
    assert driver.status(sender) == "Failed"
    assert next(answers, None) is None


def test_the_real_receiver_gives_a_room_up(driver: Driver) -> None:
    backend = driver.backend
    sender = ready(driver)
    frames = backend.abort_frames(ROOM, 2)
    assert frames == [[b"ABORT", b"7"]]
    assert backend.no_abort_frames is None
    driver.listen(frames)
    assert driver.status(sender) == "Failed"
    assert backend.abort(sender)


def test_frames_are_the_callers_to_change(driver: Driver) -> None:
    backend = driver.backend
    for make in (
        backend.registration_frames,
        lambda: backend.metadata_frames(ROOM, 1),
        lambda: backend.abort_frames(ROOM, 1) or [],
    ):
        make()[0].clear()
        assert make()[0]


def test_frames_leave_no_trace_at_the_prefill_side(driver: Driver) -> None:
    backend = driver.backend
    backend.metadata_frames(ROOM, 1)
    backend.abort_frames(ROOM, 1)
    assert (driver.sent, backend.manager.request_status, backend.manager.peers) == ([], {}, {})


def test_what_the_prefill_side_sends_is_told(load: Load) -> None:
    change = edited(
        CONN,
        "            self.update_status(int(frame[1]), KVPoll.Failed)\n",
        "            self.update_status(int(frame[1]), KVPoll.Failed)\n"
        "            sock = self.context.socket(1)\n"
        "            sock.connect('tcp://127.0.0.1:9')\n"
        "            sock.send_multipart([b'ACK', frame[1]])\n"
        "            sock.close(linger=0)\n",
    )
    driver = Driver(load(change))
    driver.listen(driver.backend.abort_frames(ROOM, 2) or [])
    assert driver.sent == [("tcp://127.0.0.1:9", [b"ACK", b"7"])]


def test_hooks_default_to_an_answer_or_a_refusal(load: Load) -> None:
    backend = load()
    with pytest.raises(UnforeseenUse, match="no hook says what the listener receives"):
        backend.listener.run()
    transfer = Transfer(1, "WRITE", "", b"")
    assert backend.hooks.transfer_state(transfer) == "DONE"


def test_threads_are_captured_then_and_later(load: Load) -> None:
    change = edited(
        CONN,
        "    def heartbeat(self):\n",
        "    def again(self):\n        threading.Thread(target=len).start()\n\n    def heartbeat(self):\n",
    )
    backend = load(change, SGLANG_DISAGGREGATION_QUEUE_SIZE="3")
    assert [thread.name for thread in backend.workers] == ["transfer_worker"] * 3
    assert (backend.listener.name, backend.listener.daemon) == ("receive", False)
    assert len(backend.threads) == 5
    started: list[object] = []
    backend.hooks.started = started.append
    backend.manager.again()
    assert started == [backend.threads[-1]]


def test_rooms_go_to_their_workers(load: Load) -> None:
    driver = Driver(load(SGLANG_DISAGGREGATION_QUEUE_SIZE="2"))
    sender = ready(driver)
    driver.backend.send(sender, 0, last=False)
    driver.run(driver.backend.workers[0])
    assert driver.status(sender) == "WaitingForInput"
    driver.run(driver.backend.workers[1])
    assert driver.status(sender) == "Transferring"


def test_there_need_be_no_worker(load: Load) -> None:
    backend = load(
        edited(CONN, "threading.Thread(target=self.transfer_worker, args=(one,), daemon=True).start()", "pass")
    )
    assert backend.workers == ()


def test_a_release_may_send_no_abort(load: Load) -> None:
    backend = load(
        edited(
            COMMON,
            '        self.sock.send_multipart([b"ABORT", str(self.bootstrap_room).encode()])\n',
            "        pass\n",
        )
    )
    assert backend.abort_frames(ROOM, 1) is None
    assert backend.no_abort_frames is not None
    assert backend.no_abort_frames.endswith(": this release's receiver sends nothing when it aborts.")


def test_a_release_may_have_no_abort_and_no_clear(load: Load) -> None:
    text = edited(COMMON, "    def abort(self):\n", "    def other(self):\n")[COMMON]
    backend = load({COMMON: text.replace("    def clear(self):\n", "    def another(self):\n")})
    assert backend.abort_frames(ROOM, 1) is None
    assert str(backend.no_abort_frames).endswith(": this release's receiver has no abort().")
    sender = backend.make_sender(ROOM)
    assert not backend.abort(sender)
    backend.clear(sender)
    assert backend.manager.request_status == {ROOM: backend.poll.Bootstrapping}


def test_a_release_may_name_things_otherwise(load: Load) -> None:
    """As releases up to 0.5.10: one init() that sends the metadata, and senders without a prefix or a choice."""
    common = edited(COMMON, "    def init(self, prefill_dp_rank):\n", "    def connect(self, prefill_dp_rank):\n")[
        COMMON
    ]
    common = common.replace("    def pop_decode_prefix_len", "    def _one").replace(
        "    def should_send", "    def _two"
    )
    common = common.replace("    def try_ensure_parallel_info", "    def _three").replace(
        "class PrefillServerInfo", "class Two"
    )
    common = common.replace(
        "        mgr.update_status(bootstrap_room, KVPoll.Bootstrapping)\n",
        "        mgr.update_status(bootstrap_room, KVPoll.Bootstrapping)\n"
        "        self.info = requests.get(f'http://{bootstrap_addr}/route?engine_rank=-1').json()\n"
        "        self.connect(0)\n",
    )
    conn = edited(CONN, "def send_metadata(self, kv_indices", "def init(self, kv_indices")[CONN]
    backend = load({COMMON: common, CONN: conn})
    driver = Driver(backend)
    sender = ready(driver, pages=1)
    backend.send(sender, 0, last=True)
    driver.work()
    assert driver.status(sender) == "Success"


def test_senders_get_what_their_release_takes(load: Load) -> None:
    change = edited(
        COMMON, "bootstrap_room, dest_tp_ranks, pp_rank):", "bootstrap_room, **others):\n        self.others = others"
    )
    assert load(change).make_sender(ROOM).others == {
        "dest_tp_ranks": [0],
        "pp_rank": 0,
        "req_has_disagg_prefill_dp_rank": False,
    }


def test_a_page_that_need_not_be_sent_is_not(load: Load) -> None:
    driver = Driver(load(edited(COMMON, "return num_pages > 0", "return last_chunk")))
    sender = ready(driver)
    driver.backend.send(sender, 0, last=False)
    driver.work()
    assert driver.status(sender) == "WaitingForInput"


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        (CONN, "class NixlKVManager", "class Renamed", r"cannot be loaded: ImportError: cannot import name 'NixlKVMan"),
        (CONN, "class NixlKVSender", "class Renamed", r"conn\.py: there is no NixlKVSender; the backend cannot be"),
        (CONN, "class NixlKVReceiver", "class Renamed", r"conn\.py: there is no NixlKVReceiver"),
        (CONN, "        self.agent = nixl_agent(", "        raise OSError('no RDMA')\n        self.agent = nixl_agent(",
         r"conn\.py:\d+: NixlKVManager in PREFILL mode cannot be built: OSError: no RDMA"),
        (CONN, "        self.agent.create_backend(", "        self.agent.create_something(",
         r"NixlKVManager in PREFILL mode cannot be built: .*conn\.py:\d+: nixl\._api\.nixl_agent\.create_something"),
        (CONN, "            threading.Thread(target=self.heartbeat).start()", "            raise SystemExit(3)",
         r"conn\.py:\d+: NixlKVManager in DECODE mode cannot be built: SystemExit: 3"),
        (CONN, "self.start_listener()", "pass", r"0 of the threads that it started receive frames"),
        (CONN, "self.start_listener()", "self.start_listener(); self.start_listener()",
         r"2 of the threads that it started receive frames; a bootstrap listener is one thread"),
        (CONN, "self.sock.send_multipart([b\"PAGES\"", "list([b\"PAGES\"",
         r"conn\.py:\d+: the decode side's receiver does not send its frames\.$"),
        (COMMON, "self.sock.send_multipart([b\"PEER\"", "self.kv_mgr.failure_records[0] = 'no route'; list([b\"PEER\"",
         r"does not send its frames\. It says: no route$"),
        (COMMON, "return self.info.attn_tp_size == self.tp_size", "return False",
         r"conn\.py:\d+: the decode side refuses what the prefill side registered"),
        (COMMON, "/route?prefill_dp_rank", "/other?prefill_dp_rank",
         r"the decode side cannot be built: .*conn\.py:\d+: requests\.get is a stand-in .*: the address http://.*/other"),
        (COMMON, "8998/route", "8998/other", r"requests\.put is a stand-in .*: the address http://127\.0\.0\.1:8998/other"),
        ("srt/disaggregation/base/conn.py", "class KVPoll", "class Renamed", r"cannot import name 'KVPoll'"),
    ],
)  # fmt: skip
def test_a_backend_that_cannot_be_built_says_what_and_where(
    load: Load, name: str, old: str, new: str, message: str
) -> None:
    with pytest.raises(LoadError, match=message):
        load(edited(name, old, new))


def test_sockets_that_are_not_the_listeners_receive_nothing(load: Load) -> None:
    backend = load()
    for socket in (backend.manager.context.socket(1), backend.decode._manager.server_socket):
        with pytest.raises(
            UnforeseenUse, match=r"zmq\.Socket\.recv_multipart is a stand-in .*: the socket .* was read"
        ):
            socket.recv_multipart()
    monitor = backend.manager.server_socket.get_monitor_socket(1)
    with pytest.raises(Exception, match="Resource temporarily unavailable"):
        monitor.recv_multipart(1)
    monitor.close()


def test_memory_is_really_there(load: Load) -> None:
    import ctypes

    arguments = load().manager.kv_args
    for address, size in zip(arguments.kv_data_ptrs, arguments.kv_data_lens, strict=True):
        assert bytes((ctypes.c_byte * size).from_address(address)) == bytes(size)


def test_what_is_not_real_is_listed(load: Load) -> None:
    assert [text.partition(":")[0] for text in load().stubbed[:3]] == ["RDMA transfers", "ZMQ", "HTTP"]
