"""Questions that are sums: each is worked out again, and the right option must hold the result."""

from __future__ import annotations

from math import ceil

import pytest

from tutor.course.course import Course
from tutor.course.loader import load
from tutor.course.model import Predict, Quiz

H200_BYTES, H200_FLOPS = 4.8e12, 989e12


@pytest.fixture(scope="module")
def course() -> Course:
    return load()


def right(course: Course, item_id: str) -> str:
    """The text of the right option, and why it is right."""
    item = course.item(item_id)
    assert isinstance(item, (Quiz, Predict))
    (option,) = [option for option in item.options if option.correct]
    return f"{option.text} {option.why}"


def test_the_last_of_ten_programs(course: Course) -> None:
    programs = ceil(10_000 / 1024)
    lanes = 10_000 - (programs - 1) * 1024
    assert right(course, "m01.quiz.last-tile").startswith(f"{programs} programs; {lanes} lanes")


def test_bytes_per_second_of_a_vector_add(course: Course) -> None:
    rate = 3 * 2**24 * 4 / 0.075e-3 / 1e12
    assert right(course, "m02.quiz.bandwidth").startswith(f"{rate:.1f} TB/s, {rate / 2.8:.0%}".replace("%", " %"))


def test_what_the_noisy_runs_say(course: Course) -> None:
    by_median, by_minimum = 213 / 209 - 1, 209 / 188 - 1
    assert round(by_minimum, 2) == 0.11 and f"medians {by_median:.0%}".replace("%", " %") in right(
        course, "m02.quiz.noise"
    )
    assert max(202, 207) < min(216, 241)  # the spreads overlap


def test_walks_and_their_share_of_a_copy(course: Course) -> None:
    """In elements per element of the matrix: w walks read w times and write once; credited are one read, one write."""
    shares = {walks: 2 / (walks + 1) for walks in (1, 2, 3)}
    assert shares == {1: 1.0, 2: pytest.approx(2 / 3), 3: 0.5}
    assert right(course, "m04.quiz.two-walks").startswith("Two thirds")


def test_atomics_after_privatising(course: Course) -> None:
    assert right(course, "m05.quiz.private").startswith(f"{264 * 256:,}")


def test_bytes_loaded_by_tiles_of_c(course: Course) -> None:
    """A and B tiles of all programs, in elements, for a product of side n."""

    def loaded(tile: int, n: int = 4096, step: int = 32) -> int:
        return (n // tile) ** 2 * (n // step) * 2 * tile * step

    assert loaded(128) * 2 == loaded(64)
    assert right(course, "m06.quiz.intensity").startswith("They halve")
    assert [tile * tile / (2 * tile) for tile in (64, 128)] == [32, 64]  # FLOPs a byte in float16


def test_waves_of_two_tiles(course: Course) -> None:
    large, small = 18 * 9, 18 * 18
    assert (large, small) == (2304 // 128 * (2304 // 256), (2304 // 128) ** 2)
    times = ceil(large / 132) * 1.0, ceil(small / 132) * 0.55
    assert times == (2.0, pytest.approx(1.65))
    text = right(course, "m06.quiz.waves")
    assert f"{small / (3 * 132):.0%}".replace("%", " %") in text and f"{large / 264:.0%}".replace("%", " %") in text


def test_intensity_of_a_short_attention(course: Course) -> None:
    n, d = 256, 128
    intensity, ridge = 4 * n * n * d / (4 * n * d * 2), H200_FLOPS / H200_BYTES
    assert intensity == n / 2 < ridge
    assert f"N/2 = {intensity:.0f} FLOP a byte, and the ridge is at {ridge:.0f}" in right(course, "m07.quiz.short")
