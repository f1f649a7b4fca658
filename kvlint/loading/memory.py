"""The KVArgs of a manager: what the release's class names, for a pool of one layer that is really allocated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kvlint.loading.foreseen import DTYPE, PAGE_TOKENS

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
        """An object of the release's KVArgs that describes this memory."""
        cache = Buffers(tuple(map(_place, self.cache)), PAGE_BYTES)
        return arguments(kv_args, cache, Buffers(tuple(map(_place, self.auxiliary)), _AUX_BYTES))


def _place(buffer: np.ndarray[Any, Any]) -> tuple[int, int]:
    return buffer.__array_interface__["data"][0], buffer.nbytes


@dataclass(frozen=True, slots=True)
class Buffers:
    """Buffers of one kind.

    Attributes:
        places: Address and length of each, in bytes.
        item: Bytes of one of their items: of a page, or of what a request has in a buffer of metadata.
    """

    places: tuple[tuple[int, int], ...]
    item: int

    def described(self, name: str, item: str) -> dict[str, object]:
        """The attributes of KVArgs for them."""
        return {
            f"{name}_ptrs": [address for address, _ in self.places],
            f"{name}_lens": [length for _, length in self.places],
            item: [self.item for _ in self.places],
        }


def arguments(kv_args: Callable[[], Any], cache: Buffers, auxiliary: Buffers, device: int = 0) -> Any:
    """An object of the release's KVArgs, filled as `_init_kv_manager()` of its prefill.py and decode.py does.

    Names that a release does not know are set all the same, as its own code would find them.

    Sources: sglang/srt/disaggregation/base/conn.py and prefill.py, releases 0.5.2 to 0.5.23.

    Args:
        kv_args: The release's class.
        cache: The buffers of keys of all layers, then those of values.
        auxiliary: The buffers of metadata.
        device: The number of the GPU that holds the cache.
    """
    made = kv_args()
    layers = len(cache.places) // 2
    values: dict[str, object] = {
        "engine_rank": 0,
        "gpu_id": device,
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
        "prefill_end_layer": layers,
        "kv_layer_ids": [*range(layers), *range(layers)],
        "kv_cache_dtype_str": DTYPE,
        "kv_layout": None,
        "mla_compression_ratios": None,
        "is_hybrid_mla_backend": False,
        "state_type": "none",
        "swa_kv_cache_layout": None,
    }
    values |= {name: [] for name in _NO_STATE}
    values |= cache.described("kv_data", "kv_item_lens")
    values |= auxiliary.described("aux_data", "aux_item_lens")
    for name, value in values.items():
        setattr(made, name, value)
    return made


_NO_STATE = (
    *("state_types", "state_data_ptrs", "state_data_lens", "state_item_lens", "state_dim_per_tensor"),
    *("state_slice_outer_counts", "state_layer_ids", "state_conv_shard_groups"),
)


def no_state(kv_args: type) -> list[object] | None:
    """What a request of a model without state has for the indices of its state.

    Sources: `send_kv_chunk()` of sglang/srt/disaggregation/prefill.py. Where KVArgs has several types of state, a list
    with an entry for each (0.5.12 and later); before, None.
    """
    return [] if "state_types" in getattr(kv_args, "__annotations__", {}) else None


def page_indices(first: int, count: int) -> np.ndarray[Any, Any]:
    """The numbers of consecutive pages, as the scheduler hands them on: 32-bit integers."""
    return np.arange(first, first + count, dtype=np.int32)
