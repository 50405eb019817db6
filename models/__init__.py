"""Small models to try tcfuse on: builders here, real ones by ``fetch``.

Every builder module has ``build(**sizes) -> onnx_ir.Model``; a size is a number or a name.
"""
