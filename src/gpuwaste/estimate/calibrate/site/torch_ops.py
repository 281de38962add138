"""Calibration with torch: the operations of families.py, and a program as an eager step with the probe's output."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import families
import torch
import torch_probe
from torch import nn
from torch.nn import functional

NAME = "torch"
SUFFIX = ".json"
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
_current: list[dict[str, Any]] = []


class TorchOps:
    """Images are batch, channels, height, width."""

    @staticmethod
    def kernel_shape(kernel: int, into: int, out: int) -> tuple[int, ...]:
        """Return the shape of a convolution's weights."""
        return out, into, kernel, kernel

    @staticmethod
    def linear(x: Any, w: Any, b: Any) -> Any:
        """Multiply the last dimension."""
        return x @ w + b

    @staticmethod
    def act(x: Any) -> Any:
        """Clip at 0."""
        return functional.relu(x)

    @staticmethod
    def gelu(x: Any) -> Any:
        """Activate smoothly."""
        return functional.gelu(x)

    @staticmethod
    def conv(x: Any, w: Any, stride: int, groups: int) -> Any:
        """Convolve an image."""
        return functional.conv2d(x, w, stride=stride, padding=w.shape[-1] // 2, groups=groups)

    @staticmethod
    def batch_norm(x: Any, gain: Any, shift: Any) -> Any:
        """Normalize by channel."""
        return functional.batch_norm(x, None, None, gain, shift, training=True)

    @staticmethod
    def layer_norm(x: Any, gain: Any, shift: Any) -> Any:
        """Normalize by token."""
        return functional.layer_norm(x, x.shape[-1:], gain, shift)

    @staticmethod
    def max_pool(x: Any) -> Any:
        """Halve an image."""
        return functional.max_pool2d(x, 2)

    @staticmethod
    def twice(x: Any) -> Any:
        """Double an image."""
        return functional.interpolate(x, scale_factor=2, mode="nearest")

    @staticmethod
    def join(a: Any, b: Any) -> Any:
        """Join two images by channel."""
        return torch.cat([a, b], dim=1)

    @staticmethod
    def join_last(parts: list[Any]) -> Any:
        """Join by the last dimension."""
        return torch.cat(parts, dim=-1)

    @staticmethod
    def mean_of_image(x: Any) -> Any:
        """Return a row for each image."""
        return x.mean((2, 3))

    @staticmethod
    def mean_of_tokens(x: Any) -> Any:
        """Return a row for each sequence."""
        return x.mean(1)

    @staticmethod
    def swap(x: Any) -> Any:
        """Exchange tokens and channels."""
        return x.transpose(1, 2)

    @staticmethod
    def rows(table: Any, ids: Any) -> Any:
        """Read rows of a table."""
        return functional.embedding(ids, table)

    @staticmethod
    def attention(qkv: Any, heads: int, *, causal: bool) -> Any:
        """Attend with softmax over all tokens, or those before."""
        batch, tokens, width = qkv.shape
        q, k, v = qkv.view(batch, tokens, 3, heads, width // 3 // heads).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return mixed.transpose(1, 2).reshape(batch, tokens, width // 3)

    @staticmethod
    def lstm(x: Any, wi: Any, wh: Any, b: Any) -> Any:
        """Run a loop over tokens."""
        h = c = x.new_zeros(x.shape[0], wh.shape[0])
        found = []
        for token in x.unbind(1):
            i, f, g, o = (token @ wi + h @ wh + b).chunk(4, dim=-1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            found.append(h)
        return torch.stack(found, dim=1)

    @staticmethod
    def gru(x: Any, wi: Any, wh: Any, b: Any) -> Any:
        """Run a loop over tokens."""
        h = x.new_zeros(x.shape[0], wh.shape[0])
        found = []
        for token in x.unbind(1):
            ri, zi, ni = (token @ wi + b).chunk(3, dim=-1)
            rh, zh, nh = (h @ wh).chunk(3, dim=-1)
            z = torch.sigmoid(zi + zh)
            h = (1 - z) * torch.tanh(ni + torch.sigmoid(ri + rh) * nh) + z * h
            found.append(h)
        return torch.stack(found, dim=1)


class ProgramModule(nn.Module):  # type: ignore[misc, unused-ignore]  # torch is missing where this is checked
    """A program of the plan; parameters are made when the forward pass first uses them."""

    def __init__(self, program: dict[str, Any]) -> None:
        super().__init__()
        self.program, self.dtype = program, DTYPES[program["precision"]]
        self.weights = nn.ParameterDict()

    def forward(self, *inputs: Any) -> Any:
        """Run the family on its inputs, in the order of their names."""
        asked = _inputs(self.program)
        named = dict(zip(asked, inputs))
        return families.FORWARD[self.program["family"]]((TorchOps, self.parameter), named, self.program["sizes"])

    def parameter(self, name: str, *shape: int) -> Any:
        """Return a parameter in the type in which the program computes: training keeps f32 and casts."""
        if name not in self.weights:
            kept = torch.float32 if self.program["mode"] == "train" else self.dtype
            self.weights[name] = nn.Parameter(torch.randn(shape, dtype=torch.float32, device=_place()).to(kept) * 0.05)
        return self.weights[name].to(self.dtype)


def facts() -> dict[str, str]:
    """Return the framework and device that the measurements depend on."""
    device = torch.cuda.get_device_name(0) if DEVICE == "cuda" else "cpu"
    return {"framework": f"torch {torch.__version__}", "device": device, "platform": DEVICE}


def pool_b() -> int | None:
    """Return the bytes that the allocator has taken from the GPU; None without one."""
    return int(torch.cuda.memory_reserved()) if DEVICE == "cuda" else None


def prepare(program: dict[str, Any]) -> tuple[Any, bytes]:
    """Return a function that runs a number of steps and waits for them, and the program as the probe writes it."""
    parts = parts_of(program)
    optimizer = parts["optimizer"](parts["model"].parameters()) if "optimizer" in parts else None

    def steps(count: int) -> None:
        for _ in range(count):
            torch_probe.step(parts, optimizer)
        if DEVICE == "cuda":
            torch.cuda.synchronize()

    return steps, _probed(program)


def parts_of(program: dict[str, Any], device: str = DEVICE) -> dict[str, Any]:
    """Return model, inputs, loss and optimizer in the format that the probe expects."""
    _places.append(device)
    try:
        model = ProgramModule(program)
        dtype = DTYPES[program["precision"]]
        inputs = tuple(
            torch.randint(0, ids, shape, device=device) if ids else torch.randn(shape, device=device).to(dtype) * 0.05
            for shape, ids in _inputs(program).values()
        )
        with torch.no_grad():
            model(*inputs)  # makes the parameters
    finally:
        _places.pop()
    found: dict[str, Any] = {"model": model, "inputs": inputs}
    if program["mode"] == "train":
        found["loss"] = lambda output: output.float().square().mean()
        found["optimizer"] = lambda parameters: torch.optim.SGD(parameters, lr=1e-6, momentum=0.9)
    return found


def probed() -> dict[str, Any]:
    """Return the parts of the program to write; the probe calls this on shapes without contents."""
    return parts_of(_current[-1], "cpu")


def is_out_of_memory(error: Exception) -> bool:
    """Return whether a program failed because it is too large."""
    full = isinstance(error, torch.cuda.OutOfMemoryError) or "out of memory" in str(error).lower()
    if full and DEVICE == "cuda":
        torch.cuda.empty_cache()
    return full


_places: list[str] = [DEVICE]


def _place() -> str:
    return _places[-1]


def _inputs(program: dict[str, Any]) -> Any:
    return families.inputs_of(
        program["family"], program["sizes"], lambda batch, side, channels: (batch, channels, side, side)
    )


def _probed(program: dict[str, Any]) -> bytes:
    """Run the probe on the program, as users do."""
    arguments = sys.argv
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.json"
        _current.append(program)
        sys.argv = ["torch_probe.py", "torch_ops:probed", "-o", str(path)]
        try:
            torch_probe.main()
        finally:
            sys.argv = arguments
            _current.pop()
        return path.read_bytes()
