"""The attack and fault corpus: small scripts by area, each with the outcome that it must have."""

from __future__ import annotations

from tests.sandbox.cases.base import Case
from tests.sandbox.cases.environment import ENVIRONMENT
from tests.sandbox.cases.files import FILES
from tests.sandbox.cases.granted import GRANTED
from tests.sandbox.cases.kernel import KERNEL
from tests.sandbox.cases.memory import MEMORY
from tests.sandbox.cases.network import NETWORK
from tests.sandbox.cases.paths import PATHS
from tests.sandbox.cases.protocol import PROTOCOL
from tests.sandbox.cases.time import TIME
from tests.sandbox.cases.works import WORKS

ALL: tuple[Case, ...] = (
    *(*WORKS, *PROTOCOL, *TIME, *MEMORY, *FILES, *GRANTED, *PATHS),
    *(*KERNEL, *NETWORK, *ENVIRONMENT),
)

__all__ = ["ALL", "Case"]
