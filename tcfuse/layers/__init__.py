"""A person's own layers: Tensor Comprehensions as Python functions and ONNX operators."""
