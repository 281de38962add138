"""The types of estimates: what `gpuwaste estimate` prints of a program before it runs."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpuwaste.core.fields import Bytes, Document

MaybeSeconds = Annotated[float | None, Meta(description="Seconds; null: not known, and `refused` says why.")]


class EstimatedProgram(Struct, kw_only=True, frozen=True):
    """The program, as read from its file."""

    name: str
    source: Annotated[str, Meta(description="hlo, stablehlo, onnx, torch or jax.")]
    fingerprint: Annotated[str, Meta(description="SHA-256 of its operations and buffers, without names.")]
    operations: Annotated[float, Meta(description="Operations in one step, loops trip by trip.")]
    flops: Annotated[float, Meta(description="FLOPs of one step: matrix products, convolutions, transforms.")]
    moved_b: Annotated[float, Meta(description="Bytes that one step reads and writes.")]
    parameters_b: Bytes
    outputs_b: Bytes
    training: Annotated[bool | None, Meta(description="Whether it has a backward pass; null: not known.")]


class EstimateOnGpu(Struct, kw_only=True, frozen=True):
    """What is expected on one type of GPU, or on one size of MIG instance of it."""

    gpu: str
    mig: Annotated[str, Meta(description="Size of the MIG instance; empty for the whole GPU.")] = ""
    capacity_b: Annotated[int, Meta(description="Bytes available to a program.")]
    fits: Literal["fits", "does not fit", "too close to tell"]
    step_s: MaybeSeconds = None
    step_low_s: MaybeSeconds = None
    step_high_s: MaybeSeconds = None
    run_s: MaybeSeconds = None
    basis: Annotated[str, Meta(description="What the time is based on; empty where there is none.")] = ""
    refused: Annotated[str, Meta(description="Why there is no time; empty where there is one.")] = ""


class EstimateDocument(Document, kw_only=True, frozen=True):
    """Memory and time of a program; the figures at the top are those of the only GPU asked for."""

    document: Literal["estimate"] = "estimate"
    program: EstimatedProgram
    memory_b: Annotated[int, Meta(description="Bytes of GPU memory, CUDA context included.")]
    memory_low_b: Bytes
    memory_high_b: Bytes
    program_b: Annotated[int, Meta(description="Bytes without context and workspaces.")]
    program_low_b: Bytes = 0
    program_high_b: Bytes = 0
    context_b: Annotated[int, Meta(description="Bytes of the process besides its arrays: CUDA context, libraries.")] = 0
    steps: Annotated[int | None, Meta(description="Steps of the run, as requested; null: not requested.")] = None
    step_s: MaybeSeconds = None
    run_s: MaybeSeconds = None
    basis: Annotated[str, Meta(description="What memory and time are based on.")]
    refused: Annotated[str, Meta(description="Why there is no time; empty where there is one, or several GPUs.")] = ""
    gpus: list[EstimateOnGpu]
    comment: Annotated[str, Meta(description="Option of sbatch that ties a run to the program.")] = ""
    notes: list[str]


class EstimateChoice(Struct, kw_only=True, frozen=True):
    """One request: a GPU type or a MIG instance of it, a number of GPUs, a program at a batch size."""

    gpu: str
    mig: Annotated[str, Meta(description="Size of the MIG instance; empty for whole GPUs.")] = ""
    gpus: Annotated[int, Meta(description="GPUs of the request.")]
    file: Annotated[str, Meta(description="File of the program, where several were given; empty for one.")] = ""
    batch: Annotated[int | None, Meta(description="Batch size that the program was written with; null: not known.")]
    memory_b: Annotated[int, Meta(description="Bytes on one GPU, not sharded, CUDA context included.")]
    memory_low_b: Bytes
    memory_high_b: Bytes
    capacity_b: Annotated[int, Meta(description="Bytes of one GPU that a program can use.")]
    fits: Annotated[
        str,
        Meta(
            description="fits, does not fit, too close to tell; for several GPUs: fits on one, must be sharded, "
            "may have to be sharded, does not fit."
        ),
    ]
    step_s: MaybeSeconds = None
    step_low_s: MaybeSeconds = None
    step_high_s: MaybeSeconds = None
    copies: Annotated[
        int, Meta(description="Copies of the program, one on each GPU: a step handles a batch for each copy.")
    ] = 1
    steps: Annotated[
        int | None, Meta(description="Steps of the run at this batch size and number of copies; null: not requested.")
    ] = None
    run_s: MaybeSeconds = None
    run_high_s: MaybeSeconds = None
    gpu_hours: Annotated[float | None, Meta(description="GPU-hours of the run; null: not known.")] = None
    cost: Annotated[float | None, Meta(description="GPU-hours times their price; null: not known.")] = None
    basis: Annotated[str, Meta(description="What the time is based on; empty where there is none.")] = ""
    refused: Annotated[str, Meta(description="Why there is no time; empty where there is one.")] = ""
    chosen: bool = False


class EstimateChoicesDocument(Document, kw_only=True, frozen=True):
    """What-if: the requests that were compared, the one that the goal chose, and what hands it over."""

    document: Literal["estimate-choices"] = "estimate-choices"
    program: EstimatedProgram
    goal: Literal["cheapest", "fastest", "smallest"]
    memory_basis: str
    choices: list[EstimateChoice]
    script: Annotated[list[str], Meta(description="#SBATCH lines of the chosen request; none without a choice.")]
    plan: Annotated[str, Meta(description="Command that plans a script with the chosen request; empty without one.")]
    notes: list[str]


class StepTime(Struct, kw_only=True, frozen=True):
    """A step's time on one type of GPU with its 90 % interval; None with `refused` where there is no estimate."""

    gpu: str
    step_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    basis: str = ""
    """The basis of the estimate."""
    refused: str = ""
    """Why there is none."""
    notes: tuple[str, ...] = ()
    public: bool = False
    """From public measurements: nothing was measured on this type at this site."""
