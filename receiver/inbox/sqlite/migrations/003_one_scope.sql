-- The lines of inboxes with one scope, which those with several leave alone. Lines of before
-- are of both.
ALTER TABLE surehook_inbox_lines ADD COLUMN one_scope INTEGER NOT NULL DEFAULT 0;

CREATE INDEX surehook_inbox_lines_several_due ON surehook_inbox_lines (due_at) WHERE one_scope = 0;

INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('inbox', 3, 1);
