"""Random small convolutional networks with what stands between convolutions in real ones."""

from __future__ import annotations

import random

import onnx_ir as ir

from models.draft import Draft

CHANNELS = (4, 8, 12, 16, 24, 32, 40)
POINTWISE = ("Elu", "HardSwish", "LeakyRelu", "Mish", "Neg", "Sigmoid", "Softplus", "Tanh")


class Net:
    """A network in the making; ``value`` has ``channels`` channels."""

    def __init__(self, seed: int, images: int | str = 2, side: int = 9) -> None:
        self.rng = random.Random(seed)
        self.draft = Draft(f"net{seed}", opset=18)
        self.channels = 3
        self.value = self.draft.input("x", [images, 3, side, side])
        self.images = images

    def convolve(self, channels: int | None = None) -> None:
        """A convolution that keeps the size of the image."""
        made = channels or self.rng.choice(CHANNELS)
        size = self.rng.choice((1, 3))
        weight = self.draft.weight(made, self.channels, size, size)
        bias = self.draft.weight(made)
        self.value = self.draft.op("Conv", self.value, weight, bias, pads=[size // 2] * 4)
        self.channels = made

    def pointwise(self) -> None:
        """One operator on every element."""
        self.value = self.draft.op(self.rng.choice(POINTWISE), self.value)

    def constant(self) -> None:
        """A number, or one for each channel."""
        c = self.channels
        shape = self.rng.choice(((), (1, 1, 1, 1), (c, 1, 1), (1, c, 1, 1)))
        other = self.draft.weight(*shape) if shape else self.draft.constant(0.5)
        operands = [self.value, other]
        self.rng.shuffle(operands)
        op_type = self.rng.choice(("Add", "Max", "Mul", "Sub"))
        self.value = self.draft.op(op_type, *operands)

    def gate(self) -> None:
        """Each channel times what the mean of all says."""
        mean = self.draft.op("GlobalAveragePool", self.value)
        weight = self.draft.weight(self.channels, self.channels, 1, 1)
        gate = self.draft.op("Sigmoid", self.draft.op("Conv", mean, weight))
        self.value = self.draft.op("Mul", self.value, gate)

    def residual(self) -> None:
        """The same value, changed, and added."""
        before, channels = self.value, self.channels
        self.pointwise()
        self.convolve(channels)
        self.value = self.draft.op("Add", before, self.value)

    def join(self) -> None:
        """Two convolutions side by side."""
        before, channels = self.value, self.channels
        self.convolve()
        first = self.value, self.channels
        self.value, self.channels = before, channels
        self.convolve()
        self.value = self.draft.op("Concat", first[0], self.value, axis=1)
        self.channels += first[1]

    def pad(self) -> None:
        """A border, which the next pool takes away again."""
        pads = self.draft.constant([0, 0, 1, 0, 0, 0, 0, 1], int)
        padded = self.draft.op("Pad", self.value, pads, self.draft.constant(-0.5))
        self.value = self.draft.op("MaxPool", padded, kernel_shape=[2, 2])

    def model(self, length: int = 6) -> ir.Model:
        """The finished network."""
        self.convolve()
        steps = (self.constant, self.gate, self.join, self.pad, self.pointwise, self.residual)
        for _ in range(length):
            self.rng.choice(steps)()
            if self.rng.random() < 0.5:
                self.convolve()
        self.convolve()
        self.draft.output(self.value, "y", [self.images, self.channels, None, None])
        return self.draft.model()
