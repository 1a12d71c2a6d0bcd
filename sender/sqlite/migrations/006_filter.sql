-- The filter of a subscription on the content of events, as JSON; '': there is none. A
-- release that does not know it would deliver what must not be, so none may work beside.
ALTER TABLE surehook_subscriptions ADD COLUMN filter TEXT NOT NULL DEFAULT '';

-- Whether the subscription has one, so that the others need not be looked at.
ALTER TABLE surehook_patterns ADD COLUMN filtered INTEGER NOT NULL DEFAULT 0;
DROP INDEX surehook_patterns_all;
CREATE INDEX surehook_patterns_all ON surehook_patterns (pattern, subscription, since, until, filtered);

INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('sender', 6, 6);
