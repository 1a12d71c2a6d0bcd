-- The events that are not as most are: those that tell of a notice, and redacted ones.
-- A recording need not read the others.
CREATE INDEX surehook_events_apart ON surehook_events (seq) WHERE notice = 1 OR length(body) = 0;
