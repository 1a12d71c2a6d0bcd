CREATE TABLE surehook_inbox_lines (
	scope  text COLLATE "C" NOT NULL,
	line   text COLLATE "C" NOT NULL,
	due_at timestamptz NOT NULL,      -- of a claimed one, the end of its lease
	token  bigint NOT NULL DEFAULT 0, -- of the claim, drawn at random; 0: none
	PRIMARY KEY (scope, line)
);

CREATE INDEX surehook_inbox_lines_due ON surehook_inbox_lines (due_at);

CREATE TABLE surehook_inbox_events (
	scope       text COLLATE "C" NOT NULL,
	id          text COLLATE "C" NOT NULL,
	no          bigint GENERATED ALWAYS AS IDENTITY,
	line        text COLLATE "C" NOT NULL,
	type        text NOT NULL,
	version     bigint NOT NULL,
	body        bytea NOT NULL,
	recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	attempt     integer NOT NULL DEFAULT 0,
	first_at    timestamptz,              -- when the first attempt was claimed
	reason      text NOT NULL DEFAULT '', -- why the last one failed
	PRIMARY KEY (scope, id)
);

CREATE INDEX surehook_inbox_events_line ON surehook_inbox_events (scope, line, version, no);

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
INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('inbox', 1, 1);
