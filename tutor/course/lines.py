"""Where in a YAML file a value stands. Only needed once something is wrong: composing nodes is slow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

Place = Sequence[str | int]


class Positions:
    """The node tree of one file."""

    def __init__(self, file: Path) -> None:
        self._root = yaml.compose(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)

    def line(self, path: Place) -> int:
        """1-based line of the value at `path`; of the nearest value above it when there is none."""
        node, line = self._root, 1
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            line, node = found
        return line

    def text_line(self, path: Place, offset: int) -> int:
        """1-based line of the `offset`-th (0-based) line of a block scalar (`text: |`)."""
        node = self._root
        for step in path:
            found = _child(node, step)
            if found is None:
                return self.line(path)
            node = found[1]
        assert node is not None
        first = node.start_mark.line + 1
        is_block = isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")
        return first + 1 + offset if is_block else first

    def repeated_keys(self) -> list[tuple[str, int]]:
        """Keys given twice in one mapping, where YAML silently keeps the last."""
        found: list[tuple[str, int]] = []
        pending = [self._root]
        while pending:
            node = pending.pop()
            if isinstance(node, yaml.MappingNode):
                seen = set()
                for key, value in node.value:
                    if key.value in seen:
                        found.append((key.value, key.start_mark.line + 1))
                    seen.add(key.value)
                    pending.append(value)
            elif isinstance(node, yaml.SequenceNode):
                pending.extend(node.value)
        return sorted(found, key=lambda pair: pair[1])


def _child(node: yaml.Node | None, step: str | int) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == step:
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        value = node.value[step]
        return value.start_mark.line + 1, value
    return None
