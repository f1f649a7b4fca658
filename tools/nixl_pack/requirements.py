"""Which distributions a bundle holds: kvlint with what its drill requires, less what the host brings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name

from nixl_pack import PackError
from nixl_pack.sources import Source
from nixl_pack.target import Target
from nixl_pack.wheels import Wheel

#: Each pass asks for what the wheels of the pass before require; the deepest chain known has four.
_MAX_PASSES = 20


def resolve(
    roots: Iterable[Requirement], have: Iterable[Wheel], source: Source, target: Target, without: Collection[str]
) -> list[Wheel]:
    """Wheels for ``roots`` and all that they require on ``target``, but for ``without``; those of ``have`` are taken.

    pip's own resolver judges environment markers by the interpreter it runs
    in, so it is asked for single wheels only. Raises PackError.
    """
    given = {wheel.name: wheel for wheel in have}
    chosen: dict[NormalizedName, Wheel] = dict(given)
    leave = {canonicalize_name(name) for name in without}
    for _ in range(_MAX_PASSES):
        wanted = _wanted(roots, chosen, target, leave)
        missing = [name for name in wanted if name not in chosen or not _fits(chosen[name], wanted[name])]
        if refused := sorted(set(missing) & set(given)):
            wheel = given[refused[0]]
            raise PackError(
                f"{wheel.name} {wheel.version} does not fit what others require: {wheel.name}{wanted[wheel.name]}"
            )
        if not missing:
            return [chosen[name] for name in sorted(wanted)]
        asked = [Requirement(f"{name}{wanted[name]}") for name in sorted(missing)]
        chosen.update((wheel.name, wheel) for wheel in source.get(asked))
    raise PackError("the requirements of the wheels found exclude each other, whichever are taken")


def _wanted(
    roots: Iterable[Requirement],
    chosen: Mapping[NormalizedName, Wheel],
    target: Target,
    leave: Collection[NormalizedName],
) -> dict[NormalizedName, SpecifierSet]:
    """Every distribution that is required, as far as the chosen wheels tell, and of which versions."""
    environment = target.marker_environment()
    wanted: dict[NormalizedName, SpecifierSet] = {}
    extras: dict[NormalizedName, set[str]] = {}
    waiting = list(roots)
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in leave:
            continue
        if requirement.url:
            raise PackError(
                f"{requirement}: is required from an address, which is not followed; leave it out: --host {name}"
            )
        known = wanted.get(name)
        wanted[name] = (known or SpecifierSet()) & requirement.specifier
        news = requirement.extras - extras.setdefault(name, set())
        if name in chosen and (known is None or news):
            extras[name] |= news
            waiting += _required(chosen[name], news | (set() if known is not None else {""}), environment)
    return wanted


def _fits(wheel: Wheel, versions: SpecifierSet) -> bool:
    return versions.contains(wheel.version, prereleases=True)


def _required(wheel: Wheel, extras: Iterable[str], environment: Mapping[str, str]) -> list[Requirement]:
    """What a wheel requires with each of these extras; the empty one stands for no extra."""
    contexts = [{**environment, "extra": extra} for extra in extras]
    return [
        requirement
        for requirement in wheel.requirements
        if requirement.marker is None or any(requirement.marker.evaluate(context) for context in contexts)
    ]
