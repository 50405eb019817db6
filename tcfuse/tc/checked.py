"""What semantic analysis proved about a definition; nothing downstream derives it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tcfuse.tc.ast import Comprehension, Def, Expr, Range
from tcfuse.tc.diagnostics import Finding
from tcfuse.types import TensorType


@dataclass(frozen=True, slots=True)
class CheckedStatement:
    """A statement with the range of each of its variables.

    Attributes:
        comprehension: The statement as written.
        ranges: Range of every variable: the left-hand indices in order, then the reduction
            variables in order of first appearance.  Bounds are affine in size names.
        reduction: Names of the reduction variables.
        is_copy: Whether it is a promotion: it copies what another statement reads again and
            again, and belongs where that statement is.
    """

    comprehension: Comprehension
    ranges: tuple[Range, ...]
    reduction: tuple[str, ...]
    is_copy: bool = False


@dataclass(frozen=True, slots=True)
class CheckedDef:
    """A definition whose names, types and ranges are resolved.

    Attributes:
        tensors: Type of every tensor, temporaries included.
        origins: Lowest index per dimension of tensors that do not start at zero everywhere.
        sizes: Size names, in order of first use.
        preconditions: Conditions on sizes that must be checked at run time.
        inout: Outputs that start from what the caller's buffer holds.
        warnings: What is allowed and may not be meant, and notes on what is checked at run
            time; in the order of the statements.
        whole: Temporaries that are finished before anything reads them, so that many can work
            on them: the loops that read one are others than those that write it.
    """

    definition: Def
    statements: tuple[CheckedStatement, ...]
    tensors: Mapping[str, TensorType]
    sizes: tuple[str, ...]
    origins: Mapping[str, tuple[Expr, ...]] = field(default_factory=dict)
    preconditions: tuple[Expr, ...] = ()
    inout: tuple[str, ...] = ()
    warnings: tuple[Finding, ...] = ()
    whole: frozenset[str] = frozenset()

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(p.name for p in self.definition.params)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the returned tensors."""
        return tuple(p.name for p in self.definition.returns)

    @property
    def temporaries(self) -> tuple[str, ...]:
        """Names that are written and neither returned nor given."""
        known = {*self.inputs, *self.outputs}
        return tuple(name for name in self.tensors if name not in known)
