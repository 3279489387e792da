"""The picture of a lesson, drawn anew. `python -m tutor.access.lesson_picture FILE` prints those of a module file."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from grader.access_map.model import AccessMap
from tutor.access.cells import Choice
from tutor.access.drawing import picture as drawn_lines
from tutor.course.model import Lesson, Module
from tutor.course.pictures import WIDTH, BadPicture, Picture, pictures


def request(picture: Picture) -> dict[str, object]:
    """What the grader is asked for, beside exercise and file: a demo's result is not judged, its code not shown."""
    return {"case": picture.case, "demo": True}


def drawn(picture: Picture, shown: AccessMap) -> tuple[str, ...]:
    """Raises BadPicture for a tensor that the kernel does not have."""
    for index, tensor in enumerate(shown.tensors):
        if picture.tensor in tensor.names:
            choice = Choice(tensor=index, program=picture.program)
            return tuple(drawn_lines(shown, choice, WIDTH, picture.rows))
    names = [name for tensor in shown.tensors for name in tensor.names]
    raise BadPicture(f"the kernel has no {picture.tensor!r}: it has {', '.join(names)}")


def of_module(module: Module) -> list[tuple[str, Picture]]:
    """Each with the id of its lesson."""
    lessons = [item for item in module.items if isinstance(item, Lesson)]
    return [(lesson.id, found) for lesson in lessons for page in lesson.pages for found in pictures(page.text)]


def main(name: str) -> None:
    import yaml

    from tutor import batch
    from tutor.grading import Answer

    module = msgspec.convert(yaml.safe_load(Path(name).read_text(encoding="utf-8")), Module, strict=False)
    for lesson, found in of_module(module):
        one = found
        event = batch.run_one(lambda grader: grader.ask("access_map", one.exercise, one.file, **request(one)))  # noqa: B023
        if not isinstance(event, Answer):
            raise SystemExit(f"{lesson}: {getattr(event, 'message', event)}")
        print(f"{lesson}, {found.tensor}:")
        print("\n".join(drawn(found, msgspec.convert(event.data, AccessMap))))


if __name__ == "__main__":
    main(sys.argv[1])
