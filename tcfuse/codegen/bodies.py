"""What the body of a loop does: its work, its element types, the registers it has room for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeGuard

from tcfuse.codegen.kernel_ast import Block, Instance, Loop, instances, loops
from tcfuse.codegen.tensors import MOST_LANES, Tensor
from tcfuse.poly.polynomial import Polynomial
from tcfuse.poly.scop import Scop, Statement, accesses
from tcfuse.tc.ast import Binary, Call, Const, Expr, Var, walk
from tcfuse.tc.builtins import BUILTINS
from tcfuse.types import DType

MOST_WIDE_WORK = 24  # operations in an inner loop whose lanes may take several registers
MOST_FOURFOLD_WORK = 120  # operations of a body with room for four registers a value
MOST_DOUBLE_WORK = 240  # and for two
MANY_REGISTERS = 8  # a value of each lane takes them where one function is all it waits for
MOST_AROUND_LOOPS = 4  # in a loop around others, whose parts are short where threads share it
MOST_ALONE_WORK = 60  # operations of such a body
_QUICK = {"ceil", "copysign", "fabs", "floor", "fmax", "fmin", "roundeven", "trunc"}
MOST_UNROLLED_WORK = 40  # operations of a body that is still copied for several accumulators


class Bodies:
    """Answers about loop bodies of one kernel."""

    def __init__(self, scop: Scop, tensors: Mapping[str, Tensor], wanted: int = 0) -> None:
        self.scop = scop
        self.tensors = tensors
        self.wanted = wanted  # registers of a value, where somebody chose

    def copies(self, body: Block, unroll: int) -> int:
        """How often a body that accumulates is copied."""
        if loops(body):
            return 1
        return unroll if self.work(body) <= MOST_UNROLLED_WORK else 2

    def registers(self, loop: Loop, whole: Polynomial) -> int:
        """Registers a value of each lane takes.

        Several hide latencies: those of functions and divisions, which one iteration cannot
        fill, and those of additions in the loops inside.  Lanes of bytes fill one register
        where those of numbers would fill four.
        """
        updates = any(self.scop.statement(i.statement).is_update for i in instances(loop.body))
        work = self.work(loop.body)
        if loops(loop.body):
            quick = updates and self._lane_work(loop) <= MOST_WIDE_WORK
            quick = quick and not self._has_lane_rows(loop.body)
            fits = whole.number is not None and quick
            if self.wanted:
                return min(self.wanted, MOST_AROUND_LOOPS) if fits else 1
            return next((n for n in (4, 2) if fits and self._divides(n, whole)), 1)
        if self.wanted:
            return self.wanted
        if not (self.waits(loop.body) or self._moves_bytes(loop)) or work > MOST_DOUBLE_WORK:
            return 1
        exact = self._rest_is_slow(loop)
        if updates or work > MOST_FOURFOLD_WORK:
            choices: tuple[int, ...] = (2,)
        else:
            choices = (4,) if whole.number is None else (4, 2)
        known = whole.number is not None
        alone = choices[0] == 4 and known and self._is_one_function(loop.body)
        if alone and self._divides(MANY_REGISTERS, whole, exact=True):
            return MANY_REGISTERS  # half as many where registers are few
        return next(
            (n for n in choices if not known or self._divides(n, whole, exact=exact)), 1
        )

    def _divides(self, registers: int, whole: Polynomial, *, exact: bool = False) -> bool:
        """Whether groups of that many registers fill the loop, or leave a small rest.

        Args:
            registers: Of a value of each lane.
            whole: How often the loop runs.
            exact: Registers are the largest there are instead of the most common.
        """
        assert whole.number is not None
        group = registers * MOST_LANES // (1 if exact else 2)
        return whole.number % group == 0 or whole.number >= 16 * group

    def _rest_is_slow(self, loop: Loop) -> bool:
        """Whether the last lanes of ``loop`` move one after the other: short, and not twice."""
        short = any(dtype.bytes < 4 for dtype in self.dtypes(loop))
        return short and not self.repeatable(loop.body)

    def waits(self, body: Block) -> bool:
        """Whether something in ``body`` takes long to come back."""
        return any(_is_function(node) or _is_quotient(node) for node in self._nodes(body))

    def _is_one_function(self, body: Block) -> bool:
        """Whether ``body`` has one function whose results it waits for, and little else."""
        nodes = list(self._nodes(body))
        quotients = [n for n in nodes if _is_quotient(n) and not isinstance(n.right, Const)]
        functions = [n for n in nodes if _is_function(n) and n.function not in _QUICK]
        return len(functions) == 1 and not quotients and len(nodes) <= MOST_ALONE_WORK

    def _nodes(self, body: Block) -> Iterator[Expr]:
        """All there is to compute in ``body``."""
        for instance in instances(body):
            for value in self.scop.statement(instance.statement).comprehension.values:
                yield from walk(value)

    def _moves_bytes(self, loop: Loop) -> bool:
        """Whether lanes of ``loop`` touch bytes only."""
        return all(dtype.bytes == 1 for dtype in self.dtypes(loop))

    def _has_lane_rows(self, body: Block) -> bool:
        """Whether ``body`` writes a row of which each lane has its own."""
        written = (self.scop.statement(i.statement).comprehension for i in instances(body))
        tensors = (self.tensors[w.tensor] for w in written)
        return any(not t.register and t.lanes for t in tensors)

    def lane_registers(self, body: Block) -> list[Tensor]:
        """Registers of which each lane has its own, used by ``body``."""
        found: dict[str, Tensor] = {}
        for instance in instances(body):
            written = self.scop.statement(instance.statement).comprehension
            tensor = self.tensors[written.tensor]
            if tensor.register and tensor.lanes:
                found[tensor.name] = tensor
        return list(found.values())

    def written(self, body: Block) -> list[Tensor]:
        """Tensors that ``body`` writes."""
        names = (self.scop.statement(i.statement).comprehension.tensor for i in instances(body))
        return [self.tensors[name] for name in dict.fromkeys(names)]

    def written_once(self, body: Block) -> list[Tensor]:
        """Tensors in memory that one statement of ``body`` sets and none reads."""
        statements = [self.scop.statement(i.statement) for i in instances(body)]
        read = {a.tensor for s in statements for a in accesses(s)}
        read |= {s.comprehension.tensor for s in statements if s.is_update}
        writes = Counter(s.comprehension.tensor for s in statements)
        once = [t for t, count in writes.items() if count == 1 and t not in read]
        return [self.tensors[t] for t in once if not self.tensors[t].register]

    def registers_written(self, body: Block) -> list[Tensor]:
        """Registers that ``body`` writes."""
        return [tensor for tensor in self.written(body) if tensor.register]

    def repeatable(self, body: Block) -> bool:
        """Whether running an iteration of ``body`` twice does no harm.

        It does where a tensor in memory is both read and written.
        """
        statements = [self.scop.statement(i.statement) for i in instances(body)]
        read = {a.tensor for s in statements for a in accesses(s)}
        read |= {s.comprehension.tensor for s in statements if s.is_update}
        written = {s.comprehension.tensor for s in statements}
        return all(t.register or t.lanes for t in map(self.tensors.__getitem__, read & written))

    def copies_only(self, body: Block) -> bool:
        """Whether ``body`` writes nothing that it reads."""
        statements = [self.scop.statement(i.statement) for i in instances(body)]
        read = {a.tensor for s in statements for a in accesses(s)}
        written = {s.comprehension.tensor for s in statements}
        return not (read & written or any(s.is_update for s in statements))

    def dtypes(self, loop: Loop) -> list[DType]:
        """Types of the elements of which each lane of ``loop`` touches its own."""
        found = []
        for instance in instances(loop.body):
            statement = self.scop.statement(instance.statement)
            varying = _varying(statement, instance, loop)
            names = [statement.comprehension.tensor]
            names += [a.tensor for a in accesses(statement) if _mentions(a, varying)]
            found += [self.scop.checked.tensors[n].dtype for n in names]
        return found

    def work(self, body: Block) -> int:
        """Operations of one instance of every statement."""
        total = 0
        for instance in instances(body):
            written = self.scop.statement(instance.statement).comprehension
            total += sum(1 for value in written.values for _ in walk(value))
        return total

    def _lane_work(self, loop: Loop) -> int:
        """Operations that each lane of ``loop`` does for itself."""
        total = 0
        for instance in instances(loop.body):
            statement = self.scop.statement(instance.statement)
            varying = _varying(statement, instance, loop)
            for value in statement.comprehension.values:
                total += sum(1 for node in walk(value) if _mentions(node, varying))
        return total


def _varying(statement: Statement, instance: Instance, loop: Loop) -> set[str]:
    """Iterators of a statement, and names of its parts, that differ from lane to lane."""
    found = {
        name
        for name, position in zip(statement.iterators, instance.position, strict=True)
        if position.mentions(loop.iterator)
    }
    for let in statement.comprehension.lets:
        if _mentions(let.value, found):
            found.add(let.name)
    return found


def _is_function(node: Expr) -> TypeGuard[Call]:
    return isinstance(node, Call) and not BUILTINS[node.function].keeps_type


def _is_quotient(node: Expr) -> TypeGuard[Binary]:
    return isinstance(node, Binary) and node.operator == "/"


def _mentions(expr: Expr, names: set[str]) -> bool:
    """Whether ``expr`` uses one of ``names``."""
    return any(isinstance(node, Var) and node.name in names for node in walk(expr))
