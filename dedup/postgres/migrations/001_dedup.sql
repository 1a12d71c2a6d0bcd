-- Text is compared byte by byte, whatever the database's collation.

CREATE TABLE surehook_dedup_markers (
	scope     text COLLATE "C" NOT NULL,
	id        text COLLATE "C" NOT NULL,
	marked_at timestamptz NOT NULL,
	PRIMARY KEY (scope, id)
);

-- For pruning. New entries go to its end, so it adds one write to a page that
-- is in memory already.
CREATE INDEX surehook_dedup_markers_by_time ON surehook_dedup_markers (marked_at);

-- The room that is left in each page lets a new version stay in it (a HOT update),
-- without an entry in the index.
CREATE TABLE surehook_dedup_versions (
	scope       text COLLATE "C" NOT NULL,
	object_type text COLLATE "C" NOT NULL,
	object_id   text COLLATE "C" NOT NULL,
	version     bigint NOT NULL,
	PRIMARY KEY (scope, object_type, object_id)
) WITH (fillfactor = 80);

CREATE TABLE surehook_dedup_dead_letters (
	scope       text COLLATE "C" NOT NULL,
	id          text COLLATE "C" NOT NULL,
	type        text COLLATE "C" NOT NULL,
	object_type text COLLATE "C" NOT NULL, -- '', with object_id '' and version 0, if there is no object
	object_id   text COLLATE "C" NOT NULL,
	version     bigint NOT NULL,
	body        bytea NOT NULL,
	reason      text NOT NULL,
	at          timestamptz NOT NULL,
	PRIMARY KEY (scope, id)
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
INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('dedup', 1, 1);
