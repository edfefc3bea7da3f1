"""The tables of the store, one entry for each part that keeps something, in the order in which they came.

An entry that a release has had never changes and never moves: a file says only how many of them it has (``user_version``). A
change of a table is a further entry. Statements may meet what is there already. Must not know what the rows mean.
"""

from __future__ import annotations

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    # who works on what: a row that names an owner who is gone is nobody's
    ("CREATE TABLE IF NOT EXISTS owners (owner TEXT PRIMARY KEY, beat REAL NOT NULL) WITHOUT ROWID",),
    # results by idempotency key (ruling 26): a row without a result is a run that its owner has not ended yet
    (
        """CREATE TABLE IF NOT EXISTS replays (
            key BLOB PRIMARY KEY, content BLOB NOT NULL, owner TEXT NOT NULL,
            created REAL NOT NULL, size INTEGER NOT NULL DEFAULT 0, result BLOB
        ) WITHOUT ROWID""",
        "CREATE INDEX IF NOT EXISTS replays_kept ON replays (created, size) WHERE result IS NOT NULL",
        # random numbers of this store: what is hashed with them cannot be guessed from the hash
        "CREATE TABLE IF NOT EXISTS secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    ),
    # calls that outlive their request (D92)
    (
        """CREATE TABLE IF NOT EXISTS tasks (
            number INTEGER PRIMARY KEY, task_id TEXT NOT NULL UNIQUE, root TEXT NOT NULL, owner TEXT NOT NULL,
            status TEXT NOT NULL, call_id TEXT NOT NULL, tool_id TEXT NOT NULL, version TEXT NOT NULL, session_id TEXT NOT NULL,
            created REAL NOT NULL, ended REAL, progress BLOB, result BLOB, cancel INTEGER NOT NULL DEFAULT 0
        )""",
        "CREATE INDEX IF NOT EXISTS tasks_root ON tasks (root, number)",
        "CREATE INDEX IF NOT EXISTS tasks_owner ON tasks (status, owner)",
    ),
    # how often each tool was called (D87)
    (
        """CREATE TABLE IF NOT EXISTS usage (
            root TEXT NOT NULL, tool_id TEXT NOT NULL, calls INTEGER NOT NULL, failures INTEGER NOT NULL, last_used REAL NOT NULL,
            PRIMARY KEY (root, tool_id)
        ) WITHOUT ROWID""",
    ),
    # answers that hold for later calls (ruling 40): what a digest binds, never arguments
    (
        """CREATE TABLE IF NOT EXISTS approvals (
            approval_id TEXT PRIMARY KEY, root TEXT NOT NULL, binding TEXT NOT NULL, kind TEXT NOT NULL, tool_id TEXT NOT NULL,
            version TEXT NOT NULL, agent_id TEXT NOT NULL, permissions BLOB NOT NULL, created REAL NOT NULL, UNIQUE (root, binding)
        ) WITHOUT ROWID""",
    ),
    # the world's state and each agent's private one, as JSON (seed 000 §4.2)
    (
        """CREATE TABLE IF NOT EXISTS states (
            root TEXT NOT NULL, holder TEXT NOT NULL, value BLOB NOT NULL, changed REAL NOT NULL, PRIMARY KEY (root, holder)
        ) WITHOUT ROWID""",
    ),
    # results are counted without being read: an index that names the result reads each one
    (
        "DROP INDEX IF EXISTS replays_kept",
        "CREATE INDEX IF NOT EXISTS replays_sizes ON replays (created, size)",
    ),
)
