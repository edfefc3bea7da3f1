"""Reading is linear in the text (ruling 10, F18): four times the text takes at most eight times the time."""

from __future__ import annotations

import pytest

from tamis.protocols.reader import read_text
from tests.growth import growth
from tests.protocols.hostile_texts import STRESS, _value


@pytest.mark.share(8)
@pytest.mark.parametrize("name", STRESS)
def test_time_grows_with_the_text(name: str) -> None:  # ruling 10
    # Past the cap on parameters a block is rejected by the tolerant path: compare like with like.
    # What costs little for each character shows only in a long text that it grows with it.
    size = {"parameters": 12_000, "code spans": 4_000, "fences": 4_000}.get(name, 1_000)
    assert growth(STRESS[name], read_text, size) <= 8


def test_ten_megabytes_in_one_value() -> None:  # ruling 10
    text = _value("<![CDATA[" + "0123456789abcde\n" * 640_000 + "]]>")
    document = read_text(text)
    assert len(document.calls) == 1
