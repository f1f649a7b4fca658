"""The order in which Python looks for a method along a class's bases."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def linearised(entry: T, bases_of: Callable[[T], Sequence[T]], _seen: frozenset[T] = frozenset()) -> list[T]:
    """``entry`` and all its bases in C3 order; depth first where the bases contradict each other.

    A class among its own bases, which Python would not load, is left out.
    """
    if entry in _seen:
        return []
    bases = list(bases_of(entry))
    sequences = [linearised(base, bases_of, _seen | {entry}) for base in bases]
    merged = _merged([*sequences, bases])
    if merged is None:
        merged = list(dict.fromkeys(each for sequence in (*sequences, bases) for each in sequence))
    return [entry, *merged]


def _merged(sequences: list[list[T]]) -> list[T] | None:
    merged: list[T] = []
    pending = [list(sequence) for sequence in sequences]
    while pending := [sequence for sequence in pending if sequence]:
        for sequence in pending:
            head = sequence[0]
            if not any(head in other[1:] for other in pending):
                break
        else:
            return None
        merged.append(head)
        for sequence in pending:
            if sequence[0] == head:
                del sequence[0]
    return merged
