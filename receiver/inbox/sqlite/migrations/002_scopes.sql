-- The lines of one scope by the time at which they are due: each inbox claims its own.
CREATE INDEX surehook_inbox_lines_scope_due ON surehook_inbox_lines (scope, due_at);

INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('inbox', 2, 1);
