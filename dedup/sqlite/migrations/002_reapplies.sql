-- Requests to apply events again that were taken before: see the package's comment.

-- AUTOINCREMENT: a number is never given out again, not even when its row is gone.
-- The clock has milliseconds, and markers have microseconds: asked_at is rounded up.
CREATE TABLE surehook_dedup_reapplies (
	number       INTEGER PRIMARY KEY AUTOINCREMENT,
	scope        TEXT NOT NULL,
	event_id     TEXT NOT NULL DEFAULT '', -- '': any event
	object_type  TEXT NOT NULL DEFAULT '', -- '', with object_id '': any object
	object_id    TEXT NOT NULL DEFAULT '',
	marked_from  INTEGER,                  -- events that were taken first at this time or later
	marked_until INTEGER,                  -- and before this one
	asked_at     INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + 1000),
	CONSTRAINT surehook_dedup_reapplies_whole_object CHECK ((object_type = '') = (object_id = '')),
	CONSTRAINT surehook_dedup_reapplies_names_something CHECK (event_id <> '' OR object_type <> '' OR marked_from IS NOT NULL),
	CONSTRAINT surehook_dedup_reapplies_span CHECK (marked_from < marked_until),
	-- Seconds or milliseconds would cover all or nothing. In microseconds this is 1973.
	CONSTRAINT surehook_dedup_reapplies_microseconds CHECK (
		(marked_from IS NULL OR typeof(marked_from) = 'integer' AND marked_from >= 100000000000000) AND
		(marked_until IS NULL OR typeof(marked_until) = 'integer' AND marked_until >= 100000000000000) AND
		typeof(asked_at) = 'integer' AND asked_at >= 100000000000000)
);

-- A duplicate looks up the requests for its event, for its object, and for any.
CREATE INDEX surehook_dedup_reapplies_by_event ON surehook_dedup_reapplies (scope, event_id, object_type, object_id);

-- The number of the last request under which the event was applied again.
ALTER TABLE surehook_dedup_markers ADD COLUMN reapplied INTEGER NOT NULL DEFAULT 0;

INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('dedup', 2, 1);
