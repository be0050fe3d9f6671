"""Plans for other extents: rules must make the same ones as a new derivation."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fusec.fusion.fused_plan import FusedPlan
from fusec.fusion.memory.calls import CallStep
from fusec.fusion.memory.host_memory import HostMemory
from fusec.fusion.schedule.native import native_steps
from fusec.fusion.schedule.placed import CallExtents
from fusec.fusion.schedule.resizing import PlanTemplate
from fusec.fusion.trace.derived import OtherShapesError


def facts_of(step: Any) -> tuple[Any, ...]:
    """All that a step does with the slots of a call."""
    is_call = hasattr(step, "call")
    made = [each.phantom for each in step.call.buffers] if is_call else []
    own = () if is_call else (step.fresh, step.makes)
    return step.inputs, step.outputs, step.views, step.releases, own, [(each.shape, each.strides) for each in made]


def sequence_facts(sequence: Any) -> tuple[Any, ...]:
    """All that a sequence does with the slots of a call."""
    lists = sequence.pointers, sequence.numbers, sequence.fresh, sequence.aligned
    return sequence.words, [*sequence.template[1:]], lists, {*sequence.written}


@contextmanager
def rules_are_compared() -> Iterator[None]:
    """Assert that each plan that rules make in the block equals the plan that is derived and placed anew, and that
    each sequence that recorded code describes equals the one that is built for the arrays of the call.
    """
    resized, hastened = PlanTemplate.resized, FusedPlan._hastened

    def compared(template: PlanTemplate, outlines: Any, on_host: bool) -> Any:
        for rules in template._rules:
            try:
                by_rules = rules.built(rules.worked_out(CallExtents(outlines)))
            except (OtherShapesError, ValueError, IndexError):
                continue
            made, wanted, slots = template.placed_again(outlines)
            rules.record(outlines)
            recorded = rules.fitted_again(outlines)
            for found, memory, views, *_ in (by_rules, *([] if recorded is None else [recorded])):
                assert list(map(facts_of, found)) == list(map(facts_of, wanted))
                assert memory.is_like(HostMemory.of(slots))
                assert views == made.views(template.parts, slots)
        return resized(template, outlines, on_host)

    def built(plan: FusedPlan, frame: Any) -> Any:
        if plan.native is not None and not plan.calls:
            given = [*frame]
            plan.memory.complete(given)
            wanted = native_steps(plan.steps, plan.memory, given, plan.parameters)
            assert wanted is not None
            assert len(plan.native) == len(wanted)
            for one, other in zip(plan.native, wanted, strict=True):
                assert type(one) is type(other)
                if not isinstance(one, CallStep):  # which is the same in both
                    assert sequence_facts(one.sequence) == sequence_facts(other.sequence)
        return hastened(plan, frame)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PlanTemplate, "resized", compared)
        patch.setattr(FusedPlan, "_hastened", built)
        yield
