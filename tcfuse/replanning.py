"""Plans by the integer linear program: predicted, measured, and predicted again.

The program starts from predictions, half of which are off by a fifth and more.  So the kernels
of the greedy plan are measured, the program is solved with what was seen, the kernels that it
asks for are measured too, and so on until it asks for nothing new or what it promises drowns
in the noise.  Which of the plans is used is decided by running the whole model with each.

What kernels save is kept in the store, so the next model that has a part like it starts there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import onnx_ir as ir

from tcfuse.attempt import Attempt, Judgement
from tcfuse.errors import OptionError
from tcfuse.graph.constraints import Constraint, constraints
from tcfuse.graph.fusion import describe, graphs_of, group_of, plan_of
from tcfuse.graph.part import Part, bits, set_of
from tcfuse.graph.plan import FusionPlan, Rejection
from tcfuse.graph.planner import Board, Cover, Planner
from tcfuse.graph.worth import MIN_SPEEDUP
from tcfuse.options import OptimizeOptions
from tcfuse.ort.comparing import compared
from tcfuse.ort.gate import NOT_RUN
from tcfuse.ort.inference import runtime
from tcfuse.ort.model_feeds import Wishes
from tcfuse.planning import fields
from tcfuse.processor import processor
from tcfuse.profile import timed
from tcfuse.result import Result, with_notes
from tcfuse.run import Run
from tcfuse.store import Store, key_of, tool_digest
from tcfuse.trial import structure

ROUNDS = 3
"""Plans of the program that are measured at most."""

LEAST_SHARE, LEAST_US = 0.003, 1.0
"""Of the time of the model, and of any, what a plan must promise to be measured."""

NOT_CHOSEN = "the integer program leaves it to ONNX Runtime"

FASTER, ERRORS = 1.01, 2.0
"""How much faster a plan of the program must be than the greedy one, and by how many standard
errors."""

Plans: TypeAlias = tuple[FusionPlan, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """What came of plans."""

    result: Result
    tried: Sequence[Attempt]
    judgement: Judgement


def fastest_plan(
    model: ir.Model,
    plans: Plans,
    build: Callable[[Plans], Built],
    wishes: Wishes,
    run: Run,
) -> Result:
    """The model with the greedy plans, or with plans of the program that make it faster.

    Args:
        model: As it was planned.
        plans: The greedy plans.
        build: Compiles and judges the regions of plans.
        wishes: Sizes in measurements.
        run: The options and the store.
    """
    key = _plan_key(model, plans, run.options)
    record = run.store.get("plans", key)
    if record is not None:
        chosen = _recalled(plans, record["regions"])
        return with_notes(build(chosen).result, *record["notes"])
    first = build(plans)
    gated = first.judgement.gated
    if gated is not None and gated.note == NOT_RUN:
        return with_notes(first.result, "the integer program was not asked")
    whole_us = gated.whole.after_us if gated is not None and gated.whole is not None else 0.0
    replanner = Replanner.of(model, plans, run.options, run.store)
    replanner.learn(plans, first.tried, first.judgement)
    tried: dict[frozenset[frozenset[ir.Node]], tuple[Plans, Result]] = {}
    known = {_regions(plans)}
    for _ in range(ROUNDS):
        run.progress("solving the integer program")
        found = replanner.next(max(LEAST_US, LEAST_SHARE * whole_us))
        if found is None or (regions := _regions(found)) in known:
            break
        known.add(regions)
        built = build(found)
        replanner.learn(found, built.tried, built.judgement)
        tried[regions] = found, built.result
    chosen, result, note = plans, first.result, "the integer program found no other plan"
    if tried:
        run.progress("comparing plans")
        candidates = [result for _, result in tried.values()]
        gains = compared([(r.model, r.library) for r in (first.result, *candidates)], wishes)
        note = "the model could not be run with the plans of the integer program"
        if gains:
            gain, best = max(zip(gains, tried.values(), strict=True), key=lambda g: g[0].value)
            note = f"with the plan of the integer program {gain.value:.3f} times as fast as"
            note += f" with the greedy one (standard error {gain.error:.1%})"
            if gain.value >= FASTER and gain.value * (1 - ERRORS * gain.error) > 1.0:
                chosen, result = best
            else:
                note += ", so that one stays"
    run.store.put("plans", key, {"regions": _indices(plans, chosen), "notes": [note]})
    return with_notes(result, note)


def _regions(plans: Plans) -> frozenset[frozenset[ir.Node]]:
    return frozenset(frozenset(group.nodes) for plan in plans for group in plan.groups)


def _indices(greedy: Plans, chosen: Plans) -> list[list[list[int]]] | None:
    """The regions of plans as places in their graphs; ``None`` for the greedy ones."""
    if chosen is greedy:
        return None
    found = []
    for plan in chosen:
        place = {node: k for k, node in enumerate(plan.graph)}
        found.append([[place[node] for node in group.nodes] for group in plan.groups])
    return found


def _recalled(greedy: Plans, regions: list[list[list[int]]] | None) -> Plans:
    """The plans of a record."""
    if regions is None:
        return greedy
    found = []
    for plan, places in zip(greedy, regions, strict=True):
        nodes = list(plan.graph)
        groups = tuple(group_of(nodes[k] for k in region) for region in places)
        inside = {node for group in groups for node in group.nodes}
        reasons = dict.fromkeys(nodes, NOT_CHOSEN)
        reasons |= {rejection.node: rejection.reason for rejection in plan.rejections}
        left = tuple(Rejection(node, reasons[node]) for node in nodes if node not in inside)
        found.append(replace(plan, groups=groups, rejections=left))
    return tuple(found)


def _plan_key(model: ir.Model, plans: Plans, options: OptimizeOptions) -> str:
    """What the choice among plans of a model depends on."""
    wired = [
        f"{node.name} {[v and v.name for v in node.inputs]} {[v.name for v in node.outputs]}"
        for node in model.graph.all_nodes()
    ]
    greedy = [[group.nodes[0].name, str(group)] for plan in plans for group in plan.groups]
    sizes = [sorted(plan.sizes.items()) for plan in plans[:1]]
    machine = [plan.machine.to_json() for plan in plans[:1]]
    mine = processor(), runtime().__version__, tool_digest()
    return key_of(structure(model), wired, greedy, sizes, machine, str(options), *mine)


@dataclass(slots=True, eq=False)
class Replanner:
    """The graphs of one model with what is known of their regions.

    Attributes:
        plans: The greedy plans, one a graph.
        wishes: Constraints.
        gains: What kernels were measured to save, by part and region.
    """

    boards: Sequence[Board]
    plans: Sequence[FusionPlan]
    wishes: tuple[Constraint, ...]
    store: Store
    gains: dict[str, dict[int, float | None]] = field(default_factory=dict)

    @classmethod
    @timed("plan")
    def of(
        cls,
        model: ir.Model,
        plans: Sequence[FusionPlan],
        options: OptimizeOptions,
        store: Store,
    ) -> Replanner:
        """The graphs of ``model``, whose greedy plans are given.

        Raises:
            OptionError: A constraint names nothing, or what cannot be in a region.
        """
        wishes = constraints(
            graphs_of(model),
            leave=options.leave,
            together=options.together,
            apart=options.apart,
            max_nodes=options.max_nodes,
        )
        boards = []
        for ground, plan in zip(fields(model, options, store), plans, strict=True):
            _check_together(ground.members | ground.waiting, ground.reasons, wishes)
            greedy = [group.nodes for group in plan.groups]
            boards.append(Board.of(ground, greedy, wishes))
        made = cls(boards, plans, wishes, store)
        made.gains.update((part.key, made._recalled(part)) for part in made.parts())
        return made

    def parts(self) -> Iterator[Part]:
        """Every part of every graph."""
        for board in self.boards:
            yield from board.parts

    @timed("plan")
    def predicted(self) -> tuple[tuple[FusionPlan, ...], tuple[str, ...]]:
        """The best plans by predictions alone, and what there is to say of them.

        Raises:
            OptionError: No plan keeps the constraints.
        """
        planners = [Planner(board, self.wishes) for board in self.boards]
        covers = [planner.covers(self.wishes, second=True) for planner in planners]
        return self._plans(covers), tuple(self._notes(planners, covers))

    @timed("plan")
    def next(self, least_us: float) -> tuple[FusionPlan, ...] | None:
        """The best plans by what is known now; ``None`` when they promise too little.

        Args:
            least_us: Microseconds that they must promise over the greedy plans.
        """
        promised, covers = 0.0, []
        for board in self.boards:
            planner = Planner(board, gains=self.gains, doubt=MIN_SPEEDUP)
            found = planner.covers(())
            known = sum(planner.greedy(part).price for part in board.parts)
            promised += known - sum(cover.price for cover in found)
            covers.append(found)
        return self._plans(covers) if promised >= least_us else None

    def learn(
        self, plans: Iterable[FusionPlan], tried: Sequence[Attempt], judgement: Judgement
    ) -> None:
        """Take in what came of plans: what was measured, and what cannot be a kernel."""
        home = {node: part for part in self.parts() for node in part.nodes}
        attempts = {frozenset(attempt.group.nodes): attempt for attempt in tried}
        wanted = [frozenset(group.nodes) for plan in plans for group in plan.groups]
        for nodes in dict.fromkeys([*wanted, *attempts]):
            part = home[next(iter(nodes))]
            numbers = set_of(k for k, node in enumerate(part.nodes) if node in nodes)
            attempt = attempts.get(nodes)
            name = attempt.name if attempt is not None else ""
            measured = judgement.measured(name) if name else {}
            known = self.gains.setdefault(part.key, {})
            if "before_us" in measured:
                gain = measured["before_us"] - measured["after_us"]
                known[numbers] = gain if name in judgement.kept else min(gain, 0.0)
            elif name not in judgement.kept:
                known[numbers] = None
        for key, part in {part.key: part for part in self.parts()}.items():
            record = [[list(bits(r)), gain] for r, gain in self.gains.get(key, {}).items()]
            if record:
                self.store.put("prices", self._price_key(part), {"regions": record})

    def _recalled(self, part: Part) -> dict[int, float | None]:
        record = self.store.get("prices", self._price_key(part))
        return {set_of(r): gain for r, gain in record["regions"]} if record else {}

    def _price_key(self, part: Part) -> str:
        return key_of(part.key, processor(), runtime().__version__, tool_digest())

    def _plans(self, covers: Sequence[Sequence[Cover]]) -> tuple[FusionPlan, ...]:
        """Covers as plans; a node that no region has keeps the greedy plan's reason."""
        made = []
        for board, plan, found in zip(self.boards, self.plans, covers, strict=True):
            reasons = dict.fromkeys(board.field.order, NOT_CHOSEN)
            reasons |= {rejection.node: rejection.reason for rejection in plan.rejections}
            for wish in self.wishes:
                if wish.kind == "leave":
                    reasons |= dict.fromkeys(wish.nodes, f"left as {wish.text!r} asks")
            regions = [
                part.members(region)
                for part, cover in zip(board.parts, found, strict=True)
                for region in cover.regions
            ]
            place = {node: k for k, node in enumerate(board.field.order)}
            regions.sort(key=lambda nodes: place[nodes[0]])
            made.append(replace(plan_of(board.field, regions, reasons), sizes=plan.sizes))
        return tuple(made)

    def _notes(
        self, planners: Sequence[Planner], covers: Sequence[Sequence[Cover]]
    ) -> Iterator[str]:
        """The prices of the best plan, the greedy one, the second best, the constraints."""
        total = _total(covers)
        greedy = sum(p.greedy(part).price for p in planners for part in p.board.parts)
        yield f"plan by the integer program: {total:.1f} us predicted, {greedy:.1f} us greedy"
        unproved = sum(not cover.proved for found in covers for cover in found)
        if unproved:
            yield f"{unproved} parts of the graph were not solved to the end in time"
        others = [
            (cover.second[1] - cover.price, part, cover)
            for planner, found in zip(planners, covers, strict=True)
            for part, cover in zip(planner.board.parts, found, strict=True)
            if cover.second is not None
        ]
        if others:
            more, part, cover = min(others, key=lambda other: other[0])
            yield f"second best plan: {more:.2f} us more: {_difference(part, cover)}"
        for wish in self.wishes:
            rest = [other for other in self.wishes if other is not wish]
            without = _total([planner.covers(rest) for planner in planners])
            yield f"{wish.text} costs {max(total - without, 0.0):.1f} us"


def _total(covers: Iterable[Iterable[Cover]]) -> float:
    return sum(cover.price for found in covers for cover in found)


def _difference(part: Part, cover: Cover) -> str:
    """What the second best regions of a part have instead of the best."""
    assert cover.second is not None, "there is one"
    sides = []
    for one, other in ((cover.regions, cover.second[0]), (cover.second[0], cover.regions)):
        regions = [describe(group_of(part.members(r))) for r in one if r not in other]
        sides.append(" and ".join(f"[{text}]" for text in regions) or "no region")
    return f"{sides[1]} instead of {sides[0]}"


def _check_together(
    legal: Iterable[ir.Node], reasons: Mapping[ir.Node, str], wishes: Iterable[Constraint]
) -> None:
    """What has to be together may be in regions at all."""
    known = set(legal)
    for wish in wishes:
        for node in wish.required - known:
            if node in reasons:
                raise OptionError(
                    f"--{wish.text}: {node.name or node.op_type}: {reasons[node]}"
                )
