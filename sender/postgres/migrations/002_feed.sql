-- One row: the last position whose event was pruned. Whoever has read the feed only up
-- to an earlier one may have missed some.
CREATE TABLE surehook_feed_pruned (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	position bigint NOT NULL
);
INSERT INTO surehook_feed_pruned (position) VALUES (0);
