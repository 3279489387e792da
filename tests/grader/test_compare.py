"""Tolerances and comparisons, on values made by hand."""

from __future__ import annotations

import math

import pytest
import torch

from grader.compare import compare, expect
from grader.problem import Tolerance


def expected(native, truth=None, scale=None, **tolerance):
    truth = native.double() if truth is None else truth
    return expect(native, truth, Tolerance(**tolerance), scale)


def test_exact_means_bit_for_bit():
    x = torch.tensor([1.0, 2.0])
    assert compare(x.clone(), expected(x, exact=True)).right
    nearly = torch.nextafter(x, torch.tensor(9.0))
    result = compare(nearly, expected(x, exact=True))
    assert not result.right and result.first_bad_index == (0,) and result.tolerance == 0.0


def test_nan_equals_nan_and_nothing_else():
    x = torch.tensor([math.nan, 1.0])
    assert compare(x.clone(), expected(x)).right
    assert not compare(torch.tensor([0.0, 1.0]), expected(x)).right
    assert not compare(torch.tensor([math.nan, math.nan]), expected(x)).right


def test_an_infinity_must_have_its_sign():
    x = torch.tensor([math.inf, -math.inf])
    assert compare(x.clone(), expected(x)).right
    assert not compare(-x, expected(x)).right
    assert not compare(torch.tensor([1e38, -1e38]), expected(x)).right


def test_two_units_in_the_last_place_pass_and_four_do_not():
    x = torch.tensor([1.0])
    eps = torch.finfo(torch.float32).eps
    assert compare(x + 2 * eps, expected(x)).right
    assert not compare(x + 4 * eps, expected(x)).right


def test_the_bound_grows_with_the_scale_of_the_accumulation():
    x, scale = torch.tensor([0.0]), torch.tensor([1000.0], dtype=torch.float64)
    error = torch.tensor([1e-4])
    assert not compare(error, expected(x)).right
    assert compare(error, expected(x, scale=scale)).right
    assert not compare(10 * error, expected(x, scale=scale)).right


def test_three_times_pytorchs_own_error_is_allowed():
    native, truth = torch.tensor([1.01]), torch.tensor([1.0], dtype=torch.float64)
    assert compare(torch.tensor([1.029]), expected(native, truth)).right
    assert not compare(torch.tensor([1.031]), expected(native, truth)).right


def test_a_truth_beyond_the_dtype_expects_an_infinity():
    truth = torch.tensor([1e6], dtype=torch.float64)
    native = truth.half()
    assert compare(torch.tensor([math.inf], dtype=torch.float16), expected(native, truth)).right
    assert not compare(torch.tensor([1000.0], dtype=torch.float16), expected(native, truth)).right


def test_whole_numbers_are_exact():
    x = torch.tensor([3, 4])
    assert not compare(torch.tensor([3, 5]), expected(x)).right


def test_the_worst_element_is_reported_beside_the_first():
    x = torch.zeros(4)
    result = compare(torch.tensor([0.0, 0.1, 0.5, 0.0]), expected(x))
    assert result.first_bad_index == (1,) and result.max_error == pytest.approx(0.5)


def test_an_empty_output_is_right():
    assert compare(torch.empty(0), expected(torch.empty(0))).right


def test_the_scale_of_the_rounding_counts_by_its_size():
    """A problem may give the reference itself: a bound below zero for half of its elements would fail right kernels."""
    truth = torch.tensor([-3.0, 3.0], dtype=torch.float64)
    expected = expect(truth.float(), truth, Tolerance(ulps=2.0, terms=8.0), truth)
    assert expected.bound[0] == expected.bound[1] > 9 * 3.0 * torch.finfo(torch.float32).eps
