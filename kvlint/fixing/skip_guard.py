"""The skip-guard edit: a path that drops a work item first fails the room, if the room is still live."""

from __future__ import annotations

import libcst as cst

from kvlint.diagnostics import SkipGuard
from kvlint.fixing.blocks import Block, Place, Statement, as_block, holds, insert, swap
from kvlint.fixing.phrases import Margin, Membership, guard
from kvlint.fixing.region import Region

_Exit = cst.Continue | cst.Return | cst.Break


def guard_skip(region: Region, plan: SkipGuard) -> cst.Module:
    """The region's module with the guard before the exit, or at the end of the block that falls through.

    Raises:
        EditRefused: the exit or the block is not there, or is guarded already.
        ValueError: a text of the plan is no Python.
    """
    place = region.at(plan.line, plan.column)
    if plan.at_block_end:
        return _guard_block_end(region, place, plan)
    if not isinstance(place.node, _Exit):
        raise region.refuse(f"the statement at {plan.line}:{plan.column} is no continue, return or break any more")
    new = _guard(plan, Margin(place.indent, place.step))
    if holds(as_block(place.suite, place.step), new):
        raise region.refuse("the fix is there already")
    return insert(region.module, place, [new])


def _guard(plan: SkipGuard, margin: Margin) -> Statement:
    body = [plan.conclude] if plan.record is None else [plan.record, plan.conclude]
    return guard(Membership(plan.stored, plan.calm, inside=False), body, margin)


def _guard_block_end(region: Region, place: Place, plan: SkipGuard) -> cst.Module:
    node = place.node
    if isinstance(node, cst.ExceptHandler | cst.ExceptStarHandler):
        return _append(region, place, plan, node.body)
    if not isinstance(node, cst.If):
        raise region.refuse(f"the statement at {plan.line}:{plan.column} is no if or except any more")
    if plan.in_body:
        return _append(region, place, plan, node.body)
    last = node
    while isinstance(last.orelse, cst.If):
        last = last.orelse
    if last.orelse is not None:
        return _append(region, place, plan, last.orelse.body)
    margin = _margin_inside(region, place, last.body)
    made = cst.Else(cst.IndentedBlock([_guard(plan, margin)], indent=margin.step))
    return swap(region.module, last, last.with_changes(orelse=made))


def _margin_inside(region: Region, place: Place, suite: cst.BaseSuite) -> Margin:
    """The margin of a branch of the statement at ``place``."""
    step = place.step
    if isinstance(suite, cst.IndentedBlock):
        step = region.module.default_indent if suite.indent is None else suite.indent
    return Margin(place.indent + step, step)


def _append(region: Region, place: Place, plan: SkipGuard, suite: cst.BaseSuite) -> cst.Module:
    """The module with the guard at the end of a branch's body."""
    assert isinstance(suite, cst.IndentedBlock | cst.SimpleStatementSuite)
    margin = _margin_inside(region, place, suite)
    block, new = as_block(suite, margin.step), _guard(plan, margin)
    if holds(block, new):
        raise region.refuse("the fix is there already")
    if _leaves(block):
        raise region.refuse(f"the block of the statement at {plan.line}:{plan.column} does not fall through any more")
    return swap(region.module, suite, block.with_changes(body=[*block.body, new]))


def _leaves(block: Block) -> bool:
    last = block.body[-1]
    return isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], _Exit | cst.Raise)
