"""Tools on many machines, by Temporal: a worker of this kind runs on each, with a daemon of Tamis of its own beside it.

Needs `pip install temporalio` and a Temporal server. `python temporal_calls.py worker` on every machine, `python temporal_calls.py run TEXT` once.
A model's text is run at most once: the workflow's id is the key of idempotency, which the daemon holds against the state folder of its machine.
"""

import asyncio
import os
import sys
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.worker import Worker

SERVER = os.environ.get("TEMPORAL_ADDRESS", "localhost:7233")
QUEUE = "tamis-calls"


@activity.defn
def run_text(text: str) -> str:
    """The observation of a text's calls: what the model reads next."""
    from tamis.client import Client as Tamis

    key = activity.info().workflow_id
    with Tamis(root=os.environ.get("TAMIS_ROOT", ".")) as tamis:
        return tamis.tool_execute_text(text=text, idempotency_key=key).observation


@workflow.defn
class Calls:
    """One model's text."""

    @workflow.run
    async def run(self, text: str) -> str:
        # Nothing is tried again on another machine: its daemon could not know what the first one did.
        once = RetryPolicy(maximum_attempts=1)
        limit = timedelta(minutes=10)
        return await workflow.execute_activity(run_text, text, start_to_close_timeout=limit, retry_policy=once)


async def main(words: list[str]) -> None:
    client = await Client.connect(SERVER)
    if words[:1] == ["run"]:
        text = words[1]
        print(await client.execute_workflow(Calls.run, text, id=f"calls-{os.urandom(8).hex()}", task_queue=QUEUE))
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        await Worker(client, task_queue=QUEUE, workflows=[Calls], activities=[run_text], activity_executor=pool).run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
