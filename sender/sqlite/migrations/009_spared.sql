-- 1: the last attempt was forgiven, because its server closed an idle connection, and so
-- the next one is not. What was never claimed has none.
ALTER TABLE surehook_leases ADD COLUMN spared INTEGER NOT NULL DEFAULT 0;
ALTER TABLE surehook_waiting ADD COLUMN spared INTEGER NOT NULL DEFAULT 0;
