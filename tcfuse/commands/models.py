"""The command lines of those commands that take an ONNX model."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from tcfuse import debug
from tcfuse.commands.examples import examples
from tcfuse.commands.knobs import with_knobs
from tcfuse.commands.profiling import profiled
from tcfuse.cuda_options import CudaOptions
from tcfuse.errors import OptionError
from tcfuse.mapping_options import MappingOptions
from tcfuse.profile import phase

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="An ONNX model.")]
Optimized = Annotated[
    Path, typer.Argument(metavar="OUT.onnx", help="A model that tcfuse optimize wrote.")
]
Dim = Annotated[
    list[str] | None,
    typer.Option("--dim", metavar="N=8", help="Size of a name in measurements; repeatable."),
]
InputShapes = Annotated[
    list[str] | None,
    typer.Option(
        metavar="x:1,3,224,224", help="Shape of an input in measurements; repeatable."
    ),
]
Numerics = Annotated[
    str, typer.Option(metavar="strict|default|fast", help="How close to the original to stay.")
]
AnyNumerics = Annotated[
    str | None,
    typer.Option(metavar="strict|default|fast", help="How close to the original to stay."),
]
Emulate = Annotated[
    bool, typer.Option("--emulate", help="Run kernels for GPUs in the emulator; slow.")
]
Profile = Annotated[
    bool, typer.Option("--profile", help="Also print where the time went, phase by phase.")
]
Layout = Annotated[
    str,
    typer.Option(
        metavar="auto|portable|blocked",
        help="Try the blocked layout of ONNX Runtime's convolutions too; where it is kept only "
        "CPUs like this one run OUT.onnx, and OUT.portable.onnx is for the others.",
    ),
]
WisdomFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Ask this file of wisdom before the cache's."),
]
NoWisdom = Annotated[
    bool, typer.Option("--no-wisdom", help="Leave every knob as it is without tuning.")
]
Planner = Annotated[
    str,
    typer.Option(
        metavar="auto|greedy|program",
        help="How regions are chosen: grown and pruned, or by an integer linear program whose "
        "plans are measured; auto is greedy where there are no constraints.",
    ),
]
Leave = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="A node or an operator that stays as it is; * and ? match any."
    ),
]
Together = Annotated[
    list[str] | None,
    typer.Option(metavar="A,B", help="Nodes that one kernel has; repeatable."),
]
Apart = Annotated[
    list[str] | None,
    typer.Option(metavar="A,B", help="Nodes or operators that no kernel has both of."),
]
MaxNodes = Annotated[
    int, typer.Option(min=0, metavar="N", help="Nodes that a kernel has at most.")
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing but errors.")]
Verbose = Annotated[
    int, typer.Option("-v", "--verbose", count=True, help="Show the log; -vv shows more.")
]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    epilog = examples(
        "tcfuse optimize model.onnx",
        "tcfuse optimize bert.onnx -o fast.onnx --dim batch=8 --dim seq=128",
        "tcfuse optimize net.onnx --input-shapes x:1,3,224,224 --report-json report.json",
        "tcfuse optimize net.onnx --fusion max --tile 32,128",
        "tcfuse optimize net.onnx --target cpu,cuda --cuda-arch sm_90",
        "tcfuse optimize net.onnx --wisdom wisdom.json",
    )
    app.command(epilog=epilog)(with_knobs(optimize))
    epilog = examples(
        "tcfuse explain model.onnx",
        "tcfuse explain model.onnx --planner program",
        "tcfuse explain model.onnx --apart Softmax,Mul --max-nodes 8",
    )
    app.command(epilog=epilog)(explain)
    epilog = examples(
        "tcfuse verify model.tcfuse.onnx",
        "tcfuse verify --emulate --counters model.tcfuse.onnx",
    )
    app.command(epilog=epilog)(verify)
    epilog = examples(
        "tcfuse bench model.tcfuse.onnx",
        "tcfuse bench fast.onnx --vs model.onnx --threads 2 --dim batch=8",
        "tcfuse bench fast.onnx --vs model.onnx --disable-optimizer SkipLayerNormFusion",
    )
    app.command(epilog=epilog)(bench)
    epilog = examples(
        "tcfuse show --stage proof layers.tc --kernel softmax",
        "tcfuse show --stage source --target cuda layers.tc",
        "tcfuse show --stage source --kernel softmax_3f2a91c0 model.tcfuse.onnx",
        "tcfuse show --stage resources layers.tc",
    )
    app.command(epilog=epilog)(show)


def optimize(
    model: Model,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="OUT.onnx", help="Default: MODEL.tcfuse.onnx."),
    ] = None,
    target: Annotated[
        str,
        typer.Option(
            metavar="auto|cpu|cuda|cpu,cuda",
            help="Machines to compile for; auto adds cuda where there is a GPU and NVRTC.",
        ),
    ] = "auto",
    cuda_arch: Annotated[
        str,
        typer.Option(
            metavar="sm_80,sm_90", help="GPUs to make machine code for; default: common ones."
        ),
    ] = "",
    gate: Annotated[bool, typer.Option(help="Give back what does not pay.")] = True,
    verify: Annotated[bool, typer.Option(help="Run kernels against the original.")] = True,
    layout: Layout = "auto",
    planner: Planner = "auto",
    leave: Leave = None,
    together: Together = None,
    apart: Apart = None,
    max_nodes: MaxNodes = 0,
    emulate: Emulate = False,
    dim: Dim = None,
    input_shapes: InputShapes = None,
    numerics: AnyNumerics = None,
    wisdom: WisdomFile = None,
    no_wisdom: NoWisdom = False,
    require_gain: Annotated[
        bool, typer.Option("--require-gain", help="Exit with status 4 unless something won.")
    ] = False,
    report_json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the report there.")
    ] = None,
    profile: Profile = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
    *,
    mapping: MappingOptions,
    cuda: CudaOptions,
) -> int:
    """Write a faster model: OUT.onnx, OUT.so with its kernels, OUT.tcfuse.json about them."""
    from tcfuse.commands.optimize import Order, run

    _log(verbose)
    order = Order(model, output, require_gain, report_json, quiet)
    options = {"target": target, "cuda_arch": cuda_arch, "gate": gate, "verify": verify}
    options |= {"layout": layout, "emulate": emulate, "mapping": mapping, "cuda": cuda}
    options |= {"wisdom": str(wisdom or ""), "use_wisdom": not no_wisdom}
    options |= planning(planner, leave, together, apart, max_nodes)
    if numerics is not None:
        options["numerics"] = numerics
    with profiled(profile):
        return run(order, options, dim or [], input_shapes or [])


def planning(
    planner: str,
    leave: list[str] | None,
    together: list[str] | None,
    apart: list[str] | None,
    max_nodes: int,
) -> dict[str, object]:
    """The flags that say how regions are chosen, as options."""
    lists = {"leave": leave, "together": together, "apart": apart}
    given = {name: tuple(texts or ()) for name, texts in lists.items()}
    return {"planner": planner, "max_nodes": max_nodes, **given}


def explain(
    model: Model,
    numerics: Numerics = "default",
    planner: Planner = "auto",
    leave: Leave = None,
    together: Together = None,
    apart: Apart = None,
    max_nodes: MaxNodes = 0,
    profile: Profile = False,
    verbose: Verbose = 0,
) -> int:
    """Say what each region is, and why each other node was left alone."""
    _log(verbose)
    with profiled(profile):
        with phase("start"):
            from tcfuse.commands.explain import run
        chosen = planning(planner, leave, together, apart, max_nodes)
        return run(model, numerics, chosen)


def verify(
    model: Optimized,
    emulate: Annotated[
        bool,
        typer.Option("--emulate", help="Run its CUDA on the CPU, every access checked."),
    ] = False,
    counters: Annotated[
        bool, typer.Option("--counters", help="With --emulate: what every access costs.")
    ] = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> int:
    """Run every kernel of an optimized model against the original operators, here and now."""
    _log(verbose)
    if counters and not emulate:
        raise OptionError("--counters counts in the emulator; use it with --emulate")
    if emulate:
        from tcfuse.commands.verify_emulated import run as run_emulated

        return run_emulated(model, counters=counters, quiet=quiet)
    from tcfuse.commands.verify import run

    return run(model, quiet)


def bench(
    model: Optimized,
    vs: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Default: the original operators inside OUT.onnx."),
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of ONNX Runtime.")] = 1,
    rounds: Annotated[int, typer.Option(min=3, help="Paired measurements.")] = 15,
    dim: Dim = None,
    input_shapes: InputShapes = None,
    config: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A session configuration entry of both."),
    ] = None,
    disable_optimizer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="One of ONNX Runtime's that the original does without."
        ),
    ] = None,
) -> int:
    """Time an optimized model against its original: paired, interleaved, medians."""
    from tcfuse.commands.bench import Conditions, parse_entries, run

    entries = parse_entries(config or [])
    conditions = Conditions(threads, rounds, entries, tuple(disable_optimizer or ()))
    return run(model, vs, conditions, dim or [], input_shapes or [])


def show(
    model: Annotated[Path, typer.Argument(metavar="OUT.onnx|FILE.tc", help="Whose kernels.")],
    stage: Annotated[
        str,
        typer.Option(metavar="tc|tree|mapped|source|proof|resources", help="What to print."),
    ] = "tc",
    kernel: Annotated[
        str | None, typer.Option(metavar="NAME", help="Default: every kernel.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="cpu|cuda", help="Whose kernels; default: the CPU's.")
    ] = None,
) -> int:
    """Print a kernel as text: formula, schedule tree, mapping, source, or GPU resources."""
    from tcfuse.commands.show import run

    return run(model, stage, kernel, target)


def _log(verbose: int) -> None:
    """Print the log on standard error when asked to."""
    level = {0: debug.current().log, 1: "info"}.get(verbose, "debug")
    if level is not None:
        logging.basicConfig(
            level=level.upper(),
            format="%(levelname).1s %(name)s: %(message)s",
            stream=sys.stderr,
        )
