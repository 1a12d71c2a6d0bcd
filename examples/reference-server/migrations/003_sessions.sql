-- Operators who have signed in to the console. A row is removed when its owner signs out,
-- or when it has ended.
CREATE TABLE server_sessions (
	id TEXT PRIMARY KEY, -- a keyed hash of the cookie, hex
	expires_at BIGINT NOT NULL
);
CREATE INDEX server_sessions_end ON server_sessions (expires_at);

-- The one row that /readyz writes, to see that the database takes writes.
CREATE TABLE server_readiness (
	one BIGINT PRIMARY KEY,
	at BIGINT NOT NULL
);

-- The list of subscribers, newest first.
CREATE INDEX server_subscribers_age ON server_subscribers (created_at, id);
