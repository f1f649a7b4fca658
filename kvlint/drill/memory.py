"""The memory of one side: torch tensors, on the CPU or a GPU, with a content that tells where it belongs."""

from __future__ import annotations

from typing import Any, Final

from kvlint.drill.storm import Storm
from kvlint.loading.errors import LoadError
from kvlint.loading.memory import Buffers

#: Layers of the cache: as many buffers of keys, and as many of values. Pages of a few KiB are what models have: many
#: descriptors are what a transfer takes its time for.
LAYERS: Final = 16
#: Pages of a chunk.
PAGES: Final = 16
#: A chunk has this many pieces, each of whole words.
PIECES: Final = 2 * LAYERS * PAGES
WORD: Final = 8  # bytes
_AUX_WORDS: Final = 32
#: Odd, so that words of different rooms, buffers, pages and places differ.
_ROOM, _BUFFER, _PAGE, _PLACE = 0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9, 0x14D049BB133111EB, 0x2545F4914F6CDD1D


def chosen_device(wanted: str) -> str:
    """The device that `auto` stands for here; ``wanted`` if it is another.

    Raises:
        LoadError: There is no GPU, and one is wanted.
    """
    import torch

    if wanted == "cpu":
        return "cpu"
    if torch.cuda.is_available():
        return "cuda"
    if wanted == "cuda":
        raise LoadError(
            "--device cuda: torch finds no GPU here"
            + ("" if torch.version.cuda else f" (torch {torch.__version__} was built without CUDA)")
        )
    return "cpu"


class Memory:
    """The pages of a side, a place for each room that is under way, and the buffer of metadata.

    A place has the pages of one room. Its number is the room's index in the buffer of metadata as well.

    Args:
        storm: Tells how large a room is.
        places: How many places there are.
        device: `cpu` or `cuda`.

    Raises:
        LoadError: There is not enough memory.
    """

    def __init__(self, storm: Storm, places: int, device: str) -> None:
        import torch

        self._torch = torch
        self._pages = storm.chunks * PAGES
        self._device = device
        words = storm.chunk_bytes // PIECES // WORD
        if device == "cuda":
            # NIXL's backend looks for the context of the GPU when it is made.
            torch.zeros(1, device=device)
            torch.cuda.synchronize()
        shape = (places * self._pages, words)
        try:
            self._cache = [torch.zeros(shape, dtype=torch.int64, device=device) for _ in range(2 * LAYERS)]
        except RuntimeError as error:
            # What torch raises has no class of its own, but for CUDA's.
            wanted = places * storm.room_bytes / (1 << 20)
            raise LoadError(
                f"{wanted:.0f} MiB for the pages of {places} rooms cannot be had: {str(error).splitlines()[0]} "
                "Fewer --live rooms, fewer --chunks or a smaller --chunk-mib need less."
            ) from error
        self._metadata = torch.zeros((places, _AUX_WORDS), dtype=torch.int64)
        self._words = self._ramp(words, device)
        self._metadata_words = self._ramp(_AUX_WORDS, "cpu")

    def _ramp(self, count: int, device: str) -> Any:
        return self._torch.arange(count, dtype=self._torch.int64, device=device) * _PLACE

    @property
    def device_name(self) -> str:
        """The device in words."""
        return self._torch.cuda.get_device_name() if self._device == "cuda" else "host memory"

    def cache(self) -> Buffers:
        """The buffers of keys and values."""
        return Buffers(tuple((buffer.data_ptr(), buffer.nbytes) for buffer in self._cache), self._cache[0][0].nbytes)

    def metadata(self) -> Buffers:
        """The buffer of metadata."""
        return Buffers(((self._metadata.data_ptr(), self._metadata.nbytes),), self._metadata[0].nbytes)

    def pages(self, place: int) -> range:
        """The numbers of a place's pages."""
        return range(place * self._pages, (place + 1) * self._pages)

    def fill(self, place: int, key: int) -> None:
        """Give a place the content that belongs to a key."""
        pages = self.pages(place)
        for number, buffer in enumerate(self._cache):
            self._torch.add(self._words, self._tags(key, number, self._device), out=buffer[pages.start : pages.stop])
        self._metadata[place] = self._metadata_words + _wrapped(key * _ROOM)
        self._synchronise()

    def wrong_bytes(self, place: int, key: int, order: list[int]) -> int:
        """How many bytes of a place are not those of a key.

        Args:
            place: The place.
            key: What was given to fill() at the other side.
            order: Which of the place's pages holds the first page, the second, ….
        """
        self._synchronise()
        first = self.pages(place).start
        wrong = self._different(self._metadata[place], self._metadata_words + _wrapped(key * _ROOM))
        where = self._torch.tensor([first + page for page in order], device=self._device)
        for number, buffer in enumerate(self._cache):
            expected = self._words + self._tags(key, number, self._device)
            wrong += self._different(buffer.index_select(0, where), expected)
        return wrong

    def _different(self, found: Any, expected: Any) -> int:
        """How many bytes differ."""
        if self._torch.equal(found, expected):
            return 0
        return int((found.view(self._torch.uint8) != expected.view(self._torch.uint8)).sum())

    def _tags(self, key: int, buffer: int, device: str) -> Any:
        """What is added to the words of each page of a key, shape (pages, 1)."""
        start = key * _ROOM + buffer * _BUFFER
        tags = [_wrapped(start + page * _PAGE) for page in range(self._pages)]
        return self._torch.tensor(tags, dtype=self._torch.int64, device=device)[:, None]

    def _synchronise(self) -> None:
        if self._device == "cuda":
            self._torch.cuda.synchronize()


def _wrapped(number: int) -> int:
    """A number as the signed 64-bit integer that it wraps to."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)
