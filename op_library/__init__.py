"""Definitions of ONNX operators as Tensor Comprehensions, one family a module.

``tcfuse.opdef`` finds the modules; importing this package alone registers nothing.
"""
