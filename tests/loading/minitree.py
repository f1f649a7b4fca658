"""A small `sglang` with a NIXL backend of our own, for tests that load, break and drive one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

CONN = "srt/disaggregation/nixl/conn.py"
COMMON = "srt/disaggregation/common/conn.py"

FILES: Mapping[str, str] = {
    "__init__.py": "raise RuntimeError('the package itself must not run')\n",
    "srt/server_args.py": "import torch.nn\n",
    "srt/environ.py": """\
import os


class Number:
    def __init__(self, name, default):
        self.name, self.default = name, default

    def get(self):
        return int(os.environ.get(self.name, self.default))


class Environment:
    queues = Number("SGLANG_DISAGGREGATION_QUEUE_SIZE", 4)


envs = Environment()
""",
    "srt/utils/__init__.py": "raise RuntimeError('needs a device')\n",
    "srt/utils/network.py": "def tcp(host, port):\n    return f'tcp://{host}:{port}'\n",
    "srt/distributed/__init__.py": "",
    "srt/layers/dp_attention.py": "",
    "srt/disaggregation/utils.py": """\
from enum import Enum

import torch

from sglang.srt.utils import is_npu


class DisaggregationMode(Enum):
    PREFILL = "prefill"
    DECODE = "decode"


if is_npu():
    raise RuntimeError


def on_device(values):
    return torch.tensor(values)
""",
    "srt/disaggregation/base/__init__.py": "from .conn import KVArgs, KVPoll\n",
    "srt/disaggregation/base/conn.py": """\
from __future__ import annotations

import dataclasses

from sglang.srt.server_args import ServerArgs


class KVArgs:
    engine_rank: int


class KVPoll:
    Failed = 0
    Bootstrapping = 1
    WaitingForInput = 2
    Transferring = 3
    Success = 4


@dataclasses.dataclass
class Manager:
    args: KVArgs
    server_args: ServerArgs
""",
    "srt/disaggregation/common/conn.py": """\
from __future__ import annotations

import dataclasses
import logging
import os
import threading
import time

import requests
import zmq

from sglang.srt.disaggregation.base import KVArgs, KVPoll
from sglang.srt.layers.dp_attention import get_attention_tp_size

logger = logging.getLogger(__name__)


@dataclasses.dataclass
class PrefillServerInfo:
    attn_tp_size: int
    page_size: int
    rank: int | None = None


class CommonKVManager:
    def __init__(self, args, mode, server_args, is_mla_backend=False):
        self.kv_args = args
        self.mode = mode
        self.tp_size = get_attention_tp_size()
        self.local_ip = os.getenv("SGLANG_HOST_IP")
        self.context = zmq.Context()
        self.server_socket = self.context.socket(zmq.PULL)
        self.rank_port = self.server_socket.bind_to_random_port(f"tcp://{self.local_ip}")
        self.request_status = {}
        self.failure_records = {}
        self.lock = threading.Lock()
        logger.warning_once("built in %s mode", mode)
        print("built")

    def register(self):
        answer = requests.put(
            "http://127.0.0.1:8998/route",
            json={"rank_ip": self.local_ip, "rank_port": self.rank_port, "attn_tp_size": self.tp_size, "page_size": 1},
        )
        if answer.status_code != 200:
            raise RuntimeError(answer.text)

    def try_ensure_parallel_info(self, address):
        info = requests.get(f"http://{address}/route?target_tp_rank=-1&target_pp_rank=-1", timeout=5).json()
        self.info = PrefillServerInfo(**info)
        return self.info.attn_tp_size == self.tp_size

    def check_status(self, room):
        return self.request_status.get(room)

    def update_status(self, room, status):
        self.request_status[room] = status


class CommonKVSender:
    def __init__(self, mgr, bootstrap_addr, bootstrap_room, dest_tp_ranks, pp_rank):
        self.kv_mgr = mgr
        self.bootstrap_room = bootstrap_room
        self.sent = 0
        self.kv_mgr.update_status(bootstrap_room, KVPoll.Bootstrapping)

    def init(self, num_kv_indices, aux_index=None):
        self.expected = num_kv_indices
        self.aux_index = aux_index

    def pop_decode_prefix_len(self):
        return 0

    def should_send_kv_chunk(self, num_pages, last_chunk):
        return num_pages > 0

    def poll(self):
        return self.kv_mgr.check_status(self.bootstrap_room)

    def clear(self):
        self.kv_mgr.request_status.pop(self.bootstrap_room, None)

    def abort(self):
        self.kv_mgr.update_status(self.bootstrap_room, KVPoll.Failed)


class CommonKVReceiver:
    def __init__(self, mgr, bootstrap_addr, bootstrap_room=None):
        self.kv_mgr = mgr
        self.bootstrap_addr = bootstrap_addr
        self.bootstrap_room = bootstrap_room
        mgr.update_status(bootstrap_room, KVPoll.Bootstrapping)

    def init(self, prefill_dp_rank):
        url = f"http://{self.bootstrap_addr}/route?prefill_dp_rank={prefill_dp_rank}&target_tp_rank=0"
        self.target = requests.get(url).json()
        self.sock = zmq.Context().socket(zmq.PUSH)
        self.sock.setsockopt(zmq.LINGER, 0)
        self.sock.connect(f"tcp://{self.target['rank_ip']}:{self.target['rank_port']}")
        self.sock.send_multipart([b"PEER", self.kv_mgr.agent.name.encode(), self.kv_mgr.agent.get_agent_metadata()])

    def clear(self):
        self.kv_mgr.request_status.pop(self.bootstrap_room, None)

    def abort(self):
        self.sock.send_multipart([b"ABORT", str(self.bootstrap_room).encode()])
""",
    "srt/disaggregation/nixl/__init__.py": "from sglang.srt.disaggregation.nixl.conn import NixlKVManager\n",
    "srt/disaggregation/nixl/conn.py": """\
from __future__ import annotations

import queue
import threading
import time

import numpy as np

from sglang.srt.disaggregation.base.conn import KVArgs, KVPoll
from sglang.srt.disaggregation.common.conn import CommonKVManager, CommonKVReceiver, CommonKVSender
from sglang.srt.disaggregation.utils import DisaggregationMode, on_device
from sglang.srt.environ import envs
from sglang.srt.utils.network import tcp

try:
    from nixl._bindings import nixlBackendError

    TRANSPORT_ERRORS = (nixlBackendError,)
except ImportError:
    TRANSPORT_ERRORS = (RuntimeError,)


class NixlKVManager(CommonKVManager):
    def __init__(self, args, mode, server_args, is_mla_backend=False):
        super().__init__(args, mode, server_args, is_mla_backend)
        from nixl._api import nixl_agent, nixl_agent_config

        self.agent = nixl_agent("a name", nixl_agent_config(backends=["UCX"]))
        self.agent.create_backend("UCX", {})
        self.descriptors = self.agent.register_memory(
            list(zip(args.kv_data_ptrs, args.kv_data_lens)), "VRAM"
        )
        if not self.descriptors or "UCX" not in self.agent.get_plugin_list():
            raise RuntimeError("nothing was registered")
        if mode == DisaggregationMode.PREFILL:
            self.register()
            self.transfer_infos = {}
            self.peers = {}
            self.queues = [queue.SimpleQueue() for _ in range(envs.queues.get())]
            for one in self.queues:
                threading.Thread(target=self.transfer_worker, args=(one,), daemon=True).start()
            self.start_listener()
        else:
            threading.Thread(target=self.heartbeat).start()

    def heartbeat(self):
        while True:
            time.sleep(1)

    def start_listener(self):
        def receive():
            while True:
                self.handle(self.server_socket.recv_multipart())

        threading.Thread(target=receive).start()

    def handle(self, frame):
        if frame[0] == b"PEER":
            self.peers[frame[1]] = self.agent.add_remote_agent(frame[2])
        elif frame[0] == b"ABORT":
            self.update_status(int(frame[1]), KVPoll.Failed)
        else:
            self.transfer_infos[int(frame[1])] = np.frombuffer(frame[2], dtype=np.int32)
            self.update_status(int(frame[1]), KVPoll.WaitingForInput)

    def transfer_worker(self, work):
        while True:
            room, pages, last = work.get()
            self.update_status(room, KVPoll.Transferring)
            local = self.agent.get_xfer_descs(list(pages), "VRAM")
            remote = self.agent.get_xfer_descs(list(self.transfer_infos[room]), "VRAM")
            handle = self.agent.initialize_xfer("WRITE", local, remote, "agent-2", b"done")
            self.agent.transfer(handle)
            while (state := self.agent.check_xfer_state(handle)) == "PROC":
                time.sleep(0)
            if state == "ERR":
                self.failure_records[room] = "the transfer failed"
                self.update_status(room, KVPoll.Failed)
            elif last:
                self.update_status(room, KVPoll.Success)


class NixlKVSender(CommonKVSender):
    def send(self, kv_indices, state_indices=None):
        self.sent += len(kv_indices)
        work = self.kv_mgr.queues[self.bootstrap_room % len(self.kv_mgr.queues)]
        work.put((self.bootstrap_room, kv_indices, self.sent == self.expected))

    def failure_exception(self):
        self.clear()
        raise RuntimeError(self.kv_mgr.failure_records.pop(self.bootstrap_room, "no reason"))


class NixlKVReceiver(CommonKVReceiver):
    def send_metadata(self, kv_indices, aux_index=None):
        self.sock.send_multipart([b"PAGES", str(self.bootstrap_room).encode(), kv_indices.tobytes()])
""",
}


def write(folder: Path, changes: Mapping[str, str | None] | None = None) -> Path:
    """Write the package `sglang` below a folder, with files replaced, added, or (None) left out; returns the folder."""
    for name, text in {**FILES, **(changes or {})}.items():
        if text is None:
            continue
        path = folder / "sglang" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def edited(name: str, old: str, new: str) -> dict[str, str]:
    """A file of the package with a piece of its text replaced; the piece must be there."""
    assert old in FILES[name], f"{name} has no {old!r}"
    return {name: FILES[name].replace(old, new)}
