-- Times are microseconds since 1970, UTC; 0 stands for no time where a column
-- cannot be NULL. What a BLOB holds is described in pack.go, attempts.go and
-- leases.go.

-- Who is told.

CREATE TABLE surehook_subscribers (
	no INTEGER PRIMARY KEY AUTOINCREMENT,
	id TEXT NOT NULL UNIQUE,
	created_at INTEGER NOT NULL,
	keyring_version INTEGER NOT NULL
);

CREATE TABLE surehook_secrets (
	subscriber INTEGER NOT NULL,
	position INTEGER NOT NULL,
	id TEXT NOT NULL,
	sealed BLOB NOT NULL,
	not_before INTEGER NOT NULL,
	not_after INTEGER NOT NULL,
	PRIMARY KEY (subscriber, position)
) WITHOUT ROWID;

CREATE TABLE surehook_subscriptions (
	no INTEGER PRIMARY KEY AUTOINCREMENT,
	id TEXT NOT NULL UNIQUE,
	subscriber INTEGER NOT NULL,
	url TEXT NOT NULL,
	event_types TEXT NOT NULL, -- JSON
	description TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	state INTEGER NOT NULL -- 0: active; 1: deleted; 2: deleted, and nothing of it is live
);
CREATE INDEX surehook_subscriptions_owner ON surehook_subscriptions (subscriber, no);
CREATE INDEX surehook_subscriptions_deleted ON surehook_subscriptions (no) WHERE state = 1;

-- What active subscriptions ask for.
CREATE TABLE surehook_patterns (
	pattern TEXT NOT NULL,
	subscriber INTEGER NOT NULL,
	subscription INTEGER NOT NULL,
	since INTEGER NOT NULL, -- the newest event when it was made: it gets those that follow
	PRIMARY KEY (pattern, subscriber, subscription)
) WITHOUT ROWID;
CREATE INDEX surehook_patterns_all ON surehook_patterns (pattern, subscription, since);

-- One row, changed with every change above, so that what was read of it can be
-- remembered.
CREATE TABLE surehook_registry (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	version INTEGER NOT NULL
);
INSERT INTO surehook_registry VALUES (1, 1);

-- What happened. There is one writer, so seq is the order of the commits.

CREATE TABLE surehook_events (
	seq INTEGER PRIMARY KEY AUTOINCREMENT,
	id TEXT NOT NULL,
	type TEXT NOT NULL,
	object_type TEXT NOT NULL,
	object_id TEXT NOT NULL,
	version INTEGER NOT NULL,
	subscriber INTEGER NOT NULL,   -- 0: for everyone
	subscription INTEGER NOT NULL, -- 0: for those who ask for the type
	created_at INTEGER NOT NULL,
	body BLOB NOT NULL
);
CREATE UNIQUE INDEX surehook_events_id ON surehook_events (id);

CREATE TABLE surehook_objects (
	type TEXT NOT NULL,
	id TEXT NOT NULL,
	version INTEGER NOT NULL,
	PRIMARY KEY (type, id)
) WITHOUT ROWID;

CREATE TABLE surehook_keys (
	scope TEXT NOT NULL,
	key TEXT NOT NULL,
	hash BLOB NOT NULL,
	event INTEGER NOT NULL,
	PRIMARY KEY (scope, key)
) WITHOUT ROWID;

-- Which deliveries there are, written once by Expand: by event in deliveries, by
-- subscription in queues. A row is keyed by the last delivery in it.

CREATE TABLE surehook_deliveries (
	event INTEGER NOT NULL,
	subscription INTEGER NOT NULL,
	made_at INTEGER NOT NULL,
	deliveries BLOB NOT NULL,
	PRIMARY KEY (event, subscription)
) WITHOUT ROWID;

CREATE TABLE surehook_queues (
	subscription INTEGER NOT NULL,
	event INTEGER NOT NULL,
	made_at INTEGER NOT NULL,
	events BLOB NOT NULL,
	PRIMARY KEY (subscription, event)
) WITHOUT ROWID;

-- One row: the last event that is expanded, and how far the next one is.
CREATE TABLE surehook_expanded (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	event INTEGER NOT NULL,
	subscription INTEGER NOT NULL
);
INSERT INTO surehook_expanded VALUES (1, 0, 0);

-- How far the work is. A delivery whose event is after its head's claimed was
-- never claimed. Another one is in leases, in waiting or in ended; or in none of
-- them, and then it is delivered.

CREATE TABLE surehook_heads (
	subscription INTEGER PRIMARY KEY,
	subscriber INTEGER NOT NULL,
	lane INTEGER NOT NULL,
	next_due INTEGER,    -- when to look at it, never late; NULL: nothing is to be done
	turn INTEGER NOT NULL, -- when it was served last, in turns of all
	claimed INTEGER NOT NULL,
	waiting_due INTEGER, -- the least due in waiting, or less; NULL: none
	streak INTEGER NOT NULL,
	failing_since INTEGER NOT NULL,
	last_success INTEGER NOT NULL,
	last_failure INTEGER NOT NULL
);
CREATE INDEX surehook_heads_due ON surehook_heads (lane, subscriber, next_due, turn) WHERE next_due IS NOT NULL;

-- The same for the subscribers, in each lane.
CREATE TABLE surehook_turns (
	lane INTEGER NOT NULL,
	subscriber INTEGER NOT NULL,
	next_due INTEGER,
	turn INTEGER NOT NULL,
	PRIMARY KEY (lane, subscriber)
) WITHOUT ROWID;
CREATE INDEX surehook_turns_due ON surehook_turns (lane, next_due, turn) WHERE next_due IS NOT NULL;

-- One row: the attempts in flight.
CREATE TABLE surehook_leases (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	next_end INTEGER NOT NULL, -- of those that no head knows of; 0: none
	turn INTEGER NOT NULL,     -- turns so far
	leases BLOB NOT NULL
);
INSERT INTO surehook_leases VALUES (1, 0, 0, x'');

-- Live deliveries that were claimed or sent again before, and are not in flight.
CREATE TABLE surehook_waiting (
	subscription INTEGER NOT NULL,
	event INTEGER NOT NULL,
	due INTEGER NOT NULL,
	number INTEGER NOT NULL,
	tries INTEGER NOT NULL,
	first INTEGER NOT NULL,
	single INTEGER NOT NULL,
	PRIMARY KEY (subscription, event)
) WITHOUT ROWID;
CREATE INDEX surehook_waiting_due ON surehook_waiting (subscription, due, event);
CREATE INDEX surehook_waiting_newest ON surehook_waiting (event DESC, subscription);

-- Deliveries that ended otherwise than delivered.
CREATE TABLE surehook_ended (
	subscription INTEGER NOT NULL,
	event INTEGER NOT NULL,
	status TEXT NOT NULL,
	PRIMARY KEY (subscription, event)
) WITHOUT ROWID;
CREATE INDEX surehook_ended_newest ON surehook_ended (status, event DESC, subscription);

-- All attempts. A row is keyed by the first attempt in it, and holds those of
-- events of the same 256.
CREATE TABLE surehook_attempts (
	subscription INTEGER NOT NULL,
	event INTEGER NOT NULL,
	number INTEGER NOT NULL,
	attempts BLOB NOT NULL,
	PRIMARY KEY (subscription, event, number)
) WITHOUT ROWID;
