-- Times are microseconds since 1970, UTC; 0 stands for no time where a column
-- cannot be NULL.

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

-- The last version of each object; kept when the object is gone.
CREATE TABLE surehook_objects (
	type TEXT NOT NULL,
	id TEXT NOT NULL,
	version INTEGER NOT NULL,
	PRIMARY KEY (type, id)
) WITHOUT ROWID;

-- Idempotency keys of publishes.
CREATE TABLE surehook_keys (
	scope TEXT NOT NULL,
	key TEXT NOT NULL,
	hash BLOB NOT NULL,
	event INTEGER NOT NULL,
	PRIMARY KEY (scope, key)
) WITHOUT ROWID;

-- One row: the last event that is expanded whole, and the last subscription of
-- the next one that has its delivery.
CREATE TABLE surehook_expanded (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	event INTEGER NOT NULL,
	subscription INTEGER NOT NULL
);
INSERT INTO surehook_expanded VALUES (1, 0, 0);

-- A delivery is in one of these four, or delivered: then it is in none of them, and
-- has an attempt of class ''. It moves from one to the next, so that each is as
-- small as what is in that state, and one that succeeds at once touches few rows.

-- Never claimed, and due since it was made.
CREATE TABLE surehook_pending (
	subscription INTEGER NOT NULL,
	event INTEGER NOT NULL,
	due INTEGER NOT NULL,
	PRIMARY KEY (subscription, event)
) WITHOUT ROWID;

-- Claimed: an attempt is in flight until its result is recorded.
CREATE TABLE surehook_leases (
	subscription INTEGER NOT NULL,
	event INTEGER NOT NULL,
	until INTEGER NOT NULL,      -- then it is due again
	number INTEGER NOT NULL,     -- of the attempt; also the lease's token
	tries INTEGER NOT NULL,      -- attempts of the present schedule, this one included
	first_at INTEGER NOT NULL,   -- when the first of them was claimed
	claimed_at INTEGER NOT NULL,
	single INTEGER NOT NULL,     -- 1: a delivered one that is sent once more
	PRIMARY KEY (subscription, event)
) WITHOUT ROWID;

-- Claimed before, or to be sent again, and not in flight.
CREATE TABLE surehook_waiting (
	subscription INTEGER NOT NULL,
	event INTEGER NOT NULL,
	due INTEGER NOT NULL,
	number INTEGER NOT NULL,     -- of the last attempt
	tries INTEGER NOT NULL,
	first_at INTEGER NOT NULL,
	single INTEGER NOT NULL,
	PRIMARY KEY (subscription, event)
) WITHOUT ROWID;
CREATE INDEX surehook_waiting_due ON surehook_waiting (subscription, due);

-- Ended otherwise than delivered.
CREATE TABLE surehook_ended (
	subscription INTEGER NOT NULL,
	event INTEGER NOT NULL,
	status TEXT NOT NULL, -- dead_lettered, cancelled
	ended_at INTEGER NOT NULL,
	PRIMARY KEY (subscription, event)
) WITHOUT ROWID;
CREATE INDEX surehook_ended_status ON surehook_ended (status, event, subscription);

-- Every attempt that has ended.
CREATE TABLE surehook_attempts (
	event INTEGER NOT NULL,
	subscription INTEGER NOT NULL,
	number INTEGER NOT NULL,
	started_at INTEGER NOT NULL,
	duration INTEGER NOT NULL, -- microseconds
	status_code INTEGER NOT NULL, -- 0: no answer
	class TEXT NOT NULL,       -- '': success
	error TEXT NOT NULL,
	snippet BLOB,              -- the beginning of the answer
	next_at INTEGER NOT NULL,  -- when another was to follow; 0: none
	PRIMARY KEY (event, subscription, number)
) WITHOUT ROWID;

-- When to look at a subscription's deliveries, and how its endpoint does.
CREATE TABLE surehook_heads (
	subscription INTEGER PRIMARY KEY,
	subscriber INTEGER NOT NULL,
	lane INTEGER NOT NULL,
	next_due INTEGER,      -- never later than the least due of its deliveries; NULL: there are none
	turn INTEGER NOT NULL, -- when it was served last: its place among those due at one time
	streak INTEGER NOT NULL,
	failing_since INTEGER NOT NULL,
	last_success INTEGER NOT NULL,
	last_failure INTEGER NOT NULL
);
CREATE INDEX surehook_heads_due ON surehook_heads (lane, subscriber, next_due, turn) WHERE next_due IS NOT NULL;

-- The same for subscribers, who take turns in each lane.
CREATE TABLE surehook_turns (
	lane INTEGER NOT NULL,
	subscriber INTEGER NOT NULL,
	next_due INTEGER, -- never later than the least of its heads in the lane
	turn INTEGER NOT NULL,
	PRIMARY KEY (lane, subscriber)
) WITHOUT ROWID;
CREATE INDEX surehook_turns_due ON surehook_turns (lane, next_due, turn) WHERE next_due IS NOT NULL;
