-- Times are microseconds since 1970, UTC. Text is compared byte by byte.

CREATE TABLE surehook_dedup_markers (
	scope     TEXT NOT NULL,
	id        TEXT NOT NULL,
	marked_at INTEGER NOT NULL,
	PRIMARY KEY (scope, id)
) WITHOUT ROWID;

-- For pruning. New entries go to its end, so it adds one write to a page that
-- is in memory already.
CREATE INDEX surehook_dedup_markers_by_time ON surehook_dedup_markers (marked_at);

CREATE TABLE surehook_dedup_versions (
	scope       TEXT NOT NULL,
	object_type TEXT NOT NULL,
	object_id   TEXT NOT NULL,
	version     INTEGER NOT NULL,
	PRIMARY KEY (scope, object_type, object_id)
) WITHOUT ROWID;

-- With a rowid: bodies are large, and few rows are looked up.
CREATE TABLE surehook_dedup_dead_letters (
	scope       TEXT NOT NULL,
	id          TEXT NOT NULL,
	type        TEXT NOT NULL,
	object_type TEXT NOT NULL, -- '', with object_id '' and version 0, if there is no object
	object_id   TEXT NOT NULL,
	version     INTEGER NOT NULL,
	body        BLOB NOT NULL,
	reason      TEXT NOT NULL,
	at          INTEGER NOT NULL,
	PRIMARY KEY (scope, id)
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
INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('dedup', 1, 1);
