"""Secrets in the parts of a result (F10)."""

from __future__ import annotations

from tamis.server.runtime.calls.runner import empty_result
from tamis.server.runtime.observe.masking import left_result, result_without, shown_result


def test_a_secret_in_a_part_is_masked_wherever_one_in_the_output_is() -> None:
    """F10."""
    result = empty_result("c", "t:a", "success")
    result.output = "s3cret-value"
    result.parts = [{"type": "resource", "resource": {"uri": "file:///s3cret-value", "text": "a s3cret-value"}}]
    for made in (
        result_without(result, ["s3cret-value"]),
        shown_result(result, ["s3cret-value"]),
        left_result(result, ["s3cret-value"], ["s3cret-value"]),
    ):
        assert "s3cret-value" not in str(made.parts) + str(made.output)
    assert "s3cret-value" in str(result.parts)
