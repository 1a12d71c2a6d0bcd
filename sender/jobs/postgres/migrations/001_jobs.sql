-- Names are unqualified: the search_path says in which schema they are made. Indexed
-- text is ordered by its bytes (COLLATE "C"): an index by a language's rules is wrong once
-- these have changed with the operating system's libraries, and slower.

CREATE TABLE surehook_jobs (
	no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id text COLLATE "C" NOT NULL UNIQUE,
	kind text COLLATE "C" NOT NULL,
	owner text COLLATE "C" NOT NULL, -- a subscriber's id; '': nobody
	callback_url text NOT NULL, -- '': none
	status text NOT NULL,       -- queued, running; succeeded, failed, cancelled
	due timestamptz,            -- queued: when it may be claimed; running: when its lease ends
	token bigint NOT NULL,      -- the last claim's: random
	tries int NOT NULL,         -- since state changed last
	cancel_requested boolean NOT NULL,
	done bigint,                -- NULL: no progress was told
	total bigint,
	state bytea,                -- what the function goes on from
	result bytea,               -- JSON, as it was returned
	error text NOT NULL,
	created_at timestamptz NOT NULL,
	started_at timestamptz,
	finished_at timestamptz,
	key_scope text COLLATE "C" NOT NULL,
	idempotency_key text COLLATE "C" NOT NULL, -- '': none
	hash bytea NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX surehook_jobs_due ON surehook_jobs (kind, due, no) WHERE finished_at IS NULL;
CREATE INDEX surehook_jobs_owner ON surehook_jobs (owner, no);
CREATE INDEX surehook_jobs_finished ON surehook_jobs (finished_at, no) WHERE finished_at IS NOT NULL;
CREATE UNIQUE INDEX surehook_jobs_key ON surehook_jobs (key_scope, idempotency_key) WHERE idempotency_key <> '';

-- Apart, because a job is written often and its input once.
CREATE TABLE surehook_job_inputs (
	no bigint PRIMARY KEY,
	input bytea NOT NULL
);

-- The migrations that are applied, by sets, and which of its set a release must know at
-- least to work with it: needs rises with a migration that older releases cannot work
-- beside, and otherwise stays. Each migration records itself here.
CREATE TABLE IF NOT EXISTS surehook_migrations (
	set_name text NOT NULL,
	version integer NOT NULL,
	needs integer NOT NULL,
	applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (set_name, version)
);
INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('jobs', 1, 1);
