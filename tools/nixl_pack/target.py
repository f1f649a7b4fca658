"""The host that a bundle is for: its interpreter, processor and C library, as wheels and markers name them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from packaging.markers import default_environment
from packaging.tags import Tag, compatible_tags, cpython_tags

#: The oldest C library of each kind of manylinux wheel, by its older name (PEP 600).
_LEGACY = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
_OLDEST_GLIBC_MINOR = 5

#: Processors that NIXL has wheels for, and what ELF calls them.
MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}


@dataclass(frozen=True, slots=True)
class Target:
    """CPython ``python`` on Linux with glibc ``glibc``, both given as their major and minor version."""

    python: tuple[int, int]
    glibc: tuple[int, int]
    machine: str

    def __str__(self) -> str:
        return f"CPython {self.python_version}, {self.machine}, glibc {self.glibc[0]}.{self.glibc[1]}"

    @property
    def python_version(self) -> str:
        """The version as ``3.12``."""
        return "{}.{}".format(*self.python)

    @property
    def abi(self) -> str:
        """The interpreter's tag, ``cp312``."""
        return "cp{}{}".format(*self.python)

    @property
    def elf_machine(self) -> str:
        """The processor as the header of an ELF file names it."""
        return MACHINES[self.machine]

    def platforms(self) -> Iterator[str]:
        """Platform tags whose wheels run there, the best first."""
        for minor in range(self.glibc[1], _OLDEST_GLIBC_MINOR - 1, -1):
            yield f"manylinux_2_{minor}_{self.machine}"
            if minor in _LEGACY:
                yield f"{_LEGACY[minor]}_{self.machine}"

    def tags(self) -> list[Tag]:
        """Tags of the wheels that run there, the best first."""
        platforms = list(self.platforms())
        interpreter = cpython_tags(self.python, abis=[self.abi], platforms=platforms)
        return [*interpreter, *compatible_tags(self.python, interpreter=self.abi, platforms=platforms)]

    def pip_options(self) -> list[str]:
        """What makes pip take wheels for that host and no others."""
        options = ["--python-version", self.python_version, "--implementation", "cp"]
        options += [option for abi in (self.abi, "abi3", "none") for option in ("--abi", abi)]
        return [*options, *(option for platform in self.platforms() for option in ("--platform", platform))]

    def marker_environment(self) -> dict[str, str]:
        """What environment markers see there (PEP 508); of the interpreter's patch release nothing is known."""
        here = {name: str(value) for name, value in default_environment().items()}
        return here | {
            "implementation_name": "cpython",
            "implementation_version": f"{self.python_version}.0",
            "os_name": "posix",
            "platform_machine": self.machine,
            "platform_python_implementation": "CPython",
            "platform_system": "Linux",
            "python_full_version": f"{self.python_version}.0",
            "python_version": self.python_version,
            "sys_platform": "linux",
        }
