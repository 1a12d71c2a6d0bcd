-- What happened to each subscription in each hour, by each process that did something.
CREATE TABLE surehook_subscription_rollups (
	subscription bigint NOT NULL,
	hour timestamptz NOT NULL, -- at which it began
	shard bigint NOT NULL,     -- random
	rollup text NOT NULL,      -- JSON
	PRIMARY KEY (subscription, hour, shard)
) WITH (fillfactor = 70, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX surehook_subscription_rollups_hour ON surehook_subscription_rollups (hour); -- for who forgets

INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('sender', 2, 1);
