"""The pictures in lessons are what a run of their kernels gives today."""

from __future__ import annotations

import msgspec
import pytest

from grader.access_map.model import AccessMap
from tests.grader.server import RealGrader
from tutor.access.lesson_picture import drawn, of_module, request
from tutor.course.loader import load
from tutor.course.pictures import BadPicture, Picture, pictures, without_info

FOUND = [(name, picture) for module in load(cache=False).modules for name, picture in of_module(module)]


def test_the_first_three_modules_have_pictures() -> None:
    assert {name[:3] for name, _ in FOUND} >= {"m01", "m02", "m03"}


@pytest.mark.parametrize(("name", "picture"), FOUND, ids=[f"{name}-{picture.demo}" for name, picture in FOUND])
def test_the_picture_is_what_the_kernel_does(grader: RealGrader, name: str, picture: Picture) -> None:
    event, _ = grader.ask("access_map", exercise=picture.exercise, file=str(picture.file), **request(picture))
    assert event["event"] == "answer", event
    again = drawn(picture, msgspec.convert(event["data"], AccessMap))
    assert picture.lines == again, f"{name}: `python -m tutor.access.lesson_picture` prints it anew:\n" + "\n".join(
        again
    )


def test_a_block_says_what_it_lacks() -> None:
    page = 'Text.\n\n```map exercise=vector_add case="n=1 float32" tensor=x_ptr demo=tiles rows=3\n0 00\n```\nMore.'
    (found,) = pictures(page)
    assert (found.case, found.rows, found.lines, found.offset) == ("n=1 float32", 3, ("0 00",), 2)
    assert "```text\n0 00" in without_info(page) and "demo" not in without_info(page)
    for info, words in (("exercise=a", "case, tensor"), ("nothing", "key=value"), ("exercise=a colour=b", "colour")):
        with pytest.raises(BadPicture, match=words):
            pictures(f"```map {info}\n```")
    with pytest.raises(BadPicture, match=r"modules/demos/nowhere\.py"):
        Picture("vector_add", "n=1", "x_ptr", demo="nowhere").file  # noqa: B018
