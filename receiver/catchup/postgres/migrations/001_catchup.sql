CREATE TABLE surehook_catchup_cursors (
	name     text PRIMARY KEY,
	cursor   text NOT NULL,
	moved_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);

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
INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('catchup', 1, 1);
