-- Beside an index that begins with the pattern too, a planner without statistics took the
-- other one for a subscriber's subscriptions, and read everyone's.
ALTER TABLE surehook_patterns DROP CONSTRAINT surehook_patterns_pkey,
	ADD CONSTRAINT surehook_patterns_asked PRIMARY KEY (subscriber, pattern, subscription);
