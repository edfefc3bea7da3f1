"""What lives as long as a runtime and is shared by all of its calls: services, workflows, tasks, the store and their like.

Each part is made when it is first asked for, so that a command that needs none pays for none. Must not know faces: what a host
can be asked and told goes through ``Host``.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.server.runtime.settings.config import Settings

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from tamis.server.runtime.agents.session import Sessions
    from tamis.server.runtime.calls.model import CallServices, Host
    from tamis.server.runtime.calls.running_calls import RunningCalls
    from tamis.server.runtime.execution.approvals.questions import Approvals
    from tamis.server.runtime.execution.idempotency import IdempotencyKeys
    from tamis.server.runtime.execution.suspended import SuspendedRuns
    from tamis.server.runtime.execution.tasks.tasks import Tasks
    from tamis.server.runtime.handlers.mcp.servers import McpServers
    from tamis.server.runtime.handlers.service.state import States
    from tamis.server.runtime.handlers.workflow.streams import Workflows
    from tamis.server.runtime.observe.audit import AuditLog
    from tamis.server.runtime.observe.metrics import Metrics
    from tamis.server.runtime.observe.tracing import Telemetry
    from tamis.server.runtime.observe.trail import Log
    from tamis.server.runtime.observe.usage import UsageCounts
    from tamis.server.runtime.policy.secret_values import SecretValues
    from tamis.server.runtime.store.owners import Owner
    from tamis.server.runtime.store.store import Store
    from tamis.server.runtime.tools.host_services import HostServices


class Parts:
    """The parts of one runtime."""

    def __init__(self, root: Path = Path(), settings: Settings | None = None) -> None:
        self.root = root
        self.settings = settings or Settings()
        self.host: Host | None = None
        """None on the command line: there is no one to ask or tell."""
        self.audit: Callable[[], AuditLog | None] = lambda: None
        """Where what happens is written down, as the settings are now."""
        self._log: Log | None = None
        self._mcp: McpServers | None = None
        self._metrics: Metrics | None = None
        self._telemetry: Telemetry | None = None
        self._telemetry_tried = False
        self.stays = False
        """Whether this process stays when a call was answered: then asynchronous tools become tasks, else they are waited for."""
        self._store: Store | None = None
        self._approvals: Approvals | None = None
        self._owner: Owner | None = None
        self._idempotency: IdempotencyKeys | None = None
        self._tasks: Tasks | None = None
        self._usage: UsageCounts | None = None
        self._services: HostServices | None = None
        self._states: States | None = None
        self._running_calls: RunningCalls | None = None
        self._suspended: SuspendedRuns | None = None
        self._sessions: Sessions | None = None
        self._workflows: Workflows | None = None
        self._secrets: SecretValues | None = None

    def adopt(self, settings: Settings) -> None:
        """Other settings are in force."""
        self.settings = settings
        if self._secrets is not None:
            self._secrets.forget()
        if self._log is not None:
            self._log.form = settings.log_format

    @property
    def log(self) -> Log:
        """The daemon's own lines, which stand for no call: warnings and errors, whatever ``logLevel`` says of calls."""
        if self._log is None:
            from tamis.server.runtime.observe.trail import Log

            self._log = Log("warning", self.settings.log_format)
        return self._log

    @property
    def metrics(self) -> Metrics:
        """What is counted."""
        if self._metrics is None:
            from tamis.server.runtime.observe.metrics import Metrics

            self._metrics = Metrics()
        return self._metrics

    @property
    def secrets(self) -> SecretValues:
        """The values of the operator's secrets."""
        if self._secrets is None:
            from tamis.server.runtime.policy.secret_values import SecretValues

            self._secrets = SecretValues()
        return self._secrets

    @property
    def mcp(self) -> McpServers:
        """The MCP servers of the settings, those that run among them."""
        if self._mcp is None:
            from tamis.server.runtime.handlers.mcp.servers import McpServers

            self._mcp = McpServers(self.root, self.settings)
        return self._mcp

    @property
    def telemetry(self) -> Telemetry | None:
        """Where spans go; None unless the settings say so and it can be had."""
        if self.settings.telemetry.traces == "otlp" and not self._telemetry_tried:
            from tamis.server.runtime.observe.tracing import open_telemetry
            from tamis.server.runtime.settings.installed import url_fault

            self._telemetry_tried = True
            endpoint = self.settings.telemetry.endpoint
            say = self.log.warn
            fault = url_fault(endpoint, self.settings) if endpoint else ""
            if fault:
                say(f"telemetry.endpoint {fault}; nothing is sent")
            else:
                self._telemetry = open_telemetry(endpoint, say)
        return self._telemetry

    @property
    def store(self) -> Store:
        """What outlives the process; its file is opened with its first ``run``."""
        if self._store is None:
            from tamis.server.runtime.store.store import Store

            self._store = Store(say=self.log.warn)
        return self._store

    @property
    def store_problem(self) -> str:
        """Why what is stored is in memory only; does not open the store."""
        return "" if self._store is None else self._store.problem

    @property
    def owner(self) -> Owner:
        """This runtime, as what it works on is marked in the store."""
        if self._owner is None:
            from tamis.server.runtime.store.owners import Owner

            self._owner = Owner(self.store)
        return self._owner

    @property
    def idempotency(self) -> IdempotencyKeys:
        """Results by idempotency key."""
        if self._idempotency is None:
            from tamis.server.runtime.execution.idempotency import IdempotencyKeys
            from tamis.server.runtime.execution.idempotency_store import StoreShelf

            scope = str(self.root)
            self._idempotency = IdempotencyKeys(
                StoreShelf(self.store, self.owner, scope, lambda: self.settings.idempotency)
            )
        return self._idempotency

    @property
    def tasks(self) -> Tasks:
        """Calls that outlive their request."""
        if self._tasks is None:
            from tamis.server.runtime.execution.tasks.tasks import Tasks

            self._tasks = Tasks(self.root, self)
        return self._tasks

    @property
    def has_tasks(self) -> bool:
        """Whether tasks run here; makes none of the parts."""
        return self._tasks is not None and len(self._tasks) > 0

    @property
    def approvals(self) -> Approvals:
        """The questions that are open, and the answers that hold."""
        if self._approvals is None:
            from tamis.server.runtime.execution.approvals.questions import Approvals
            from tamis.server.runtime.execution.approvals.remembered import StandingAnswers

            standing = StandingAnswers(str(self.root), lambda: self.store, lambda text: self.log.write("warning", text))
            self._approvals = Approvals(standing)
        return self._approvals

    @property
    def usage(self) -> UsageCounts:
        """How often each tool was called, over all daemons of the root."""
        if self._usage is None:
            from tamis.server.runtime.observe.usage import UsageCounts

            self._usage = UsageCounts(self.store if self.stays else None, str(self.root), self._forget_old)
        return self._usage

    def _forget_old(self, db: sqlite3.Connection) -> None:
        from tamis.server.runtime.execution.idempotency_store import forget_old
        from tamis.server.runtime.execution.tasks import rows

        forget_old(db, self.settings.idempotency)
        rows.prune(db, self.settings.tasks.keep, self.settings.tasks.keep_seconds)

    @property
    def running_calls(self) -> RunningCalls:
        """The calls that run now, and how each is cancelled."""
        if self._running_calls is None:
            from tamis.server.runtime.calls.running_calls import RunningCalls

            self._running_calls = RunningCalls()
        return self._running_calls

    @property
    def suspended(self) -> SuspendedRuns:
        """The runs of workflows whose host polls."""
        if self._suspended is None:
            from tamis.server.runtime.execution.suspended import SuspendedRuns

            self._suspended = SuspendedRuns()
        return self._suspended

    @property
    def sessions(self) -> Sessions:
        """The agents' conversations."""
        if self._sessions is None:
            from tamis.server.runtime.agents.session import Sessions

            self._sessions = Sessions(self.running_calls)
        return self._sessions

    @property
    def has_host_services(self) -> bool:
        """Whether the host ever registered a service."""
        return self._services is not None

    @property
    def host_services(self) -> HostServices:
        """The services that the host has registered."""
        if self._services is None:
            from tamis.server.runtime.tools.host_services import HostServices

            self._services = HostServices()
        return self._services

    def call_services(self) -> CallServices:
        """What calls are given of this: views by what they are for, and no bounds."""
        from tamis.server.runtime.calls.model import CallServices

        return CallServices(
            connection=self, records=self, running_calls=self.running_calls, handlers=self, execution=self
        )

    def take_services(self, former: Parts) -> None:
        """Has the services that the host registered with another runtime: they are the host's, not the root's."""
        self._services = former._services

    @property
    def states(self) -> States:
        """The world's state, and each agent's private one."""
        if self._states is None:
            from tamis.server.runtime.handlers.service.state import States

            self._states = States(self.store, self.root)
        return self._states

    @property
    def workflows(self) -> Workflows:
        """Runs of workflows and their streams."""
        if self._workflows is None:
            from tamis.server.runtime.handlers.workflow.streams import Workflows

            self._workflows = Workflows()
        return self._workflows

    def tell(self, method: str, params: object) -> None:
        """Tells the host, if there is one."""
        if self.host is not None:
            self.host.tell(method, params)

    async def close(self) -> None:
        """Ends what the parts keep."""
        if self._suspended is not None:
            await self._suspended.close()
        if self._workflows is not None:
            await self._workflows.close()
        if self._approvals is not None:
            self._approvals.close()
        if self._tasks is not None:
            await self._tasks.close()
        if self._owner is not None:
            self._owner.close()
        if self._usage is not None:
            self._usage.write()
        if self._mcp is not None:
            await self._mcp.close()
        if self._telemetry is not None:
            # sends what is left; a collector that is gone must not hold the end of the daemon
            last = threading.Thread(target=self._telemetry.close, name="tamis-telemetry", daemon=True)
            last.start()
            last.join(0.2)
        # the store last: the others may still have something to write
        if self._store is not None:
            await self._store.close()
