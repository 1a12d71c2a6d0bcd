-- What happened to each subscription in each hour, by each process that did something.
CREATE TABLE surehook_subscription_rollups (
	subscription INTEGER NOT NULL,
	hour INTEGER NOT NULL,  -- microseconds since 1970 at which it began
	shard INTEGER NOT NULL, -- random
	rollup TEXT NOT NULL,   -- JSON
	PRIMARY KEY (subscription, hour, shard)
) WITHOUT ROWID;
CREATE INDEX surehook_subscription_rollups_hour ON surehook_subscription_rollups (hour); -- for who forgets

INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('sender', 2, 1);
