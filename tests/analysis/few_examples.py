"""For properties whose examples take long: a fifth of the examples that the profile has."""

from __future__ import annotations

from hypothesis import settings

FEW = settings(max_examples=settings.default.max_examples // 5)
