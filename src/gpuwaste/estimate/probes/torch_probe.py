"""Write a torch program as JSON for `gpuwaste estimate`: operations and the life of every array. No GPU is needed.

    python probe.py my_training:program -o program.json

`program()` is a function of yours, without arguments. It returns a dict:

    {"model": a Module, "inputs": (tensor, ...),       inference
     "loss": lambda output: output.sum(),              training, where it is there
     "optimizer": lambda parameters: AdamW(...)}       and its step, where it is there

For several batch sizes give it one argument, `program(batch)`, and run the probe with --batch 8,16,32.

The model is made under FakeTensorMode: arrays have shapes and no contents, so a large model takes no memory. Make the
model and the inputs inside of the function, on the CPU, and load no checkpoint. The second step is written: by then
the optimizer has its state. Needs torch 2.3 or later.
"""

import argparse
import importlib
import json
import sys
import weakref
from contextlib import nullcontext
from math import prod
from typing import Any
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

DTYPES = {
    torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64",
    torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "i8", torch.bool: "bool",
    torch.complex64: "c64", torch.complex128: "c128",
}  # fmt: skip
MATMULS = {"mm", "addmm", "bmm", "baddbmm", "_scaled_mm", "mv", "dot"}
VIEWS = {"view", "_unsafe_view", "t", "transpose", "permute", "expand", "as_strided", "slice", "select", "split",
         "unsqueeze", "squeeze", "alias", "detach", "reshape", "_reshape_alias", "unbind", "chunk", "diagonal",
         "split_with_sizes", "lift_fresh", "view_as_real", "view_as_complex", "unfold"}  # fmt: skip
KINDS = {
    "elem": ("dropout_backward", "masked_fill"),
    "bn": ("batch_norm", "cudnn_batch_norm"), "ln": ("layer_norm", "group_norm", "rms_norm"),
    "softmax": ("softmax", "logsumexp"), "sdpa": ("scaled_dot_product", "flash_attention", "efficient_attention"),
    "act": ("relu", "gelu", "silu", "sigmoid", "tanh", "hardtanh", "hardswish", "elu", "threshold", "mish"),
    "window": ("max_pool", "avg_pool", "adaptive_"),
    "gather": ("embedding", "index_select", "gather", "index.", "take"),
    "scatter": ("embedding_dense_backward", "index_put", "index_add", "scatter"),
    "sort": ("sort", "topk", "argsort"),
    "reduce": ("sum", "mean", "amax", "amin", "var", "norm", "argmax", "cumsum", "nll_loss", "max.dim", "min.dim",
               "prod"),
    "random": ("bernoulli", "dropout", "normal", "uniform", "rand"),
    "solve": ("linalg", "cholesky", "triangular", "fft"),
    "copy": ("copy", "clone", "cat", "stack", "fill", "zero", "ones", "empty", "full", "arange", "pad", "repeat",
             "flip", "roll", "constant", "slice_backward", "select_backward", "tril", "triu", "new_"),
}  # fmt: skip
ORDER = ("elem", "scatter", "sdpa", "bn", "ln", "softmax", "act", "window", "gather", "sort", "random", "copy",
         "reduce", "solve")  # fmt: skip
UNWRITTEN = ("empty", "new_empty")
"""Beginnings of names of operations that only take memory."""
SHAPED = ("zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "new_zeros", "new_ones", "new_full")
"""Operations that read the shape of their argument and no contents."""
OVERWRITES = ("copy_", "fill_", "zero_", "bernoulli_", "normal_", "uniform_", "random_", "exponential_")
"""Operations in place that do not read what they change."""


FUSED = torch.nn.functional.scaled_dot_product_attention
UNFUSED = torch.nn.functional.dropout


def as_on_gpu() -> Any:
    """Replace dropout by what a GPU runs: one operation with a mask of bytes, and nothing of its own in attention.

    On the CPU torch makes a mask of floating-point numbers in several operations, and does not fuse such attention.
    """
    return mock.patch.multiple(torch.nn.functional, dropout=dropout, scaled_dot_product_attention=fused_attention)


def dropout(  # the parameters are those of torch
    input: torch.Tensor,  # noqa: A002
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
) -> torch.Tensor:
    """Drop elements in one operation."""
    if not training or inplace or not 0 < p < 1 or not input.numel():
        return UNFUSED(input, p, training, inplace)
    return torch.native_dropout(input, p, training)[0]


def fused_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: Any = None, dropout_p: float = 0.0,  # noqa: ARG001
    *args: Any, **kwargs: Any,
) -> torch.Tensor:  # fmt: skip
    """Attend without dropout."""
    return FUSED(query, key, value, attn_mask, 0.0, *args, **kwargs)


class Recorder(TorchDispatchMode):
    """Sees every operation below autograd, and when the memory of every array begins and ends."""

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[dict[str, Any]] = []
        self.buffers: list[dict[str, Any]] = []
        self.place_of: dict[int, int] = {}

    def know(self, tensor: torch.Tensor, kind: str) -> None:
        """Take an array's memory as a buffer that begins now, unless it is known."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.place_of:
            return
        place = self.place_of[key] = len(self.buffers)
        now = max(0, len(self.ops) - 1)
        self.buffers.append({"size_b": storage.nbytes(), "first": now, "last": -1, "kind": kind})
        weakref.finalize(storage, self._ended, key, place).atexit = False

    def _ended(self, key: int, place: int) -> None:
        if self.place_of.get(key) == place:
            del self.place_of[key]
            self.buffers[place]["last"] = max(self.buffers[place]["first"], len(self.ops) - 1)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation on shapes, and write it down."""
        result = func(*args, **(kwargs or {}))
        name = func._schema.name.removeprefix("aten::")
        given = [each for each in tree_flatten((args, kwargs or {}))[0] if isinstance(each, torch.Tensor)]
        made = [each for each in tree_flatten(result)[0] if isinstance(each, torch.Tensor)]
        changed = made or (tree_flatten(args[0])[0] if name.endswith("_") and args else [])  # in place, returns nothing
        if changed and name not in VIEWS and not name.startswith(UNWRITTEN):
            self.ops += describe(name, str(func), args, given, changed)
        for tensor in made:
            self.know(tensor, "temporary")
        return result

    def written(self) -> list[dict[str, Any]]:
        """Return the buffers; what still lives ends with the last operation."""
        last = max(0, len(self.ops) - 1)
        for buffer in self.buffers:
            if buffer["last"] < 0 or buffer["kind"] == "parameter":
                buffer["last"] = last
        return [buffer for buffer in self.buffers if buffer["size_b"]]


def size(tensor: torch.Tensor) -> int:
    """Bytes of an array, without what a broadcast repeats."""
    return int(min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes()))


def describe(
    name: str, full: str, args: Any, given: list[torch.Tensor], made: list[torch.Tensor]
) -> list[dict[str, Any]]:
    """Return an operation in the neutral form: one, or one for each gradient of a convolution."""
    kind, flops = kind_of(name, full), 0.0
    operands = given[:4]
    if name == "convolution_backward":
        return gradients(name, args, made)
    if name in MATMULS:
        operands = given[-2:]
        flops = 2.0 * made[0].numel() * operands[0].shape[-1]
        kind = "bmm" if len(operands[0].shape) > 2 else "mm"
    elif name in {"convolution", "_convolution", "cudnn_convolution"}:
        kind, flops = convolution(name, args, made)
    elif kind == "sdpa":
        flops = attention(name, given)
    main = given[-1] if name in MATMULS else (given[0] if given else made[0])
    return [entry(kind, name, main, flops, (*moved(kind, name, args, given, made), [made[0], *operands]))]


def entry(kind: str, name: str, main: torch.Tensor, flops: float, arrays: tuple[int, int, Any]) -> dict[str, Any]:
    """Return an operation's fields; `main` has its element type, `arrays` are bytes read, written, and the arrays."""
    read, written, shaped = arrays
    return {
        "kind": kind, "name": name[:200],
        "dtype": DTYPES.get(main.dtype, "f8" if "float8" in str(main.dtype) else "other"),
        "flops": flops, "bytes_read": float(read), "bytes_written": float(written),
        "shapes": [list(each.shape) for each in shaped],
    }  # fmt: skip


def moved(kind: str, name: str, args: Any, given: list[torch.Tensor], made: list[torch.Tensor]) -> tuple[int, int]:
    """Return bytes that an operation reads and writes."""
    written = sum(size(each) for each in made)
    if name in SHAPED:
        return 0, written
    if kind == "gather":
        return written + sum(size(each) for each in given[1:]), written
    if name.removeprefix("_foreach_") in OVERWRITES:
        given = given[len(tree_flatten(args[0])[0]) :]
    elif name.startswith("nll_loss"):  # one number of each row
        given = given[2:] if name.endswith("backward") else given[1:]
    elif kind == "scatter" and name.endswith("_"):  # in place: rows that the indexes name
        given = given[1:]
        written = max((size(each) for each in given), default=0)
    return sum(size(each) for each in given), written


def gradients(name: str, args: Any, made: list[torch.Tensor]) -> list[dict[str, Any]]:
    """Return the gradients of a convolution by its input, its filters and its bias, those that are computed."""
    output, given, weight, *_, wanted = args
    kind, flops = convolution(name, args, made)
    forms = ((kind, flops, (output, weight)), (kind, flops, (given, output)), ("reduce", 0.0, (output,)))
    results = iter(made)
    found = []
    for asked, (kind, flops, reads) in zip(wanted, forms, strict=True):
        result = next(results, None) if asked else None
        if result is not None:
            read = sum(size(each) for each in reads)
            found.append(entry(kind, name, output, flops, (read, size(result), [result, *reads])))
    return found


def kind_of(name: str, full: str) -> str:
    """Return the kind of an operation by its name."""
    for kind in ORDER:
        if any(part in full.removeprefix("aten.") if "." in part else part in name for part in KINDS[kind]):
            return kind
    return "elem" if full.startswith("aten.") else "custom"


def convolution(name: str, args: Any, made: list[torch.Tensor]) -> tuple[str, float]:
    """Return kind and FLOPs: each result element is a sum over one filter; backward those of one gradient."""
    backward = name == "convolution_backward"
    weight = args[2] if backward else args[1]
    positions = args[0] if backward else made[0]
    groups = args[9] if backward else args[8]
    transposed = args[7] if backward else args[6]
    spatial = prod(weight.shape[2:])
    elements = args[1 if backward else 0].numel() if transposed else positions.numel()
    flops = 2.0 * elements * prod(weight.shape[1:])
    if groups > 1:
        return ("dwconv" if weight.shape[1] == 1 else "gconv"), flops
    return ("conv1" if spatial == 1 else "conv"), flops


def attention(name: str, given: list[torch.Tensor]) -> float:
    """Return FLOPs of attention: two products of queries and keys; backward five."""
    wide = [each for each in given if each.dim() == 4]
    if len(wide) < 3:
        return 0.0
    query, key = (wide[1], wide[2]) if "backward" in name else (wide[0], wide[1])
    once = 2.0 * prod(query.shape[:2]) * query.shape[2] * key.shape[2] * query.shape[3]
    return float(once * (5 if "backward" in name else 2))


def step(parts: dict[str, Any], optimizer: Any) -> Any:
    """Run one step."""
    loss = parts.get("loss")
    with nullcontext() if loss else torch.no_grad():
        output = parts["model"](*parts["inputs"])
    if not loss:
        return output
    loss(output).backward()
    if optimizer is not None:
        optimizer.step()
    parts["model"].zero_grad(set_to_none=True)
    return None


def written(options: argparse.Namespace, batch: int | None) -> dict[str, Any]:
    """Make the program, at a batch size where one is given, run two steps on shapes, return the second."""
    module, _, function = options.program.partition(":")
    make = getattr(importlib.import_module(module), function or "program")
    with FakeTensorMode(allow_non_fake_inputs=True):
        parts = make() if batch is None else make(batch)
        model = parts["model"].train(bool(parts.get("loss")))
        optimizer = parts["optimizer"](model.parameters()) if parts.get("optimizer") else None
        for group in optimizer.param_groups if optimizer else ():
            if group.get("foreach", False) is None and not group.get("fused"):
                group["foreach"] = True  # as torch does by itself on a GPU; it needs more memory
        if parts.get("loss"):
            with as_on_gpu():
                step(parts, optimizer)
        recorder = Recorder()
        state = [each for each in tree_flatten(dict(optimizer.state) if optimizer else {})[0] if torch.is_tensor(each)]
        kept = [*model.parameters(), *model.buffers(), *tree_flatten(parts["inputs"])[0], *state]
        for tensor in kept:
            if torch.is_tensor(tensor):
                recorder.know(tensor, "parameter")
        with as_on_gpu(), recorder:
            output = step(parts, optimizer)
        for tensor in tree_flatten(output)[0]:
            if (
                torch.is_tensor(tensor)
                and (place := recorder.place_of.get(tensor.untyped_storage()._cdata)) is not None
            ):
                recorder.buffers[place]["kind"] = "output"
    trained = [each for each in model.parameters() if each.requires_grad] if parts.get("loss") else []
    return {
        "gpuwaste_program": 1, "name": options.program[:200], "source": "torch", "ops": recorder.ops,
        "buffers": recorder.written(), "batch": batch, "training": bool(parts.get("loss")),
        "gradient_b": sum(each.numel() * each.element_size() for each in trained),
        "notes": [f"torch {torch.__version__}"],
    }  # fmt: skip


def main() -> int:
    """Write the program, or one for each batch size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="module:function")
    parser.add_argument("-o", "--output", help="file to write (default: stdout)")
    parser.add_argument("--batch", help="batch sizes, separated by commas: program(batch) is called with each")
    options = parser.parse_args()
    sys.path.insert(0, "")
    if options.batch:
        programs = [written(options, int(batch)) for batch in options.batch.split(",")]
        text = json.dumps({"gpuwaste_programs": 1, "programs": programs})
    else:
        text = json.dumps(written(options, None))
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    else:
        sys.stdout.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
