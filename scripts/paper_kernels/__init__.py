"""The kernels of the Tensor Comprehensions papers beside NumPy and ONNX Runtime."""
