-- The trace context of an event's publisher, as the header traceparent has it; NULL: there
-- was none. Older releases can ignore it.
ALTER TABLE surehook_events ADD COLUMN traceparent text;

INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('sender', 5, 4);
