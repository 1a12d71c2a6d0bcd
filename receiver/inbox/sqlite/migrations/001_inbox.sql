CREATE TABLE surehook_inbox_lines (
	scope  TEXT NOT NULL,
	line   TEXT NOT NULL,
	due_at INTEGER NOT NULL,           -- microseconds since 1970, UTC; of a claimed one, the end of its lease
	token  INTEGER NOT NULL DEFAULT 0, -- of the claim, drawn at random; 0: none
	PRIMARY KEY (scope, line)
) WITHOUT ROWID;

CREATE INDEX surehook_inbox_lines_due ON surehook_inbox_lines (due_at);

CREATE TABLE surehook_inbox_events (
	no          INTEGER PRIMARY KEY,
	scope       TEXT NOT NULL,
	id          TEXT NOT NULL,
	line        TEXT NOT NULL,
	type        TEXT NOT NULL,
	version     INTEGER NOT NULL,
	body        BLOB NOT NULL,
	recorded_at INTEGER NOT NULL,
	attempt     INTEGER NOT NULL DEFAULT 0,
	first_at    INTEGER,                 -- when the first attempt was claimed
	reason      TEXT NOT NULL DEFAULT '', -- why the last one failed
	UNIQUE (scope, id)
);

CREATE INDEX surehook_inbox_events_line ON surehook_inbox_events (scope, line, version, no);

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
INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('inbox', 1, 1);
