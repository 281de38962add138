"""What a program needs before it runs: GPU memory and step time, from the program's own text.

readers/ (one file per format) make a Program of a user's file, op_sums.py and memory.py reduce it to what is estimated
from. Nothing of a user's file is executed. May import history, slurm, store and core, and numpy; `onnx` and `jaxlib`
only inside the readers that need them.
"""
