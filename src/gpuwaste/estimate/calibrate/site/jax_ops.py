"""Calibration with jax: the operations of families.py, and a program as a compiled step with its HLO text."""

from collections.abc import Callable
from typing import Any

import families
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

NAME = "jax"
SUFFIX = ".hlo"
DTYPES = {"f32": jnp.float32, "bf16": jnp.bfloat16, "f16": jnp.float16}
_DRAWN = np.random.default_rng(1).standard_normal(1 << 20).astype(np.float32) * 0.05


class JaxOps:
    """Images are batch, height, width, channels."""

    @staticmethod
    def kernel_shape(kernel: int, into: int, out: int) -> tuple[int, ...]:
        """Return the shape of a convolution's weights."""
        return kernel, kernel, into, out

    @staticmethod
    def linear(x: Any, w: Any, b: Any) -> Any:
        """Multiply the last dimension."""
        return x @ w + b

    @staticmethod
    def act(x: Any) -> Any:
        """Clip at 0."""
        return jax.nn.relu(x)

    @staticmethod
    def gelu(x: Any) -> Any:
        """Activate smoothly."""
        return jax.nn.gelu(x)

    @staticmethod
    def conv(x: Any, w: Any, stride: int, groups: int) -> Any:
        """Convolve an image."""
        layout = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(
            x, w, (stride, stride), "SAME", dimension_numbers=layout, feature_group_count=groups
        )

    @staticmethod
    def batch_norm(x: Any, gain: Any, shift: Any) -> Any:
        """Normalize by channel."""
        mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
        return (x - mean) * lax.rsqrt(var + 1e-5) * gain + shift

    @staticmethod
    def layer_norm(x: Any, gain: Any, shift: Any) -> Any:
        """Normalize by token."""
        mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(var + 1e-5) * gain + shift

    @staticmethod
    def max_pool(x: Any) -> Any:
        """Halve an image."""
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    @staticmethod
    def twice(x: Any) -> Any:
        """Double an image."""
        return jnp.repeat(jnp.repeat(x, 2, axis=1), 2, axis=2)

    @staticmethod
    def join(a: Any, b: Any) -> Any:
        """Join two images by channel."""
        return jnp.concatenate([a, b], axis=-1)

    @staticmethod
    def join_last(parts: list[Any]) -> Any:
        """Join by the last dimension."""
        return jnp.concatenate(parts, axis=-1)

    @staticmethod
    def mean_of_image(x: Any) -> Any:
        """Return a row for each image."""
        return x.mean((1, 2))

    @staticmethod
    def mean_of_tokens(x: Any) -> Any:
        """Return a row for each sequence."""
        return x.mean(1)

    @staticmethod
    def swap(x: Any) -> Any:
        """Exchange tokens and channels."""
        return jnp.swapaxes(x, 1, 2)

    @staticmethod
    def rows(table: Any, ids: Any) -> Any:
        """Read rows of a table."""
        return table[ids]

    @staticmethod
    def attention(qkv: Any, heads: int, *, causal: bool) -> Any:
        """Attend with softmax over all tokens, or those before."""
        batch, tokens, width = qkv.shape
        each = width // 3 // heads
        q, k, v = jnp.moveaxis(qkv.reshape(batch, tokens, 3, heads, each), (2, 3), (0, 2))
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * float(each) ** -0.5
        if causal:
            scores = jnp.where(jnp.tril(jnp.ones((tokens, tokens), bool)), scores, -1e4)
        mixed = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, axis=-1), v)
        return jnp.moveaxis(mixed, 1, 2).reshape(batch, tokens, width // 3)

    @staticmethod
    def lstm(x: Any, wi: Any, wh: Any, b: Any) -> Any:
        """Run a loop over tokens."""

        def cell(state: Any, token: Any) -> Any:
            h, c = state
            i, f, g, o = jnp.split(token @ wi + h @ wh + b, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((x.shape[0], wh.shape[0]), x.dtype)
        return jnp.swapaxes(lax.scan(cell, (zero, zero), jnp.swapaxes(x, 0, 1))[1], 0, 1)

    @staticmethod
    def gru(x: Any, wi: Any, wh: Any, b: Any) -> Any:
        """Run a loop over tokens."""

        def cell(h: Any, token: Any) -> Any:
            ri, zi, ni = jnp.split(token @ wi + b, 3, axis=-1)
            rh, zh, nh = jnp.split(h @ wh, 3, axis=-1)
            z = jax.nn.sigmoid(zi + zh)
            h = (1 - z) * jnp.tanh(ni + jax.nn.sigmoid(ri + rh) * nh) + z * h
            return h, h

        zero = jnp.zeros((x.shape[0], wh.shape[0]), x.dtype)
        return jnp.swapaxes(lax.scan(cell, zero, jnp.swapaxes(x, 0, 1))[1], 0, 1)


def facts() -> dict[str, str]:
    """Return the framework and device that the measurements depend on."""
    device = jax.devices()[0]
    return {"framework": f"jax {jax.__version__}", "device": device.device_kind, "platform": device.platform}


def pool_b() -> int | None:
    """Return the bytes that the allocator has taken from the GPU; None where it does not state them."""
    stats = jax.devices()[0].memory_stats() or {}
    return stats.get("pool_bytes")


def prepare(program: dict[str, Any]) -> tuple[Callable[[int], None], bytes]:
    """Return a function that runs a number of steps and waits for them, and the program's HLO text."""
    run, step, kept, given = functions_of(program)
    inputs = {name: _input(each, ids) for name, (each, ids) in given.items()}
    weights = {name: jnp.asarray(np.resize(_DRAWN, each.shape), each.dtype) for name, each in kept.items()}
    if program["mode"] != "train":
        lowered = jax.jit(run).lower(weights, inputs)
        compiled = lowered.compile()
        return (lambda steps: _repeat(lambda: compiled(weights, inputs), steps)), _text(lowered)
    moments = jax.tree.map(jnp.zeros_like, weights)
    lowered = jax.jit(step, donate_argnums=(0, 1)).lower(weights, moments, inputs)
    compiled = lowered.compile()
    state = [weights, moments]

    def advance() -> Any:
        state[:] = compiled(*state, inputs)
        return state

    return (lambda steps: _repeat(advance, steps)), _text(lowered)


def functions_of(program: dict[str, Any]) -> tuple[Any, Any, dict[str, Any], dict[str, tuple[Any, int]]]:
    """Return the forward pass, the training step, and shapes and types of weights and inputs (with how many ids)."""
    dtype, sizes = DTYPES[program["precision"]], program["sizes"]
    forward = families.FORWARD[program["family"]]
    asked = families.inputs_of(program["family"], sizes, lambda batch, side, channels: (batch, side, side, channels))
    inputs = {
        name: (jax.ShapeDtypeStruct(shape, jnp.int32 if ids else dtype), ids) for name, (shape, ids) in asked.items()
    }
    shapes: dict[str, tuple[int, ...]] = {}

    def noting(x: Any) -> Any:
        def parameter(name: str, *shape: int) -> Any:
            shapes[name] = shape
            return jnp.zeros(shape, dtype)

        return forward((JaxOps, parameter), x, sizes)

    jax.eval_shape(noting, {name: each for name, (each, _) in inputs.items()})
    kept = jnp.float32 if program["mode"] == "train" else dtype  # training keeps its weights in f32 and casts them

    def run(w: Any, x: Any) -> Any:
        return forward((JaxOps, lambda name, *_: w[name].astype(dtype)), x, sizes)

    def step(w: Any, moments: Any, x: Any) -> Any:
        slopes = jax.grad(lambda each: (run(each, x).astype(jnp.float32) ** 2).mean())(w)
        moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, slopes)
        return jax.tree.map(lambda each, m: each - 1e-6 * m, w, moments), moments

    return run, step, {name: jax.ShapeDtypeStruct(shape, kept) for name, shape in shapes.items()}, inputs


def is_out_of_memory(error: Exception) -> bool:
    """Return whether a program failed because it is too large."""
    return "RESOURCE_EXHAUSTED" in str(error) or "out of memory" in str(error).lower()


def _repeat(once: Callable[[], Any], steps: int) -> None:
    last = None
    for _ in range(steps):
        last = once()
    jax.block_until_ready(last)


def _input(of: Any, ids: int) -> Any:
    if ids:
        return jnp.asarray(np.random.default_rng(2).integers(0, ids, of.shape), of.dtype)
    return jnp.asarray(np.resize(_DRAWN, of.shape), of.dtype)


def _text(lowered: Any) -> bytes:
    return str(lowered.as_text(dialect="hlo")).encode()
