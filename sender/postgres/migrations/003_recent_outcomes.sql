ALTER TABLE surehook_heads ADD COLUMN recent bigint NOT NULL DEFAULT 0; -- the last 32 outcomes: sender.Recent
-- The subscriptions that fail, those that have failed for longest first. It changes when
-- one begins or ends to fail.
CREATE INDEX surehook_heads_failing ON surehook_heads (failing_since) WHERE failing_since IS NOT NULL;

INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('sender', 3, 1);
