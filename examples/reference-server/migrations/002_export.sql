-- The events that export_events has found, in the order of the feed, until they are too
-- old.
CREATE TABLE server_exports (
	job TEXT NOT NULL,
	part BIGINT NOT NULL,
	events TEXT NOT NULL, -- JSON objects, joined by commas
	created_at BIGINT NOT NULL,
	PRIMARY KEY (job, part)
);
CREATE INDEX server_exports_age ON server_exports (created_at);
