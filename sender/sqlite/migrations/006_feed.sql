-- One row: the last event, in seq, that was pruned. Whoever has read the feed only up
-- to an earlier one may have missed some.
CREATE TABLE surehook_feed_pruned (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	event INTEGER NOT NULL
);
INSERT INTO surehook_feed_pruned VALUES (1, 0);
