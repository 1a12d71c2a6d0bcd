-- Indexed text is ordered by its bytes: an index by a language's rules is wrong once these
-- have changed with the operating system's libraries, and slower.
ALTER TABLE surehook_jobs
	ALTER COLUMN id TYPE text COLLATE "C",
	ALTER COLUMN kind TYPE text COLLATE "C",
	ALTER COLUMN owner TYPE text COLLATE "C",
	ALTER COLUMN key_scope TYPE text COLLATE "C",
	ALTER COLUMN idempotency_key TYPE text COLLATE "C";
