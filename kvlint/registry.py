"""The rules: what a rule is, how a module declares one, and which of them a configuration runs.

A rule module is found by walking the package `kvlint.rules`; nothing lists it.
What can be told from file names alone (`known_codes`) costs no import of a rule.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from kvlint.config import Config, ConfigError
from kvlint.diagnostics import Applicability, Finding, FixPlan, Flow, Location, Related, Severity
from kvlint.properties import with_properties

if TYPE_CHECKING:
    from kvlint.analysis.facts import Facts

Check = Callable[["Facts"], Iterator[Finding]]

# By name, not by import: the rules stand above this module.
_PACKAGE = "kvlint.rules"
_MODULE = re.compile(r"(kvl\d{3})_(\w+)")


@dataclass(frozen=True, slots=True)
class Rule:
    """One diagnosis that kvlint can make.

    ``page`` is the rule's documentation in Markdown, ``fix`` the kind of edit
    that mends its findings (None where no codemod should), ``default`` whether
    it runs without being asked for.
    """

    code: str
    name: str
    severity: Severity
    since: str
    default: bool
    fix: type[FixPlan] | None
    page: str
    check: Check

    @property
    def summary(self) -> str:
        """The first sentence of what the page says the rule does."""
        section = self.page.partition("## What it does\n")[2].partition("\n## ")[0]
        return re.split(r"(?<=[.!?])\s", " ".join(section.split()), maxsplit=1)[0]

    def finding(
        self,
        location: Location,
        message: str,
        related: Iterable[Related] = (),
        plan: FixPlan | None = None,
        flows: Iterable[Flow] = (),
    ) -> Finding:
        """A finding of this rule."""
        return Finding(self.code, self.name, self.severity, message, location, tuple(related), plan, tuple(flows))


def rule(
    *, code: str, name: str, severity: Severity, since: str, default: bool, fix: type[FixPlan] | None
) -> Callable[[Check], Rule]:
    """Declare the decorated check as a rule whose page is its module's docstring.

    The name of the check becomes the `Rule`, so its body makes findings with
    ``check.finding(...)``.  A check reports only in the file whose facts it is
    given.
    """

    def declare(check: Check) -> Rule:
        page = with_properties((sys.modules[check.__module__].__doc__ or "").strip() + "\n", code)
        return Rule(code, name, severity, since, default, fix, page, check)

    return declare


@cache
def _modules() -> dict[str, str]:
    """Code → module name, from the file names of the rules package."""
    package = importlib.import_module(_PACKAGE)
    found = {}
    for module in pkgutil.iter_modules(package.__path__):
        if match := _MODULE.fullmatch(module.name):
            found[match[1].upper()] = f"{_PACKAGE}.{module.name}"
    return dict(sorted(found.items()))


def known_codes() -> tuple[str, ...]:
    """Every rule's code, in order, without importing a rule."""
    return tuple(_modules())


@cache
def rule_of(code: str) -> Rule:
    """The rule of this code, in upper case; raises KeyError."""
    module = importlib.import_module(_modules()[code])
    (found,) = (value for value in vars(module).values() if isinstance(value, Rule))
    return found


def rules() -> tuple[Rule, ...]:
    """Every rule, ordered by code."""
    return tuple(rule_of(code) for code in known_codes())


def selected(config: Config) -> tuple[Rule, ...]:
    """The rules that ``config`` runs, ordered by code."""
    return tuple(found for found in rules() if is_selected(found.code, found.default, config))


def is_selected(code: str, default: bool, config: Config) -> bool:
    """Whether ``config`` runs a rule.

    As in ruff and flake8 the longest prefix that fits decides, and ``ignore`` at a tie.
    """
    asked = (*(config.select or ()), *config.extend_select)
    chosen = max((len(prefix) for prefix in asked if code.startswith(prefix)), default=-1)
    if chosen < 0 and config.select is None and default:
        chosen = 0
    refused = max((len(prefix) for prefix in config.ignore if code.startswith(prefix)), default=-1)
    return chosen > refused


def selected_for_fixing(config: Config, *, unsafe: bool) -> Config:
    """``config`` with the opt-in rules whose unsafe fixes ``unsafe`` asks for.

    Who names rules by hand gets the fixes of these alone, and what is ignored
    stays ignored.
    """
    if not unsafe or config.select is not None:
        return config
    from msgspec.structs import replace

    wanted = tuple(
        found.code
        for found in rules()
        if not found.default
        and found.fix is not None
        and found.fix.APPLICABILITY is Applicability.UNSAFE
        and not found.code.startswith(tuple(config.ignore))
        and not is_selected(found.code, found.default, config)
    )
    return replace(config, extend_select=config.extend_select + wanted) if wanted else config


def require_known(prefixes: Iterable[str], origin: str) -> None:
    """Raise ConfigError for a prefix that fits no rule, naming ``origin``, where it was asked for."""
    for prefix in prefixes:
        if not prefix or not any(code.startswith(prefix) for code in known_codes()):
            from difflib import get_close_matches

            near = get_close_matches(prefix, known_codes(), n=1)
            hint = f"did you mean {near[0]}?" if near else "`kvlint rule` lists the rules"
            raise ConfigError(f"{origin}: no rule has the code {prefix!r}; {hint}")
