-- The lines of inboxes with one scope, which those with several leave alone. Lines of before
-- are of both.
ALTER TABLE surehook_inbox_lines ADD COLUMN one_scope boolean NOT NULL DEFAULT false;

CREATE INDEX surehook_inbox_lines_several_due ON surehook_inbox_lines (due_at) WHERE NOT one_scope;

INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('inbox', 3, 1);
