-- Times are microseconds since 1970, UTC; 0 stands for no time.

CREATE TABLE surehook_jobs (
	no INTEGER PRIMARY KEY AUTOINCREMENT,
	id TEXT NOT NULL UNIQUE,
	kind TEXT NOT NULL,
	owner TEXT NOT NULL,        -- a subscriber's id; '': nobody
	callback_url TEXT NOT NULL, -- '': none
	status TEXT NOT NULL,       -- queued, running; succeeded, failed, cancelled
	due INTEGER NOT NULL,       -- queued: when it may be claimed; running: when its lease ends
	token INTEGER NOT NULL,     -- the last claim's: random
	tries INTEGER NOT NULL,     -- since state changed last
	cancel_requested INTEGER NOT NULL,
	done INTEGER,               -- NULL: no progress was told
	total INTEGER,
	state BLOB,                 -- what the function goes on from
	result BLOB,                -- JSON
	error TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	started_at INTEGER NOT NULL,
	finished_at INTEGER NOT NULL,
	key_scope TEXT NOT NULL,
	idempotency_key TEXT NOT NULL, -- '': none
	hash BLOB NOT NULL
);
CREATE INDEX surehook_jobs_due ON surehook_jobs (kind, due, no) WHERE finished_at = 0;
CREATE INDEX surehook_jobs_owner ON surehook_jobs (owner, no);
CREATE INDEX surehook_jobs_finished ON surehook_jobs (finished_at, no) WHERE finished_at > 0;
CREATE UNIQUE INDEX surehook_jobs_key ON surehook_jobs (key_scope, idempotency_key) WHERE idempotency_key <> '';

-- Apart, because a job is written often and its input once.
CREATE TABLE surehook_job_inputs (
	no INTEGER PRIMARY KEY,
	input BLOB NOT NULL
);

-- The migrations that are applied, by sets, and which of its set a release must know at
-- least to work with it: needs rises with a migration that older releases cannot work
-- beside, and otherwise stays. Each migration records itself here.
CREATE TABLE IF NOT EXISTS surehook_migrations (
	set_name TEXT NOT NULL,
	version INTEGER NOT NULL,
	needs INTEGER NOT NULL,
	applied_at INTEGER NOT NULL DEFAULT (strftime('%s', 'now') * 1000000), -- microseconds since 1970, UTC
	PRIMARY KEY (set_name, version)
) WITHOUT ROWID;
INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('jobs', 1, 1);
