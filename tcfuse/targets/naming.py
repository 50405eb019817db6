"""What kernels and the sizes in their texts are called, on every target."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from tcfuse.targets.base import Interface
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.plain_names import plain_names
from tcfuse.tc.sema import check


def plainly_named(
    checked: CheckedDef, interface: Interface, given: Mapping[str, int]
) -> tuple[CheckedDef, Interface, dict[str, int]]:
    """All three with names that can stand in the texts of the stages."""
    definition, plain = plain_names(checked.definition, interface)
    if definition is not checked.definition:
        checked = check(definition, sizes=plain.sizes)
    names = dict(zip(interface.sizes, plain.sizes, strict=True))
    return checked, plain, {names.get(name, name): value for name, value in given.items()}


def kernel_name(hint: str, *determining: str) -> str:
    """Operator names, then a digest of everything that determines the text."""
    digest = hashlib.sha256("\0".join(determining).encode()).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9_]', '_', hint)}_{digest}"
