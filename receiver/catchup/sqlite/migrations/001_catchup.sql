CREATE TABLE surehook_catchup_cursors (
	name     TEXT NOT NULL PRIMARY KEY,
	cursor   TEXT NOT NULL,
	moved_at INTEGER NOT NULL -- microseconds since 1970, UTC
) WITHOUT ROWID;
