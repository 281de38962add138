"""An HLO module as a graph: calls expanded, each loop once with its trip count, fusions as one node."""

import re
from collections import Counter
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.estimate.program import DTYPE_BITS, Dtype, Kind
from gpuwaste.estimate.readers import hlo_cost
from gpuwaste.estimate.readers.graph import Graph, GraphNode
from gpuwaste.estimate.readers.hlo_cost import HALF_BITS, ONE_INPUT, PARTS, Fusions, product_of, role_and_kind, work
from gpuwaste.estimate.readers.hlo_shape import ArrayShape, Type, leaves
from gpuwaste.estimate.readers.hlo_split import SUM_B, padded_inner, parts_of
from gpuwaste.estimate.readers.hlo_text import Computation, Instruction, Module
from gpuwaste.estimate.readers.hlo_trips import constant, trip_count

MAX_DEPTH: Final = 100
MAX_EXPANDED: Final = 1_000_000
_CALLED: Final = re.compile(r"(to_apply|calls|body|condition|true_computation|false_computation)=%?([\w.\-]+)")
_BRANCHES: Final = re.compile(r"branch_computations=\{([^}]{0,20000})\}")
_INDEX: Final = re.compile(r"index=(\d{1,9})")
_NUMBER: Final = re.compile(r"\d{1,9}")
_ZERO: Final = re.compile(r"-?0(\.0*)?|false")
_OUTPUT_ALIAS: Final = re.compile(r"output_to_operand_aliasing=\{\{[\d,]*\}: \((\d{1,6}),")
Tree = int | tuple["Tree", ...]
"""One array, or a tuple of trees: arrays are indexes of the graph's."""


def graph_of(module: Module) -> Graph:
    """Return the module's graph. Raises ParseError."""
    return _Expansion(module).run()


def flat(tree: Tree) -> list[int]:
    """Return the arrays of a tree, in order."""
    return [tree] if isinstance(tree, int) else [leaf for part in tree for leaf in flat(part)]


class _Expansion:
    """Walks the entry computation, and what it calls."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.graph = Graph()
        self.graph.fused = module.scheduled
        self.arrays: list[ArrayShape] = []
        self.scalars: dict[int, int] = {}
        self.added: set[int] = set()
        self.bits: dict[int, int] = {}
        """Bits of an element of the array from which elementwise operations made another."""
        self.active: list[str] = []
        self.fusions = Fusions(module)
        self.trips = 1.0
        self.loop = 0
        self.expanded = 0

    def run(self) -> Graph:
        """Expand the entry computation."""
        entry = self.module.computations[self.module.entry]
        numbered = {each.operands[0]: each for each in entry.instructions if each.opcode == "parameter"}
        arguments: list[Tree] = []
        for place in range(len(numbered)):
            parameter = numbered.get(str(place))
            if parameter is None:
                raise ParseError(f"entry computation: parameter {place} is missing")
            tree = self._new(parameter.type)
            self.graph.parameters += flat(tree)
            arguments.append(tree)
        result = self._computation(entry, arguments)
        first_leaf = [flat(each)[0] if isinstance(each, int) else None for each in arguments]
        for place, leaf in enumerate(flat(result)):
            parameter_at = self.module.aliases.get(place)
            alias = first_leaf[parameter_at] if parameter_at is not None and parameter_at < len(first_leaf) else None
            self.graph.outputs.append((leaf, alias))
        self._without_zeros()
        return self.graph

    def _without_zeros(self) -> None:
        """Find scatters that only a sum uses: XLA scatters into the other summand, not into zeros."""
        uses = Counter(leaf for node in self.graph.nodes for leaf in node.inputs)
        for node in self.graph.nodes:
            if node.early and uses[node.outputs[0]] == 1 and node.outputs[0] in self.added:
                node.early = False

    def _new(self, of: Type) -> Tree:
        return self._array(of) if isinstance(of, ArrayShape) else tuple(self._new(part) for part in of)

    def _array(self, of: ArrayShape) -> int:
        self.arrays.append(of)
        return self.graph.array(of.size_b, of.dims)

    def _named(self, name: str) -> Computation:
        found = self.module.computations.get(name)
        if found is None:
            raise ParseError(f"computation {name[:60]} is called but missing: the file is truncated, write it again")
        return found

    def _computation(self, of: Computation, arguments: list[Tree]) -> Tree:
        if of.name in self.active:
            raise ParseError(f"computation {of.name[:60]} calls itself: the cost of a recursive program is unknown")
        if len(self.active) >= MAX_DEPTH:
            raise ParseError(f"calls nested deeper than {MAX_DEPTH}")
        self.expanded += len(of.instructions)
        if self.expanded > MAX_EXPANDED:
            raise ParseError(f"more than {MAX_EXPANDED} instructions once its calls are expanded")
        self.active.append(of.name)
        values: dict[str, Tree] = {}
        for each in of.instructions:
            if each.opcode == "parameter":
                values[each.name] = self._argument(each, arguments)
            else:
                values[each.name] = self._instruction(each, self._given(values, each))
        self.active.pop()
        return values[of.instructions[of.root].name]

    @staticmethod
    def _argument(parameter: Instruction, arguments: list[Tree]) -> Tree:
        text = parameter.operands[0] if parameter.operands else ""
        if not _NUMBER.fullmatch(text) or int(text) >= len(arguments):
            raise ParseError(f"{parameter.name[:60]}: parameter {text[:20]!r} is not passed by the caller")
        return arguments[int(text)]

    @staticmethod
    def _given(values: dict[str, Tree], of: Instruction) -> list[Tree]:
        if of.opcode == "constant":
            return []
        try:
            return [values[name] for name in of.operands]
        except KeyError as error:
            name = str(error.args[0])[:60]
            raise ParseError(f"{of.name[:60]}: operand {name!r} is not defined above it") from None

    def _instruction(self, each: Instruction, operands: list[Tree]) -> Tree:  # noqa: PLR0911 - one line for each form
        match each.opcode:
            case "tuple":
                return tuple(operands)
            case "get-tuple-element":
                return self._element(each, operands)
            case "constant":
                return self._constant(each)
            case "call":
                return self._computation(self._called(each, "to_apply"), operands)
            case "while":
                return self._while(each, operands)
            case "conditional":
                return self._conditional(each, operands)
            case "async-start":
                return (tuple(operands), self._computation(self._called(each, "calls"), operands))
            case "optimization-barrier" | "domain" | "add-dependency" if operands:
                return operands[0]
            case opcode if opcode.endswith(hlo_cost.ASYNC_PARTS):
                return self._async(each, operands)
            case _:
                return self._operation(each, [leaf for tree in operands for leaf in flat(tree)])

    def _async(self, each: Instruction, operands: list[Tree]) -> Tree:
        """Take a part of an asynchronous operation: its work is that of the start."""
        place, given = hlo_cost.result_place(each.opcode), operands[0] if operands else ()
        if hlo_cost.ends(each.opcode) and not isinstance(given, int) and given:
            return given if place == hlo_cost.WHOLE else given[min(place, len(given) - 1)]
        work_of = hlo_cost.started(each) if each.opcode.endswith(hlo_cost.START) else None
        arrays = [leaf for tree in operands for leaf in flat(tree)]
        if work_of is None or isinstance(each.type, ArrayShape):
            return self._operation(each, arrays)
        same = work_of.opcode == each.opcode
        result = self._operation(work_of, arrays) if same else self._instruction(work_of, operands)
        others = [self._new(part) for part in each.type[2:]]
        if place == 0:
            return (result, given, *others)
        return (given if isinstance(each.type[0], ArrayShape) else tuple(operands), result, *others)

    @staticmethod
    def _element(each: Instruction, operands: list[Tree]) -> Tree:
        found = _INDEX.search(each.attributes)
        of = operands[0] if operands else 0
        if found is None or isinstance(of, int) or int(found[1]) >= len(of):
            raise ParseError(f"{each.name[:60]}: get-tuple-element of an element that the tuple does not have")
        return of[int(found[1])]

    def _constant(self, each: Instruction) -> Tree:
        tree = self._new(each.type)
        number = constant(each)
        if isinstance(tree, int):
            if _ZERO.fullmatch("".join(each.operands)):
                self.graph.zeros.add(tree)
            if number is not None:
                self.scalars[tree] = number
            self.graph.add(
                GraphNode("copy", self.arrays[tree].dtype, role="source", inputs=[], outputs=[tree], trips=self.trips)
            )
        return tree

    def _called(self, each: Instruction, how: str) -> Computation:
        for word, name in _CALLED.findall(each.attributes):
            if word == how:
                return self._named(name)
        raise ParseError(f"{each.name[:60]}: {each.opcode} without {how}")

    def _while(self, each: Instruction, operands: list[Tree]) -> Tree:
        body, condition = self._called(each, "body"), self._called(each, "condition")
        start = [leaf for tree in operands for leaf in flat(tree)]
        tops = operands[0] if operands and not isinstance(operands[0], int) else tuple(operands)
        trips = trip_count(each.attributes, condition, body, lambda i: self._scalar(tops, i))
        if trips is None:
            self.graph.unknown_trips += 1
            trips = 1
        moved = _moved(body)
        before, outermost = self.trips, self.loop
        self.trips *= trips
        if not outermost:
            self.graph.loops += 1
            self.loop = self.graph.loops
        carry = self._carry(tops, moved, each.name)
        result = self._computation(body, [carry])
        for at_start, at_end in zip(flat(carry), flat(result), strict=False):
            if at_start != at_end:
                self.graph.same.append((at_start, at_end))
        self.trips, self.loop = before, outermost
        if len(flat(result)) != len(start):
            raise ParseError(f"{each.name[:60]}: the loop's body takes and returns different numbers of arrays")
        return carry

    def _carry(self, tops: tuple[Tree, ...], moved: set[int] | None, name: str) -> Tree:
        """Return the arguments of the body: those it changes have their own memory, which may be that of the start."""
        parts: list[Tree] = []
        for place, top in enumerate(tops):
            if moved is not None and place not in moved:
                parts.append(top)
                continue
            copy = self._like(top)
            for old, new in zip(flat(top), flat(copy), strict=True):
                if self.graph.fused:
                    self.graph.same.append((old, new))
                node = GraphNode(
                    "copy",
                    self.arrays[new].dtype,
                    name,
                    into=0,
                    loop=self.loop,
                    role="update",
                    inputs=[old],
                    outputs=[new],
                    reads={0: 0},
                    writes=0,
                )
                self.graph.add(node)
            parts.append(copy)
        return tuple(parts)

    def _like(self, tree: Tree) -> Tree:
        if isinstance(tree, int):
            self.arrays.append(self.arrays[tree])
            return self.graph.array(self.graph.sizes[tree], self.graph.shapes[tree])
        return tuple(self._like(part) for part in tree)

    def _scalar(self, tops: tuple[Tree, ...], place: int) -> int | None:
        top = tops[place] if place < len(tops) else ()
        return self.scalars.get(top) if isinstance(top, int) else None

    def _conditional(self, each: Instruction, operands: list[Tree]) -> Tree:
        listed = _BRANCHES.search(each.attributes)
        names = [part.strip().lstrip("%") for part in listed[1].split(",")] if listed else [
            name for word, name in _CALLED.findall(each.attributes) if word.endswith("_computation")
        ]  # fmt: skip
        if not names or len(operands) != len(names) + 1:
            raise ParseError(f"{each.name[:60]}: conditional without its branches")
        before = self.trips
        self.trips /= len(names)
        results = [
            self._computation(self._named(name), [given]) for name, given in zip(names, operands[1:], strict=True)
        ]
        self.trips = before
        note = "conditional branches count with equal weight"
        if note not in self.graph.notes:
            self.graph.notes.append(note)
        first = flat(results[0])
        for other in results[1:]:
            self.graph.same += [(a, b) for a, b in zip(first, flat(other), strict=False) if a != b]
        return results[0]

    def _operation(self, each: Instruction, inputs: list[int]) -> Tree:
        if isinstance(each.type, ArrayShape) and not self.graph.fused and each.opcode not in PARTS:
            role, kind = role_and_kind(each.opcode, each.attributes)
            if role in {"light", "view", "alias"}:  # most nodes of a program: no work to compute
                made = self._array(each.type)
                if each.opcode == "broadcast" and not self.graph.zeros.isdisjoint(inputs):
                    self.graph.zeros.add(made)
                if each.opcode == "add":
                    self.added.update(inputs)
                if each.opcode in ONE_INPUT and len(inputs) == 1:
                    self.bits[made] = self.bits.get(inputs[0], DTYPE_BITS[self.arrays[inputs[0]].dtype])
                node = GraphNode(
                    kind,
                    each.type.dtype,
                    each.name,
                    trips=self.trips,
                    loop=self.loop,
                    role=role,
                    inputs=inputs,
                    outputs=[made],
                    costly=each.opcode == "tanh" and DTYPE_BITS[each.type.dtype] <= HALF_BITS,
                )
                self.graph.add(node)
                return made
        return self._heavy(each, inputs)

    def _heavy(self, each: Instruction, inputs: list[int]) -> Tree:
        result = self._new(each.type)
        operands = [self.arrays[leaf] for leaf in inputs]
        results = leaves(each.type)
        if each.opcode == "fusion":
            node = self.fusions.node(self._called(each, "calls"), operands)
            if "kind=kCustom" in each.attributes:  # a Triton kernel: its result never takes an input's memory
                node.role = "heavy"
            node.inputs = inputs
        else:
            role, kind = role_and_kind(each.opcode, each.attributes)
            flops, finer = work(each.opcode, kind, each.attributes, operands, results)
            node = GraphNode(finer, _dtype(kind, operands, results), flops=flops, role=role, inputs=inputs, outputs=[])
            if each.opcode == "dot" and not self.graph.fused:
                self._divide(node, each, inputs)
            node.early = each.opcode == "select-and-scatter"
            self._parts(node, each, operands, results)
        node.outputs, node.name, node.trips, node.loop = flat(result), each.name, self.trips, self.loop
        if node.kind == "other":
            self._unknown(each.opcode)
        self.graph.add(node)
        return result

    def _parts(self, node: GraphNode, each: Instruction, operands: list[ArrayShape], results: list[ArrayShape]) -> None:
        """Set where an operation reads or writes less than whole arrays, and which of them in place."""
        if each.opcode in PARTS and results:
            node.reads = {0: results[0].size_b}
        elif node.role == "update":
            node.into = 0
            update = operands[2 if each.opcode == "scatter" and len(operands) > 2 else 1] if len(operands) > 1 else None  # noqa: PLR2004 - operand, indexes, updates
            node.writes = update.size_b if update else None
            node.reads = {0: update.size_b if update and each.opcode == "scatter" else 0}
        elif self.graph.fused and node.role in {"light", "view"}:
            node.role = "heavy" if node.kind == "copy" else "light"
        aliased = _OUTPUT_ALIAS.search(each.attributes)
        if aliased and int(aliased[1]) < len(operands):
            node.into = int(aliased[1])

    def _divide(self, node: GraphNode, each: Instruction, inputs: list[int]) -> None:
        """Set the partial results of a product that XLA divides, and the copies of its operands that it pads."""
        operands, result = [self.arrays[leaf] for leaf in inputs], leaves(each.type)[0]
        bits = [self.bits.get(leaf, DTYPE_BITS[self.arrays[leaf].dtype]) for leaf in inputs]
        product = product_of(each.attributes, operands, result, bits)
        parts = 1 if product is None else parts_of(product)
        if product is None or parts == 1:
            return
        node.partial_b = parts * result.elements * SUM_B
        padded = padded_inner(product, parts)
        if padded != product.inner:
            node.workspace_b = sum(operand.size_b for operand in operands) * padded // product.inner

    def _unknown(self, opcode: str) -> None:
        note = f"unknown operation {opcode[:60]}"
        if note not in self.graph.notes and len(self.graph.notes) < 50:  # noqa: PLR2004 - enough to see what is missing
            self.graph.notes.append(note)


def _moved(body: Computation) -> set[int] | None:
    """Return the places of the loop's tuple that the body changes, None if they are unknown."""
    root = body.instructions[body.root]
    if root.opcode != "tuple":
        return None
    elements = {
        each.name: int(found[1])
        for each in body.instructions
        if each.opcode == "get-tuple-element" and (found := _INDEX.search(each.attributes))
    }
    parameters = {each.name for each in body.instructions if each.opcode == "parameter"}
    direct = {each.name for each in body.instructions if each.operands and each.operands[0] in parameters}
    return {place for place, name in enumerate(root.operands) if elements.get(name) != place or name not in direct}


def _dtype(kind: Kind, operands: list[ArrayShape], results: list[ArrayShape]) -> Dtype:
    """Return the element type that an operation multiplies or moves."""
    if kind in {"mm", "conv", "sdpa"} and operands:
        return operands[0].dtype
    return results[0].dtype if results else "other"
