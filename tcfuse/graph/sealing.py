"""Fused nodes that must have their kernels, because the operators behind them may be wrong.

A model in a blocked layout is right only where ONNX Runtime uses the same block, which the
library checks.  So nothing may run it without the library: the original operators stay in the
file, to verify and compare against, in functions of another domain, which no node calls.
"""

from __future__ import annotations

import onnx_ir as ir

from tcfuse.graph.fallback import DOMAIN

SEALED = "tcfuse.original"
"""Domain of original operators that do not stand in for their kernel."""


def seal(model: ir.Model) -> ir.Model:
    """A copy of ``model`` that does not load without the kernels of its fused nodes."""
    return _moved(model, DOMAIN, SEALED)


def unseal(model: ir.Model) -> ir.Model:
    """A copy of ``model`` whose fused nodes may be run by their original operators."""
    return _moved(model, SEALED, DOMAIN)


def in_domain(function: ir.Function, domain: str) -> ir.Function:
    """``function`` under the same name in ``domain``."""
    return ir.Function(
        domain,
        function.name,
        function.overload,
        graph=function.graph,
        attributes=function.attributes.values(),
    )


def _moved(model: ir.Model, source: str, target: str) -> ir.Model:
    copy = model.clone()
    for identifier, function in list(copy.functions.items()):
        if function.domain == source:
            del copy.functions[identifier]
            twin = in_domain(function, target)
            copy.functions[twin.identifier()] = twin
    if any(function.domain == target for function in copy.functions.values()):
        copy.graph.opset_imports.setdefault(target, 1)
    return copy
