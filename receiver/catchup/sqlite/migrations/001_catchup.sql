CREATE TABLE surehook_catchup_cursors (
	name     TEXT NOT NULL PRIMARY KEY,
	cursor   TEXT NOT NULL,
	moved_at INTEGER NOT NULL -- microseconds since 1970, UTC
) WITHOUT ROWID;

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
INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('catchup', 1, 1);
