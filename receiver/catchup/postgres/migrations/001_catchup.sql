CREATE TABLE surehook_catchup_cursors (
	name     text PRIMARY KEY,
	cursor   text NOT NULL,
	moved_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);
