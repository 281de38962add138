"""The lifetime of each stored array of a program, and which arrays share memory."""

from gpuwaste.estimate.program import Buffer, BufferKind
from gpuwaste.estimate.readers.graph import Graph
from gpuwaste.estimate.readers.graph_steps import KernelStep


class _Groups:
    """Arrays in the same memory."""

    def __init__(self, count: int) -> None:
        self._of = list(range(count))

    def of(self, array: int) -> int:
        """Return the group of an array."""
        of = self._of
        while (above := of[array]) != array:
            of[array] = array = of[above]
        return array

    def join(self, one: int, other: int) -> None:
        """Put two arrays into the same memory."""
        self._of[self.of(one)] = self.of(other)


def buffers_of(graph: Graph, names: list[int], steps: list[KernelStep]) -> list[Buffer]:
    """Return the program's buffers; indexes are those of `steps`."""
    last_step = max(0, len(steps) - 1)
    groups = _Groups(len(graph.sizes))
    for one, other in graph.same:
        groups.join(names[one], names[other])
    parameters = {names[each] for each in graph.parameters}
    returned = {names[leaf] for leaf, _ in graph.outputs}
    donated = {names[leaf]: alias for leaf, alias in graph.outputs if alias is not None}
    for leaf, parameter in donated.items():
        if leaf not in parameters:
            groups.join(leaf, parameter)
    ends = _ends(steps)
    for each in returned:
        ends[each] = last_step
    fixed = {groups.of(each) for each in parameters}
    group_end = _group_ends(ends, groups)
    _share(graph, steps, groups, fixed, group_end)
    return _buffers(graph, groups, (parameters, returned), steps, _group_ends(ends, groups))


def _ends(steps: list[KernelStep]) -> dict[int, int]:
    """Return for each array the last step that reads it; for outer arrays read in a loop, the loop's last step."""
    loop_end: dict[int, int] = {}
    home: dict[int, int] = {}
    for place, step in enumerate(steps):
        if step.loop:
            loop_end[step.loop] = place
        for array in step.writes:
            home[array] = step.loop
    ends: dict[int, int] = {}
    for place, step in enumerate(steps):
        for array in step.reads:
            end = place if not step.loop or home.get(array) == step.loop else loop_end[step.loop]
            if end >= ends.get(array, 0):
                ends[array] = end
        for array in step.writes:
            ends.setdefault(array, place)
    return ends


def _group_ends(ends: dict[int, int], groups: _Groups) -> dict[int, int]:
    found: dict[int, int] = {}
    for array, end in ends.items():
        group = groups.of(array)
        if end >= found.get(group, 0):
            found[group] = end
    return found


def _share(graph: Graph, steps: list[KernelStep], groups: _Groups, fixed: set[int], ends: dict[int, int]) -> None:
    """Let results reuse the memory of inputs that end where they begin."""
    sizes = graph.sizes
    for place, step in enumerate(steps):
        if not step.writes:
            continue
        for written in step.writes:
            result = groups.of(written)
            if result in fixed:
                continue
            given = [step.into] if step.into is not None else [*step.reads] if step.reuses else []
            for array in given:
                group = groups.of(array)
                if group == result:
                    break
                if group not in fixed and ends.get(group) == place and sizes[array] == sizes[written]:
                    end = max(ends.get(result, place), place)
                    groups.join(result, group)
                    ends[groups.of(group)] = end + (1 if end == place else 0)
                    break


def _buffers(
    graph: Graph, groups: _Groups, outside: tuple[set[int], set[int]], steps: list[KernelStep], ends: dict[int, int]
) -> list[Buffer]:
    (parameters, returned), last = outside, max(0, len(steps) - 1)
    first: dict[int, int] = {}
    size: dict[int, int] = {}
    loop_end: dict[int, int] = {}
    for place, step in enumerate(steps):
        if step.loop:
            loop_end[step.loop] = place
        for array in step.writes:
            group = groups.of(array)
            first.setdefault(group, place)
            size[group] = max(size.get(group, 0), graph.sizes[array])
    for one, other in graph.same:  # arrays passed from trip to trip live as long as the loop
        for array in (one, other):
            group = groups.of(array)
            if group in first:
                loop = steps[first[group]].loop
                ends[group] = max(ends.get(group, 0), loop_end.get(loop, 0))
    kinds: dict[int, BufferKind] = {groups.of(each): "output" for each in returned}
    for each in parameters:
        group = groups.of(each)
        kinds[group] = "parameter"
        size[group] = max(size.get(group, 0) if group not in first else 0, graph.sizes[each])
        first[group], ends[group] = 0, last
    for each in returned:
        group = groups.of(each)
        if group in first:
            ends[group] = last
    _zeros(graph, groups, steps, first, kinds)
    workspaces = [
        Buffer(size_b=step.workspace_b, first=place, last=place)
        for place, step in enumerate(steps) if step.workspace_b
    ]  # fmt: skip
    return workspaces + [
        Buffer(size_b=size[group], first=start, last=max(start, ends.get(group, start)),
               kind=kinds.get(group, "temporary"))
        for group, start in first.items() if size[group]
    ]  # fmt: skip


def _zeros(
    graph: Graph, groups: _Groups, steps: list[KernelStep], first: dict[int, int], kinds: dict[int, BufferKind]
) -> None:
    """Start results that begin as zeros where XLA makes them.

    It has one array of zeros of a shape. Where elementwise work uses it too (the maximum of an activation), the kernel
    of that work stores it; otherwise it is made with the first other one of its shape.
    """
    shared = _used_zeros(graph)
    stored: dict[tuple[int, ...], int] = {}
    made: dict[tuple[int, ...], int] = {}
    filled: set[int] = set()
    for place, step in enumerate(steps):
        for array in step.writes:
            group = groups.of(array)
            blank = not step.reads and step.kind == "copy" and not step.loop
            if blank:
                filled.add(array)
            zeros = step.early or blank or step.into in filled
            shape = graph.shapes[array]
            before = stored.setdefault(shape, place)
            start = place
            if zeros:
                start = made.setdefault(shape, before if shape in shared else place)
            if zeros and not graph.fused and kinds.get(group) != "parameter" and first.get(group) == place:
                first[group] = start


def _used_zeros(graph: Graph) -> set[tuple[int, ...]]:
    """Return the shapes of zeros that elementwise work uses."""
    return {
        graph.shapes[each]
        for node in graph.nodes
        if node.role == "light" and node.kind in {"act", "elem"}
        for each in node.inputs
        if each in graph.zeros
    }
