-- Requests to apply events again that were taken before: see the package's comment.

CREATE TABLE surehook_dedup_reapplies (
	number       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	scope        text COLLATE "C" NOT NULL,
	event_id     text COLLATE "C" NOT NULL DEFAULT '', -- '': any event
	object_type  text COLLATE "C" NOT NULL DEFAULT '', -- '', with object_id '': any object
	object_id    text COLLATE "C" NOT NULL DEFAULT '',
	marked_from  timestamptz,                          -- events that were taken first at this time or later
	marked_until timestamptz,                          -- and before this one
	asked_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
	CONSTRAINT surehook_dedup_reapplies_whole_object CHECK ((object_type = '') = (object_id = '')),
	CONSTRAINT surehook_dedup_reapplies_names_something CHECK (event_id <> '' OR object_type <> '' OR marked_from IS NOT NULL),
	CONSTRAINT surehook_dedup_reapplies_span CHECK (marked_from < marked_until)
);

-- A duplicate looks up the requests for its event, for its object, and for any.
CREATE INDEX surehook_dedup_reapplies_by_event ON surehook_dedup_reapplies (scope, event_id, object_type, object_id);

-- The number of the last request under which the event was applied again.
ALTER TABLE surehook_dedup_markers ADD COLUMN reapplied bigint NOT NULL DEFAULT 0;

INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('dedup', 2, 1);
