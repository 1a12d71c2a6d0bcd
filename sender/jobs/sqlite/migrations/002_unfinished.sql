-- An owner's jobs that have not ended, beside however many that have.
CREATE INDEX surehook_jobs_unfinished ON surehook_jobs (owner, no) WHERE finished_at = 0;

INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('jobs', 2, 1);
