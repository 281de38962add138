"""The families of programs that calibration measures, written once for jax and torch.

`ops` is a backend's set of operations (jax_ops.py, torch_ops.py); `p(name, *shape)` returns a parameter. Layouts are
those of the framework's users: images are batch, height, width, channels in jax and batch, channels, height, width in
torch.
"""

from collections.abc import Callable
from typing import Any

Sizes = dict[str, int]
Parameters = Callable[..., Any]
Net = tuple[Any, Parameters]  # a backend's operations, and the source of parameters
Inputs = dict[str, tuple[tuple[int, ...], int]]  # by name: shape, and 0 for floats or the number of ids


def _mlp(net: Net, x: dict[str, Any], s: Sizes) -> Any:
    ops, p = net
    h = x["x"]
    width = s["inputs"]
    for layer in range(s["depth"]):
        h = ops.act(ops.linear(h, p(f"w{layer}", width, s["width"]), p(f"b{layer}", s["width"])))
        width = s["width"]
    return ops.linear(h, p("w", width, s["outputs"]), p("b", s["outputs"]))


def _conv(net: Net, name: str, h: Any, sizes: tuple[int, int, int], *, stride: int = 1, groups: int = 1) -> Any:
    ops, p = net
    into, out, kernel = sizes
    return ops.conv(h, p(name, *ops.kernel_shape(kernel, into // groups, out)), stride, groups)


def _block(net: Net, name: str, h: Any, sizes: tuple[int, int, int], *, stride: int = 1, groups: int = 1) -> Any:
    """Convolve, normalize, activate."""
    ops, p = net
    h = _conv(net, name, h, sizes, stride=stride, groups=groups)
    return ops.act(ops.batch_norm(h, p(f"{name}_g", sizes[1]), p(f"{name}_s", sizes[1])))


def _head(net: Net, h: Any, width: int, outputs: int) -> Any:
    ops, p = net
    return ops.linear(ops.mean_of_image(h), p("head", width, outputs), p("head_b", outputs))


def _cnn(net: Net, x: dict[str, Any], s: Sizes) -> Any:
    ops = net[0]
    h, width = x["x"], 3
    for stage in range(s["stages"]):
        for layer in range(s["depth"]):
            out = s["width"] << stage
            h = ops.act(_conv(net, f"c{stage}_{layer}", h, (width, out, s["kernel"])))
            width = out
        h = ops.max_pool(h)
    return _head(net, h, width, 1000)


def _residual(net: Net, x: dict[str, Any], s: Sizes) -> Any:
    ops = net[0]
    h = _block(net, "stem", x["x"], (3, s["width"], 7), stride=2)
    width = s["width"]
    for stage in range(s["stages"]):
        out = (s["width"] * 4) << stage
        inner = out // 4 if s["groups"] <= 1 else out // 2
        groups = inner if s["groups"] < 0 else max(1, s["groups"])
        for layer in range(s["depth"]):
            stride = 2 if layer == 0 and stage else 1
            name = f"r{stage}_{layer}"
            short = h if layer else _conv(net, f"{name}_d", h, (width, out, 1), stride=stride)
            b = _block(net, f"{name}_1", h, (width, inner, 1))
            b = _block(net, f"{name}_2", b, (inner, inner, 3), stride=stride, groups=groups)
            h = ops.act(short + _conv(net, f"{name}_3", b, (inner, out, 1)))
            width = out
    return _head(net, h, width, 1000)


def _feed_forward(net: Net, name: str, h: Any, width: int, inner: int) -> Any:
    ops, p = net
    h = ops.gelu(ops.linear(h, p(f"{name}_1", width, inner), p(f"{name}_1b", inner)))
    return ops.linear(h, p(f"{name}_2", inner, width), p(f"{name}_2b", width))


def _norm(net: Net, name: str, h: Any, width: int) -> Any:
    ops, p = net
    return ops.layer_norm(h, p(f"{name}_g", width), p(f"{name}_s", width))


def _transformer(net: Net, x: dict[str, Any], s: Sizes) -> Any:
    ops, p = net
    width = s["width"]
    h = ops.rows(p("table", s["vocabulary"], width), x["ids"])
    for layer in range(s["depth"]):
        a = _norm(net, f"n{layer}", h, width)
        qkv = ops.linear(a, p(f"qkv{layer}", width, 3 * width), p(f"qkvb{layer}", 3 * width))
        a = ops.attention(qkv, s["heads"], causal=bool(s["causal"]))
        h = h + ops.linear(a, p(f"o{layer}", width, width), p(f"ob{layer}", width))
        h = h + _feed_forward(net, f"f{layer}", _norm(net, f"m{layer}", h, width), width, 4 * width)
    h = _norm(net, "n", h, width)
    return ops.linear(h, p("logits", width, s["vocabulary"]), p("logits_b", s["vocabulary"]))


def _mixer(net: Net, x: dict[str, Any], s: Sizes) -> Any:
    ops, p = net
    width, tokens = s["width"], s["tokens"]
    h = ops.linear(x["x"], p("patch", s["inputs"], width), p("patch_b", width))
    for layer in range(s["depth"]):
        a = ops.swap(_norm(net, f"n{layer}", h, width))
        h = h + ops.swap(_feed_forward(net, f"t{layer}", a, tokens, 2 * tokens))
        h = h + _feed_forward(net, f"c{layer}", _norm(net, f"m{layer}", h, width), width, 4 * width)
    return ops.linear(ops.mean_of_tokens(h), p("head", width, 1000), p("head_b", 1000))


def _recurrent(net: Net, x: dict[str, Any], s: Sizes) -> Any:
    ops, p = net
    h, width = x["x"], s["inputs"]
    for layer in range(s["depth"]):
        cell = ops.lstm if s["lstm"] else ops.gru
        gates = (4 if s["lstm"] else 3) * s["width"]
        weights = (p(f"i{layer}", width, gates), p(f"h{layer}", s["width"], gates), p(f"b{layer}", gates))
        h, width = cell(h, *weights), s["width"]
    return ops.linear(h, p("head", width, s["outputs"]), p("head_b", s["outputs"]))


def _unet(net: Net, x: dict[str, Any], s: Sizes) -> Any:
    ops = net[0]
    h, into, kept = x["x"], 3, []
    for level in range(s["stages"]):
        out = s["width"] << level
        h = _block(net, f"d{level}_1", h, (into, out, 3))
        h = _block(net, f"d{level}_2", h, (out, out, 3))
        kept.append((h, out))
        h, into = ops.max_pool(h), out
    h = _block(net, "middle", h, (into, 2 * into, 3))
    into = 2 * into
    for level, (skip, out) in reversed(list(enumerate(kept))):
        h = _conv(net, f"u{level}", ops.twice(h), (into, out, 1))
        h = _block(net, f"u{level}_1", ops.join(h, skip), (2 * out, out, 3))
        h = _block(net, f"u{level}_2", h, (out, out, 3))
        into = out
    return _conv(net, "out", h, (into, s["outputs"], 1))


def _embedding(net: Net, x: dict[str, Any], s: Sizes) -> Any:
    ops, p = net
    looked = [ops.rows(p(f"t{table}", s["rows"], s["width"]), x[f"ids{table}"]) for table in range(s["tables"])]
    h = ops.join_last([*map(ops.mean_of_tokens, looked), x["x"]])
    width = s["tables"] * s["width"] + s["inputs"]
    for layer in range(s["depth"]):
        h = ops.act(ops.linear(h, p(f"w{layer}", width, s["inner"]), p(f"b{layer}", s["inner"])))
        width = s["inner"]
    return ops.linear(h, p("w", width, 1), p("b", 1))


FORWARD: dict[str, Callable[..., Any]] = {
    "mlp": _mlp,
    "cnn": _cnn,
    "residual": _residual,
    "transformer": _transformer,
    "mixer": _mixer,
    "recurrent": _recurrent,
    "unet": _unet,
    "embedding": _embedding,
}


def inputs_of(family: str, s: Sizes, image: Callable[[int, int, int], tuple[int, ...]]) -> Inputs:
    """Return the inputs of a program; `image` gives the shape of images for a batch, a side and channels."""
    batch = s["batch"]
    if family in {"cnn", "residual", "unet"}:
        return {"x": (image(batch, s["side"], 3), 0)}
    if family == "transformer":
        return {"ids": ((batch, s["tokens"]), s["vocabulary"])}
    if family in {"mixer", "recurrent"}:
        return {"x": ((batch, s["tokens"], s["inputs"]), 0)}
    found: Inputs = {"x": ((batch, s["inputs"]), 0)}
    if family == "embedding":
        found.update({f"ids{table}": ((batch, s["bag"]), s["rows"]) for table in range(s["tables"])})
    return found
