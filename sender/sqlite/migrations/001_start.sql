-- Times are microseconds since 1970, UTC; 0 stands for no time where a column
-- cannot be NULL.

-- Who is told.

CREATE TABLE surehook_subscribers (
	no INTEGER PRIMARY KEY AUTOINCREMENT,
	id TEXT NOT NULL UNIQUE,
	created_at INTEGER NOT NULL,
	keyring_version INTEGER NOT NULL,
	deleted INTEGER NOT NULL -- 0; 1: some of its subscriptions are closing; 2: its secrets are gone
);
CREATE INDEX surehook_subscribers_deleted ON surehook_subscribers (no) WHERE deleted = 1;

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
	settings TEXT NOT NULL, -- JSON
	created_at INTEGER NOT NULL,
	status TEXT NOT NULL, -- active, paused, disabled, closing; deleted; swept: deleted, and nothing of it is live
	until INTEGER NOT NULL, -- the last event that it gets: of one that is closing; otherwise beyond all
	disabled_at INTEGER NOT NULL,
	disabled_reason TEXT NOT NULL
);
CREATE INDEX surehook_subscriptions_owner ON surehook_subscriptions (subscriber, no);
CREATE INDEX surehook_subscriptions_ending ON surehook_subscriptions (no) WHERE status IN ('closing', 'deleted');

-- What subscriptions ask for that are not deleted.
CREATE TABLE surehook_patterns (
	pattern TEXT NOT NULL,
	subscriber INTEGER NOT NULL,
	subscription INTEGER NOT NULL,
	since INTEGER NOT NULL, -- the newest event when it was made: it gets those that follow,
	until INTEGER NOT NULL, -- up to this one: see surehook_subscriptions
	PRIMARY KEY (pattern, subscriber, subscription)
) WITHOUT ROWID;
CREATE INDEX surehook_patterns_all ON surehook_patterns (pattern, subscription, since, until);
CREATE INDEX surehook_patterns_of ON surehook_patterns (subscription);

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
	notice INTEGER NOT NULL,       -- 1: it tells of a notice
	body BLOB NOT NULL             -- empty: it was redacted
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
	stood INTEGER NOT NULL,      -- microseconds that the schedule has stood still
	claimed_at INTEGER NOT NULL,
	single INTEGER NOT NULL,     -- 1: a delivered one that is sent once more
	epoch INTEGER NOT NULL,      -- of the subscription's head when it was claimed
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
	stood INTEGER NOT NULL,
	single INTEGER NOT NULL,
	epoch INTEGER NOT NULL,      -- of the subscription's head when it came here
	rank INTEGER NOT NULL,       -- 1: of a replay, and not claimed since: what has 0 goes before it
	PRIMARY KEY (subscription, event)
) WITHOUT ROWID;
CREATE INDEX surehook_waiting_due ON surehook_waiting (subscription, epoch, rank, due);

-- Ended otherwise than delivered.
CREATE TABLE surehook_ended (
	no INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order in which they ended
	subscription INTEGER NOT NULL,
	event INTEGER NOT NULL,
	status TEXT NOT NULL, -- dead_lettered, cancelled
	class TEXT NOT NULL,  -- of the last attempt; '': there was none
	ended_at INTEGER NOT NULL,
	UNIQUE (subscription, event)
);
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

-- When to look at a subscription's deliveries, how many there are, and how its
-- endpoint does. What concerns all of them at once is said here, in one row,
-- however many they are.
CREATE TABLE surehook_heads (
	subscription INTEGER PRIMARY KEY,
	subscriber INTEGER NOT NULL,
	lane INTEGER NOT NULL,
	open INTEGER NOT NULL, -- 0: nothing of it may be claimed: it is paused, disabled or deleted
	next_due INTEGER,      -- never later than the least due of its deliveries; NULL: there are none, or it is not open
	turn INTEGER NOT NULL, -- when it was served last: its place among those due at one time
	pending INTEGER NOT NULL, -- how many rows it has in surehook_pending,
	waiting INTEGER NOT NULL, -- in surehook_waiting,
	leased INTEGER NOT NULL,  -- in surehook_leases,
	dead INTEGER NOT NULL,    -- and dead-lettered ones in surehook_ended
	leases_end INTEGER NOT NULL, -- never later than the first of the leases ends; 0: unknown, or there are none
	-- It rises with each resume. What waits since an earlier one is due at once, and
	-- starts its schedule anew, unless surehook_left cancels it.
	epoch INTEGER NOT NULL,
	resumed_at INTEGER NOT NULL,
	resumed_to INTEGER,    -- how far, in events, what waits since earlier ones was claimed; NULL: there is none
	left_to INTEGER NOT NULL, -- the last event whose pending delivery surehook_left cancels
	rate_at INTEGER NOT NULL, -- what sender.TakeRate remembers
	streak INTEGER NOT NULL,
	failing_since INTEGER NOT NULL,
	last_success INTEGER NOT NULL,
	last_failure INTEGER NOT NULL,
	warned INTEGER NOT NULL
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

-- What resumes left behind, until it is swept: the deliveries of events up to one
-- that were there before the epoch are cancelled. Those that are pending were there
-- before all.
CREATE TABLE surehook_left (
	subscription INTEGER NOT NULL,
	epoch INTEGER NOT NULL,
	event INTEGER NOT NULL,
	PRIMARY KEY (subscription, epoch)
) WITHOUT ROWID;

-- What an operator or an owner must learn.
CREATE TABLE surehook_notices (
	no INTEGER PRIMARY KEY AUTOINCREMENT,
	id TEXT NOT NULL UNIQUE,
	kind TEXT NOT NULL,
	subscriber TEXT NOT NULL,
	subscription TEXT NOT NULL,
	delivery TEXT NOT NULL,
	replay TEXT NOT NULL,
	detail TEXT NOT NULL,
	percent INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	acknowledged_at INTEGER NOT NULL,
	notified_at INTEGER NOT NULL,
	notify_due INTEGER NOT NULL, -- when a notifier may take it, if it is neither notified nor acknowledged
	notify_tries INTEGER NOT NULL
);
CREATE INDEX surehook_notices_of ON surehook_notices (subscriber, no);
CREATE INDEX surehook_notices_about ON surehook_notices (subscription, no);
CREATE INDEX surehook_notices_unread ON surehook_notices (no) WHERE acknowledged_at = 0;
CREATE INDEX surehook_notices_due ON surehook_notices (notify_due, no) WHERE notified_at = 0 AND acknowledged_at = 0;
