"""What a backend asks of the rest of SGLang and of other distributions: one rank, no device, no tracing.

Sources: the imports and calls in sglang/srt/disaggregation/{common,nixl}/conn.py and utils.py, releases 0.5.2 to
0.5.23.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvlint.loading.hooks import Hooks
from kvlint.loading.network import BootstrapServer, Wire, bind_socket
from kvlint.loading.nixl import modules as nixl_modules
from kvlint.loading.stand_in import StandIn, StandInModule

HOST = "127.0.0.1"
PORT = 30000
BOOTSTRAP_PORT = 8998
DTYPE = "auto"
PAGE_TOKENS = 1
ALLOCATION_POLICY = "early"

_GROUP = StandIn("a group of one rank", rank_in_group=0, world_size=1, is_first_rank=True, is_last_rank=True)

#: One rank of everything. Sources: server_args.py and runtime_context.py.
PARALLEL: dict[str, object] = {
    **{f"{group}_{part}": value for group in ("tp", "pp", "dp") for part, value in (("size", 1), ("rank", 0))},
    **{f"attn_{group}_size": 1 for group in ("tp", "cp", "dp", "dcp")},
    **{f"attn_{group}_rank": 0 for group in ("tp", "cp", "dp", "dcp")},
    "dcp_size": 1,
    "dcp_rank": 0,
    **dict.fromkeys(("enable_dp_attention", "enable_kv_cache_sharding", "enable_cp_tp_group_sharing"), False),
    "enable_dsa_cache_layer_split": False,
    "num_dp_ranks": 1,
    "nnodes": 1,
    "dist_init_addr": None,
    "load_balance_method": "follow_bootstrap_room",
    "pp_group": _GROUP,
    "world_group": _GROUP,
}


def server_args(bootstrap_port: int = BOOTSTRAP_PORT) -> StandIn:
    """The arguments of a server with one rank, as far as backends read them."""
    return StandIn(
        "server_args",
        **{name: value for name, value in PARALLEL.items() if not name.startswith("attn_")},
        host=HOST,
        port=PORT,
        disaggregation_bootstrap_port=bootstrap_port,
        disaggregation_ib_device=None,
        disaggregation_transfer_backend="nixl",
        kv_cache_dtype=DTYPE,
        page_size=PAGE_TOKENS,
        chunked_prefill_size=8192,
        enable_hisparse=False,
        enable_pd_role_switch=False,
        device="cuda",
    )


class TraceNullContext(StandIn):
    """A request's trace while tracing is off. Source: sglang/srt/observability/trace.py, release 0.5.23."""

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__("TraceNullContext", tracing_enable=False)

    def trace_req_start(self, *_: object, **__: object) -> None:
        """Nothing is traced."""

    trace_req_finish = abort = trace_req_start

    def copy_for_thread(self) -> TraceNullContext:
        """A trace that is off has no state to copy."""
        return self


def _no(*_: object) -> bool:
    return False


def _run(action: Callable[[], Any], *_: object, **__: object) -> Any:
    return action()


def _ceil_align(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def _getter(name: str, **values: object) -> Callable[[], StandIn]:
    stand_in = StandIn(f"{name}()", **values)
    return lambda: stand_in


def sglang_modules(bootstrap_port: int = BOOTSTRAP_PORT) -> dict[str, object]:
    """The modules of sglang that are not loaded from the tree, by name."""
    utils: dict[str, object] = {
        **dict.fromkeys(("is_npu", "is_hip", "is_xpu", "is_cuda", "is_cpu", "is_musa"), _no),
        "ceil_align": _ceil_align,
        "get_free_port": lambda: PORT + 1,
        "get_zmq_socket_on_host": bind_socket,
        "get_int_env_var": lambda _, default=0: default,
        "get_ip": lambda: HOST,
        "get_local_ip_auto": lambda *_: HOST,
        "get_local_ip_by_remote": lambda: HOST,
        "run_with_deadline": _run,
        "is_valid_ipv6_address": _no,
        "format_tcp_address": lambda host, port: f"tcp://{host}:{port}",
        "maybe_wrap_ipv6_address": lambda host: host,
    }
    ranks = {f"get_attention_{group}_rank": (lambda: 0) for group in ("tp", "cp", "dp")}
    sizes = {f"get_attention_{group}_size": (lambda: 1) for group in ("tp", "cp", "dp")}
    context = {
        "get_parallel": _getter("get_parallel", **PARALLEL),
        "get_serving": _getter("get_serving", host=HOST, port=PORT),
        "get_disagg": _getter(
            "get_disagg",
            disaggregation_bootstrap_port=bootstrap_port,
            disaggregation_decode_allocation_policy=ALLOCATION_POLICY,
            disaggregation_transfer_backend="nixl",
        ),
        "get_schedule": _getter("get_schedule", chunked_prefill_size=8192, max_prefill_tokens=16384),
        "get_observability": _getter("get_observability", enable_trace=False),
        "get_device": _getter("get_device", device="cuda", gpu_id=0),
        "get_spec": _getter("get_spec", speculative_algorithm=None, speculative_num_draft_tokens=None),
        "linear_attn_tp_size": lambda: 1,
    }
    trace = {"TraceNullContext": TraceNullContext, "TraceReqContext": TraceNullContext}
    return {
        "sglang.srt.utils": StandInModule("sglang.srt.utils", utils),
        "sglang.srt.utils.common": StandInModule("sglang.srt.utils.common", utils),
        "sglang.srt.distributed": StandInModule(
            "sglang.srt.distributed", dict.fromkeys(("get_pp_group", "get_world_group"), lambda: _GROUP)
        ),
        "sglang.srt.layers.dp_attention": StandInModule("sglang.srt.layers.dp_attention", ranks | sizes),
        "sglang.srt.runtime_context": StandInModule("sglang.srt.runtime_context", context),
        "sglang.srt.observability.trace": StandInModule("sglang.srt.observability.trace", trace),
    }


def _torch() -> dict[str, object]:
    device_module = StandIn("torch.get_device_module()", set_device=lambda _: None)
    return {
        "torch": StandInModule("torch", {"get_device_module": lambda _=None: device_module}),
        "torch.distributed": StandInModule("torch.distributed"),
    }


def other_modules(hooks: Hooks, wire: Wire, server: BootstrapServer) -> dict[str, object]:
    """The modules of other distributions, and those of sglang that are not loaded from the tree, by name."""
    memory = StandIn("psutil.virtual_memory()", total=1 << 30, available=1 << 30)
    return {
        "zmq": wire.module(),
        "requests": server.module(),
        "aiohttp": StandInModule("aiohttp"),
        "psutil": StandInModule("psutil", {"virtual_memory": lambda: memory}),
        "transformers": StandInModule("transformers"),
        "triton": StandInModule("triton"),
        **_torch(),
        **nixl_modules(hooks),
        **sglang_modules(),
    }
