"""Recurrent layers agree with ONNX Runtime: every attribute and optional input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcfuse.errors import UnsupportedError
from tcfuse.opdef import OpCall, find
from tcfuse.types import DType, TensorType
from tests.op_library.test_against_onnxruntime import compare, data

pytestmark = pytest.mark.ort

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STEPS, BATCH, INPUTS, HIDDEN = 4, 3, 5, 6


def inputs(op_type: str, given: str, directions: int) -> list[np.ndarray | None]:
    """X, W, R and those optional inputs that ``given`` names by their first letters."""
    gates = GATES[op_type] * HIDDEN
    state = data(directions, BATCH, HIDDEN)
    optional = {
        "B": data(directions, 2 * gates, seed=1),
        "s": np.array([STEPS, 1, 2], np.int32),
        "h": state,
        "c": state[:, ::-1] * 2,
        "P": data(directions, 3 * HIDDEN, seed=2),
    }
    found: list[np.ndarray | None] = [
        data(STEPS, BATCH, INPUTS) * 2,
        data(directions, gates, INPUTS, seed=3),
        data(directions, gates, HIDDEN, seed=4),
        *(optional[name] if name in given else None for name in "BshcP"),
    ]
    return found[: 8 if op_type == "LSTM" else 6]


CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "rnn": ("RNN", "", {}),
    "rnn_everything": ("RNN", "Bsh", {"direction": "bidirectional", "clip": 0.4}),
    "rnn_two_functions": (
        "RNN",
        "Bh",
        {
            "direction": "bidirectional",
            "activations": ["ScaledTanh", "LeakyRelu"],
            "activation_alpha": [0.7, 0.3],
            "activation_beta": [0.4],
        },
    ),
    **{
        f"rnn_{name.lower()}": (
            "RNN",
            "Bh",
            {"activations": [name], "activation_alpha": [0.3], "activation_beta": [0.2]},
        )
        for name in ("Affine", "Elu", "HardSigmoid", "ThresholdedRelu")
    },
    **{
        f"rnn_{name.lower()}": ("RNN", "B", {"activations": [name]})
        for name in ("Relu", "Sigmoid", "Softsign", "Softplus", "HardSigmoid", "LeakyRelu")
    },
    "gru": ("GRU", "", {}),
    "gru_bias": ("GRU", "B", {"direction": "reverse"}),
    "gru_everything": ("GRU", "Bsh", {"direction": "bidirectional", "clip": 0.5}),
    "gru_linear": ("GRU", "Bsh", {"linear_before_reset": 1}),
    "gru_linear_without_bias": ("GRU", "", {"linear_before_reset": 1}),
    "gru_linear_from_nothing": ("GRU", "B", {"linear_before_reset": 1, "direction": "reverse"}),
    "gru_functions": (
        "GRU",
        "Bh",
        {"activations": ["HardSigmoid", "LeakyRelu"], "activation_alpha": [0.3, 0.05]},
    ),
    "lstm": ("LSTM", "", {}),
    "lstm_everything": ("LSTM", "BshcP", {"direction": "bidirectional"}),
    "lstm_clip": ("LSTM", "Bhc", {"clip": 0.3}),
    "lstm_coupled": ("LSTM", "Bhc", {"input_forget": 1}),
    "lstm_coupled_peepholes": ("LSTM", "BP", {"input_forget": 1, "direction": "reverse"}),
    "lstm_cell_alone": ("LSTM", "c", {}),
    "lstm_lengths": ("LSTM", "Bs", {"direction": "reverse"}),
    "lstm_functions": (
        "LSTM",
        "Bhc",
        {
            "activations": ["HardSigmoid", "Softsign", "ScaledTanh"],
            "activation_alpha": [0.3, 0.8],
            "activation_beta": [0.4, 0.9],
        },
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_layer_agrees(run: Any, name: str) -> None:
    op_type, given, attributes = CASES[name]
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    outputs = ("y", "h", "c") if op_type == "LSTM" else ("y", "h")
    arrays = inputs(op_type, given, directions)
    compare(run, op_type, 14, arrays, {**attributes, "hidden_size": HIDDEN}, outputs)


@pytest.mark.parametrize("outputs", [("y",), ("", "h"), ("", "", "c")])
def test_outputs_may_be_left_out(run: Any, outputs: tuple[str, ...]) -> None:
    arrays = inputs("LSTM", "Bhc", 1)
    compare(run, "LSTM", 14, arrays, {"hidden_size": HIDDEN}, outputs)


def call(steps: int | str, **attributes: Any) -> OpCall:
    shapes = [(steps, "N", 3), (1, 4, 3), (1, 4, 4)]
    types = tuple(TensorType(DType.FLOAT32, shape) for shape in shapes)
    y = TensorType(DType.FLOAT32, (steps, 1, "N", 4))
    return OpCall("RNN", 14, types, (y,), attributes)


@pytest.mark.parametrize(
    ("steps", "attributes", "reason"),
    [
        ("T", {}, "over T steps"),
        (1000, {}, "over 1000 steps"),
        (3, {"direction": "sideways"}, "in direction 'sideways'"),
        (3, {"activations": ["Cosh"]}, "with activation 'Cosh'"),
        (3, {"activations": ["Tanh"], "direction": "bidirectional"}, "with 1 activations"),
    ],
)
def test_what_is_refused(steps: int | str, attributes: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        find("RNN", 14).lower(call(steps, **attributes))


def test_the_batch_may_have_a_name() -> None:
    assert "b in 0:N" in find("RNN", 14).lower(call(3))
