"""A small Python client of the JSON-RPC face, for hosts: ``Client`` for threads, ``AsyncClient`` for asyncio.

Both start ``tamis rpc``, speak JSON-RPC with it and end it. They know the wire, not the runtime. A daemon that ended is never
started again in secret: every later request raises ``DaemonEnded``.

>>> from tamis.client import Client
>>> with Client(root="examples") as tamis:  # doctest: +SKIP
...     print(tamis.tool_list().tools[0].tool_id)
"""

from __future__ import annotations

from tamis.client.asynchronous import AsyncClient
from tamis.client.blocking import Client
from tamis.client.messages import DaemonEnded, RpcFailure, WrongResult
from tamis.client.methods import RESULTS

__all__ = ["RESULTS", "AsyncClient", "Client", "DaemonEnded", "RpcFailure", "WrongResult"]
