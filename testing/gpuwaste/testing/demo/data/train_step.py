"""The program of the demo's user: one training step of a network with two layers, in JAX, for the probe."""

from typing import Any

import jax
import jax.numpy as jnp

INPUTS, HIDDEN, CLASSES = 784, 1024, 10
RATE = 0.01


def program(batch: int) -> dict[str, Any]:
    """Return the step and the shapes of its arguments; no array is made."""

    def step(weights: Any, images: Any, targets: Any) -> Any:
        def loss(weights: Any) -> Any:
            hidden = jnp.maximum(images @ weights["first"], 0)
            return jnp.mean((hidden @ weights["second"] - targets) ** 2)

        gradients = jax.grad(loss)(weights)
        return jax.tree.map(lambda weight, gradient: weight - RATE * gradient, weights, gradients)

    weights = {"first": array(INPUTS, HIDDEN), "second": array(HIDDEN, CLASSES)}
    return {"step": step, "args": (weights, array(batch, INPUTS), array(batch, CLASSES)), "donate": (0,)}


def array(*shape: int) -> Any:
    """Return the shape of an array of 32-bit numbers."""
    return jax.ShapeDtypeStruct(shape, jnp.float32)
