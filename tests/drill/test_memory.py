"""The content of pages, on the CPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kvlint.drill.memory import LAYERS, PAGES, PIECES, WORD, Memory, chosen_device
from kvlint.drill.storm import Storm, permutation
from kvlint.loading.errors import LoadError

torch = pytest.importorskip("torch", reason="the content of pages needs torch, of the extra `drill`")

WORDS = 3
STORM = Storm(chunks=2, chunk_bytes=PIECES * WORD * WORDS)
PLACES = 3
SOURCE, TARGET = 0, 2
KEY = 7


@pytest.fixture
def memory() -> Memory:
    return Memory(STORM, PLACES, "cpu")


def cache(memory: Memory) -> Any:
    return memory._cache


def moved(memory: Memory, order: list[int]) -> None:
    """Do what the backend does: a room goes from one place to another, in the order that the receiver wants."""
    source, target = memory.pages(SOURCE).start, memory.pages(TARGET).start
    for buffer in cache(memory):
        for page, where in enumerate(order):
            buffer[target + where] = buffer[source + page]
    memory._metadata[TARGET] = memory._metadata[SOURCE]


@pytest.fixture
def order(memory: Memory) -> list[int]:
    found = permutation(KEY, len(memory.pages(TARGET)))
    memory.fill(SOURCE, KEY)
    moved(memory, found)
    return found


def test_its_buffers_are_described(memory: Memory) -> None:
    found = memory.cache()
    assert len(found.places) == 2 * LAYERS
    assert found.item == WORDS * WORD
    pages = STORM.chunks * PAGES
    assert {length for _, length in found.places} == {PLACES * pages * WORDS * WORD}
    assert [address for address, _ in found.places] == [buffer.data_ptr() for buffer in cache(memory)]
    assert STORM.room_bytes == pages * WORDS * WORD * len(found.places)
    metadata = memory.metadata()
    assert metadata.places == ((memory._metadata.data_ptr(), PLACES * metadata.item),)
    assert [memory.pages(place) for place in range(PLACES)] == [range(32), range(32, 64), range(64, 96)]
    assert memory.device_name == "host memory"


def test_what_was_moved_is_right(memory: Memory, order: list[int]) -> None:
    assert memory.wrong_bytes(TARGET, KEY, order) == 0
    assert memory.wrong_bytes(SOURCE, KEY, list(range(len(order)))) == 0


def test_the_content_is_all_different(memory: Memory) -> None:
    for place in range(PLACES):
        memory.fill(place, place + 1)
    words = torch.cat([buffer.flatten() for buffer in cache(memory)] + [memory._metadata.flatten()])
    # A room's metadata begins as its first page does: neither can be written where the other belongs.
    assert len(words.unique()) >= len(words) - PLACES * WORDS


@pytest.mark.parametrize("number", range(2 * LAYERS))
def test_one_wrong_byte_is_found(memory: Memory, order: list[int], number: int) -> None:
    page = memory.pages(TARGET).start + order[number]
    cache(memory)[number].view(torch.uint8)[page, 5] ^= 1
    assert memory.wrong_bytes(TARGET, KEY, order) == 1


def test_a_wrong_byte_of_another_place_is_none_of_its(memory: Memory, order: list[int]) -> None:
    cache(memory)[0][memory.pages(1)] += 1
    memory._metadata[1] += 1
    assert memory.wrong_bytes(TARGET, KEY, order) == 0


def test_misdirected_pages_are_found(memory: Memory, order: list[int]) -> None:
    straight = list(range(len(order)))
    assert order != straight
    assert memory.wrong_bytes(TARGET, KEY, straight) > 0
    first, second = order[:2]
    buffer = cache(memory)[3]
    start = memory.pages(TARGET).start
    buffer[[start + first, start + second]] = buffer[[start + second, start + first]]
    assert 0 < memory.wrong_bytes(TARGET, KEY, order) <= 2 * WORDS * WORD


def test_pages_of_another_buffer_are_found(memory: Memory, order: list[int]) -> None:
    keys, values = cache(memory)[0], cache(memory)[LAYERS]
    keys[memory.pages(TARGET)] = values[memory.pages(TARGET)]
    assert memory.wrong_bytes(TARGET, KEY, order) > 0


def test_another_room_is_found_everywhere(memory: Memory, order: list[int]) -> None:
    wrong = memory.wrong_bytes(TARGET, KEY + 1, order)
    words = (STORM.room_bytes + memory.metadata().item) // WORD
    assert words <= wrong <= words * WORD


def test_metadata_is_compared(memory: Memory, order: list[int]) -> None:
    memory._metadata.view(torch.uint8)[TARGET, 0] ^= 1
    assert memory.wrong_bytes(TARGET, KEY, order) == 1
    memory._metadata[TARGET] = 0
    assert memory.wrong_bytes(TARGET, KEY, order) > memory.metadata().item // 2


@pytest.mark.parametrize("key", [0, 1, 1_000_000, 2**62, 2**63 - 1])
def test_any_key_has_a_content(memory: Memory, key: int) -> None:
    memory.fill(1, key)
    assert memory.wrong_bytes(1, key, list(range(32))) == 0


# -- where the pages are --------------------------------------------------------------


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def test_a_gpu_is_taken_if_there_is_one(gpu: None) -> None:
    assert [chosen_device(wanted) for wanted in ("auto", "cuda", "cpu")] == ["cuda", "cuda", "cpu"]


@pytest.mark.parametrize(("cuda", "hint"), [(None, "was built without CUDA"), ("13.0", "")])
def test_a_gpu_that_is_not_there_is_missed(
    no_gpu: None, monkeypatch: pytest.MonkeyPatch, cuda: str | None, hint: str
) -> None:
    monkeypatch.setattr(torch.version, "cuda", cuda)
    assert [chosen_device(wanted) for wanted in ("auto", "cpu")] == ["cpu", "cpu"]
    with pytest.raises(LoadError, match="--device cuda: torch finds no GPU here") as refused:
        chosen_device("cuda")
    assert hint in str(refused.value)
    assert ("built without" in str(refused.value)) is bool(hint)


def test_a_gpu_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []
    cuda = SimpleNamespace(synchronize=lambda: waited.append("synchronize"), get_device_name=lambda: "a GPU")
    real_zeros, real_arange, real_tensor = torch.zeros, torch.arange, torch.tensor

    def on_cpu(made: Any) -> Any:
        return lambda *given, **named: made(*given, **{**named, "device": "cpu"})

    monkeypatch.setattr(torch, "zeros", on_cpu(real_zeros))
    monkeypatch.setattr(torch, "arange", on_cpu(real_arange))
    monkeypatch.setattr(torch, "tensor", on_cpu(real_tensor))
    monkeypatch.setattr(torch, "cuda", cuda)
    memory = Memory(STORM, PLACES, "cuda")
    assert memory.device_name == "a GPU"
    waited.clear()
    memory.fill(0, KEY)
    assert waited == ["synchronize"]
    assert memory.wrong_bytes(0, KEY, list(range(32))) == 0
    assert waited == ["synchronize"] * 2
