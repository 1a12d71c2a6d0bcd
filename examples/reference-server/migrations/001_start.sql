-- The tables of this program, beside those of the library. They are in words that
-- SQLite and PostgreSQL both understand. Times are microseconds since 1970, UTC.

-- The objects of the example's events. A deleted one keeps its row, so that its id is
-- never given to another.
CREATE TABLE server_subscribers (
	id TEXT PRIMARY KEY,
	name TEXT NOT NULL,
	attributes TEXT NOT NULL, -- a JSON object
	version BIGINT NOT NULL,  -- that of its last event
	token_hash TEXT UNIQUE,   -- SHA-256, hex; NULL: it has no token
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	deleted_at BIGINT         -- NULL: it is not deleted
);

-- The answers to requests that carried an Idempotency-Key.
CREATE TABLE server_answers (
	caller TEXT NOT NULL,
	path TEXT NOT NULL,
	key TEXT NOT NULL,
	request_hash TEXT NOT NULL, -- SHA-256 of what was asked for, hex
	answer TEXT NOT NULL,       -- sealed, base64: it can hold a new secret
	created_at BIGINT NOT NULL,
	PRIMARY KEY (caller, path, key)
);
CREATE INDEX server_answers_age ON server_answers (created_at);
