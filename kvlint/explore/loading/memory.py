"""The KVArgs of a manager: what the release's class names, for a pool of one layer that is really allocated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kvlint.explore.loading.foreseen import DTYPE, PAGE_TOKENS

#: Pages of the pool, and bytes of a page.
PAGES = 64
PAGE_BYTES = 64
_AUX_BYTES = 64
_LAYERS = 1


class Pool:
    """The memory behind a manager: keys and values of one layer, and one buffer of metadata."""

    def __init__(self) -> None:
        self.cache = [np.zeros(PAGES * PAGE_BYTES, np.uint8) for _ in range(2 * _LAYERS)]
        self.auxiliary = [np.zeros(PAGES * _AUX_BYTES, np.uint8)]

    def arguments(self, kv_args: Callable[[], Any]) -> Any:
        """An object of the release's KVArgs, filled as `_init_kv_manager()` of its prefill.py and decode.py does.

        Names that a release does not know are set all the same, as its own code would find them.

        Sources: sglang/srt/disaggregation/base/conn.py and prefill.py, releases 0.5.2 to 0.5.23.
        """
        arguments = kv_args()
        values: dict[str, object] = {
            "engine_rank": 0,
            "gpu_id": 0,
            "ib_device": None,
            "ib_traffic_class": None,
            "rust_http_port": None,
            "page_size": PAGE_TOKENS,
            "kv_head_num": 1,
            "total_kv_head_num": 1,
            "num_draft_entries": 0,
            "decode_tp_size": 1,
            "prefill_pp_size": 1,
            "pp_rank": 0,
            "system_dp_rank": 0,
            "prefill_start_layer": 0,
            "prefill_end_layer": _LAYERS,
            "kv_layer_ids": [*range(_LAYERS), *range(_LAYERS)],
            "kv_cache_dtype_str": DTYPE,
            "kv_layout": None,
            "mla_compression_ratios": None,
            "is_hybrid_mla_backend": False,
            "state_type": "none",
            "swa_kv_cache_layout": None,
        }
        values |= {name: [] for name in _NO_STATE}
        values |= _described("kv_data", "kv_item_lens", self.cache, PAGE_BYTES)
        values |= _described("aux_data", "aux_item_lens", self.auxiliary, _AUX_BYTES)
        for name, value in values.items():
            setattr(arguments, name, value)
        return arguments


_NO_STATE = (
    *("state_types", "state_data_ptrs", "state_data_lens", "state_item_lens", "state_dim_per_tensor"),
    *("state_slice_outer_counts", "state_layer_ids", "state_conv_shard_groups"),
)


def _described(name: str, item: str, buffers: list[np.ndarray[Any, Any]], size: int) -> dict[str, object]:
    return {
        f"{name}_ptrs": [buffer.__array_interface__["data"][0] for buffer in buffers],
        f"{name}_lens": [buffer.nbytes for buffer in buffers],
        item: [size for _ in buffers],
    }


def page_indices(first: int, count: int) -> np.ndarray[Any, Any]:
    """The numbers of consecutive pages, as the scheduler hands them on: 32-bit integers."""
    return np.arange(first, first + count, dtype=np.int32)
