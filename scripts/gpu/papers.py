"""Every definition of ``op_library.papers``, as a kernel, at a few small sizes."""

from __future__ import annotations

import functools

from scripts.gpu.outcome import Outcome
from scripts.gpu.subject import Subject, check
from scripts.gpu.workbench import Settings, Workbench
from tcfuse.tc.kernel_form import kernel_form
from tcfuse.tc.sema import check as checked_def


@functools.cache
def all_papers() -> dict[str, tuple[str, dict[str, int]]]:
    """Every definition of the papers at a few small sizes, by a name that tells them."""
    from tests.op_library.paper_cases import DEFINITIONS, sizes_of

    return {
        f"{name}-{'x'.join(map(str, sizes.values()))}": (name, sizes)
        for name in DEFINITIONS
        for sizes in sizes_of(name)
    }


def names(settings: Settings) -> list[str]:
    """Every definition at every set of sizes."""
    del settings
    return list(all_papers())


def run(name: str, bench: Workbench) -> Outcome:
    """One definition of the papers at some sizes."""
    return check(paper_subject(name), bench)


def paper_subject(name: str) -> Subject:
    """The kernel of a definition of the papers, with inputs of some sizes."""
    from tests.op_library.paper_cases import DEFINITIONS, inputs_of

    definition, sizes = all_papers()[name]
    written = checked_def(DEFINITIONS[definition], affine=False)
    arrays = inputs_of(written, sizes)
    form = kernel_form(written)
    ready = checked_def(form.definition, sizes=form.interface.sizes)
    inputs = tuple(arrays[port.name] for port in form.interface.inputs)
    return Subject(definition, ready, form.interface, inputs)
