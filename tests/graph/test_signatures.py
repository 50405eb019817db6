import onnx
import pytest

from tcfuse.errors import InputError
from tcfuse.graph.load import load_model

HEAD = '<ir_version: 8, opset_import: ["" : 17, "own" : 1]> '


def refusal(body: str, functions: str = "") -> str:
    text = f"{HEAD} g (float[2, 3] x) => (y) {{ {body} }} {functions}"
    with pytest.raises(InputError) as caught:
        load_model(onnx.parser.parse_model(text))
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("y = Mul (x)", "a Mul has 1 inputs and not 2"),
        ("y = Clip (x, x, x, x)", "a Clip has 4 inputs and not 1 to 3"),
        ('y = Add ("", x)', "a Add lacks input 0, A"),
        ("y, z = Relu (x)", "a Relu has 2 outputs and not 1"),
        ("y = Softmax <axis : ints = [1, 2]> (x)", "an attribute 'axis' of type INTS"),
        ("y = MaxPool <ceil_mode : int = 1> (x)", "lacks the attribute 'kernel_shape'"),
        ("y = Cast (x)", "a Cast lacks the attribute 'to'"),
    ],
)
def test_a_node_that_no_schema_allows_is_refused(body, reason):
    assert reason in refusal(body)


def test_a_node_inside_a_function_too():
    text = '<domain: "own", opset_import: ["" : 17]> F (a) => (b) { b = Mul (a) }'
    assert "a Mul has 1 inputs" in refusal("y = own.F (x)", text)


def test_an_operator_that_the_model_defines_itself_may_look_different():
    text = (
        f"{HEAD} g (float[2, 3] x) => (float[2, 3] y) {{ y = own.Mul (x) }} "
        '<domain: "own", opset_import: ["" : 17]> Mul (a) => (b) { b = Neg (a) }'
    )
    assert load_model(onnx.parser.parse_model(text))
