-- The filter of a subscription on the content of events, as JSON; '': there is none. A
-- release that does not know it would deliver what must not be, so none may work beside.
ALTER TABLE surehook_subscriptions ADD COLUMN filter text NOT NULL DEFAULT '';

INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('sender', 6, 6);
