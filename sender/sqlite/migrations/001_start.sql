-- Times are microseconds since 1970, UTC; 0 stands for no time where a column
-- cannot be NULL.

-- The owners of subscriptions and of secrets.

CREATE TABLE surehook_subscribers (
	no INTEGER PRIMARY KEY AUTOINCREMENT,
	id TEXT NOT NULL UNIQUE,
	created_at INTEGER NOT NULL,
	keyring_version INTEGER NOT NULL,
	deleted INTEGER NOT NULL -- 0; 1: some of its subscriptions are closing; 2: its secrets are gone; 3: its turns, too
);
CREATE INDEX surehook_subscribers_deleted ON surehook_subscribers (no) WHERE deleted = 1;
CREATE INDEX surehook_subscribers_buried ON surehook_subscribers (no) WHERE deleted = 2;

CREATE TABLE surehook_secrets (
	subscriber INTEGER NOT NULL,
	position INTEGER NOT NULL,
	id TEXT NOT NULL,
	sealed BLOB NOT NULL,
	sealing_key TEXT NOT NULL, -- the id and fingerprint of the key that it is sealed with; '': not known
	not_before INTEGER NOT NULL,
	not_after INTEGER NOT NULL,
	PRIMARY KEY (subscriber, position)
) WITHOUT ROWID;
CREATE INDEX surehook_secrets_key ON surehook_secrets (sealing_key, subscriber);

CREATE TABLE surehook_subscriptions (
	no INTEGER PRIMARY KEY AUTOINCREMENT,
	id TEXT NOT NULL UNIQUE,
	subscriber INTEGER NOT NULL,
	url TEXT NOT NULL,
	event_types TEXT NOT NULL, -- JSON
	filter TEXT NOT NULL DEFAULT '', -- on the content of events, as JSON; '': there is none
	description TEXT NOT NULL,
	settings TEXT NOT NULL, -- JSON; empty once it is swept
	created_at INTEGER NOT NULL,
	status TEXT NOT NULL, -- active, paused, disabled, closing; deleted; swept: deleted, and nothing of it is live
	swept_at INTEGER NOT NULL DEFAULT 0, -- when that was found
	until INTEGER NOT NULL, -- the last event that it gets: of one that is closing; otherwise beyond all
	disabled_at INTEGER NOT NULL,
	disabled_reason TEXT NOT NULL,
	implicit INTEGER NOT NULL DEFAULT 0 -- 1: it stands for the callback URLs of one origin, which is its url
);
CREATE INDEX surehook_subscriptions_owner ON surehook_subscriptions (subscriber, no);
-- Lists of a subscriber's subscriptions leave out the deleted ones, which stay until they are
-- pruned, and which may be many more.
CREATE INDEX surehook_subscriptions_listed ON surehook_subscriptions (subscriber, no) WHERE status IN ('active', 'paused', 'disabled', 'closing');
CREATE INDEX surehook_subscriptions_ending ON surehook_subscriptions (no) WHERE status IN ('closing', 'deleted');
CREATE INDEX surehook_subscriptions_swept ON surehook_subscriptions (no) WHERE status = 'swept';
CREATE UNIQUE INDEX surehook_subscriptions_implicit ON surehook_subscriptions (subscriber, url)
	WHERE implicit = 1 AND status IN ('active', 'paused', 'disabled');

-- The patterns of subscriptions that are not deleted.
CREATE TABLE surehook_patterns (
	pattern TEXT NOT NULL,
	subscriber INTEGER NOT NULL,
	subscription INTEGER NOT NULL,
	since INTEGER NOT NULL, -- the newest event when it was made: it gets those that follow,
	until INTEGER NOT NULL, -- up to this one: see surehook_subscriptions
	filtered INTEGER NOT NULL DEFAULT 0, -- whether the subscription has a filter, so that the others need not be looked at
	PRIMARY KEY (pattern, subscriber, subscription)
) WITHOUT ROWID;
CREATE INDEX surehook_patterns_all ON surehook_patterns (pattern, subscription, since, until, filtered);
CREATE INDEX surehook_patterns_of ON surehook_patterns (subscription);

-- One row, changed with every change above, so that what was read of it can be
-- remembered.
CREATE TABLE surehook_registry (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	version INTEGER NOT NULL
);
INSERT INTO surehook_registry VALUES (1, 1);

-- The events. There is one writer, so seq is the order of the commits.
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
	body BLOB NOT NULL,            -- empty: it was redacted
	url TEXT NOT NULL DEFAULT '',  -- of one addressed to one subscription: where it is posted; '': to the subscription's
	about INTEGER NOT NULL DEFAULT 0, -- of a notice's: the subscription that it tells of
	traceparent TEXT               -- the trace context of its publisher, as the header has it; NULL: there was none
);
CREATE UNIQUE INDEX surehook_events_id ON surehook_events (id);
-- The events that are not as most are: those that tell of a notice, and redacted ones.
-- A recording need not read the others.
CREATE INDEX surehook_events_apart ON surehook_events (seq) WHERE notice = 1 OR length(body) = 0;

-- The last version of each object; kept when the object is gone, unless it is forgotten.
CREATE TABLE surehook_objects (
	type TEXT NOT NULL,
	id TEXT NOT NULL,
	version INTEGER NOT NULL,
	-- What surehook_lines calls it: the event with which it came into a line first. 0: it was in none.
	no INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (type, id)
) WITHOUT ROWID;

-- One row: every object's next version is above this one. It is raised when an object is
-- forgotten, and when the database was brought back to an earlier state, which does not
-- know what it has given out since.
CREATE TABLE surehook_floor (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	version INTEGER NOT NULL
);
INSERT INTO surehook_floor VALUES (1, 0);

-- Objects whose last events were pruned: they are forgotten some time later, if they have
-- these versions still.
CREATE TABLE surehook_forgettable (
	no INTEGER PRIMARY KEY,
	type TEXT NOT NULL,
	id TEXT NOT NULL,
	version INTEGER NOT NULL,
	at INTEGER NOT NULL -- when the event was pruned
);

-- Idempotency keys of publishes.
CREATE TABLE surehook_keys (
	scope TEXT NOT NULL,
	key TEXT NOT NULL,
	hash BLOB NOT NULL,
	event INTEGER NOT NULL,
	PRIMARY KEY (scope, key)
) WITHOUT ROWID;
CREATE INDEX surehook_keys_event ON surehook_keys (event);

-- One row: up to which event all are expanded whole, and up to which they were looked at:
-- what lies between them is expanded, but for surehook_unexpanded.
CREATE TABLE surehook_expanded (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	event INTEGER NOT NULL,
	seen INTEGER NOT NULL
);
INSERT INTO surehook_expanded VALUES (1, 0, 0);

-- Large events, of which each expansion makes a part, and events that wait for one of them
-- because they are about the same object.
CREATE TABLE surehook_unexpanded (
	event INTEGER PRIMARY KEY,
	after INTEGER NOT NULL -- the last subscription that has its delivery; 0: none
);

-- One row: the last event, in seq, that was pruned. A reader of the feed who has come only
-- to an earlier one may have missed some.
CREATE TABLE surehook_feed_pruned (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	event INTEGER NOT NULL
);
INSERT INTO surehook_feed_pruned VALUES (1, 0);

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
	token INTEGER NOT NULL,      -- sender.ClaimParams.Token
	owner INTEGER NOT NULL,      -- the process that has claimed it; 0: nobody's
	number INTEGER NOT NULL,     -- of the attempt
	tries INTEGER NOT NULL,      -- attempts of the present schedule, this one included
	first_at INTEGER NOT NULL,   -- when the first of them was claimed
	stood INTEGER NOT NULL,      -- microseconds that the schedule has stood still
	claimed_at INTEGER NOT NULL,
	single INTEGER NOT NULL,     -- 1: a delivered one that is sent once more
	epoch INTEGER NOT NULL,      -- of the subscription's head when it was claimed
	spared INTEGER NOT NULL DEFAULT 0, -- as in surehook_waiting
	PRIMARY KEY (subscription, event)
) WITHOUT ROWID;

-- Processes that hold leases, or held some until lately. One whose beat stays the same
-- is taken for gone by those that watch.
CREATE TABLE surehook_processes (
	no INTEGER PRIMARY KEY, -- random
	beat INTEGER NOT NULL
);

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
	replay INTEGER NOT NULL DEFAULT 0, -- which replay has brought it here; 0: none
	-- 1: the last attempt was forgiven, because its server closed an idle connection, and
	-- so the next one is not. A delivery that was never claimed has none.
	spared INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (subscription, event)
) WITHOUT ROWID;
CREATE INDEX surehook_waiting_due ON surehook_waiting (subscription, epoch, rank, due);
CREATE INDEX surehook_waiting_replay ON surehook_waiting (replay) WHERE rank = 1;

-- The lines in which deliveries of a subscription wait that are about one object: those that
-- were made, or sent again, while the subscription had an order. A delivery that is behind
-- in a line is in no other table: lines hold deliveries that have not ended, as
-- surehook_pending, surehook_leases and surehook_waiting do.
CREATE TABLE surehook_lines (
	subscription INTEGER NOT NULL,
	event INTEGER NOT NULL,
	object INTEGER NOT NULL, -- surehook_objects.no: a name would make the indexes larger, and scatter in them what ends together
	-- 1: while it is behind, it was never claimed; 2: while it is behind, what follows is to be
	-- its row of surehook_waiting; 3: it is a dead letter that holds back what comes after it.
	-- The first of a line comes out, and its row stays as it is. So of 1 and 2 those are behind
	-- that are in none of the other three. 0: it is out, and an earlier one came after that.
	place INTEGER NOT NULL,
	halts INTEGER NOT NULL DEFAULT 0, -- 1: if it is the first, nothing comes out of the line until a sweep
	due INTEGER NOT NULL DEFAULT 0,
	number INTEGER NOT NULL DEFAULT 0,
	tries INTEGER NOT NULL DEFAULT 0,
	first_at INTEGER NOT NULL DEFAULT 0,
	stood INTEGER NOT NULL DEFAULT 0,
	single INTEGER NOT NULL DEFAULT 0,
	epoch INTEGER NOT NULL DEFAULT 0,
	rank INTEGER NOT NULL DEFAULT 0,
	replay INTEGER NOT NULL DEFAULT 0,
	spared INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (subscription, event)
) WITHOUT ROWID;
CREATE INDEX surehook_lines_object ON surehook_lines (object, subscription, event);
CREATE UNIQUE INDEX surehook_lines_ahead ON surehook_lines (object, subscription) WHERE place = 0;
CREATE INDEX surehook_lines_dead ON surehook_lines (subscription, event) WHERE place = 3;
-- Few: without any, what comes out of lines is pending, and need not be looked at.
CREATE INDEX surehook_lines_again ON surehook_lines (subscription) WHERE place = 2;
CREATE INDEX surehook_lines_halted ON surehook_lines (subscription, event) WHERE halts = 1;

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
-- By the order in which they ended: the last column of an index is the rowid.
CREATE INDEX surehook_ended_order ON surehook_ended (status);
CREATE INDEX surehook_ended_of ON surehook_ended (subscription, status);
CREATE INDEX surehook_ended_at ON surehook_ended (status, ended_at);

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
	headers TEXT,              -- of the request and the answer: sender.Headers
	PRIMARY KEY (event, subscription, number)
) WITHOUT ROWID;
-- Deliveries of a subscription that have succeeded.
CREATE INDEX surehook_attempts_delivered ON surehook_attempts (subscription, event) WHERE class = '';

-- The bodies of deliveries that are not those of their events: of subscriptions that are
-- pinned to an older payload version. The first that is kept stays.
CREATE TABLE surehook_bodies (
	event INTEGER NOT NULL,
	subscription INTEGER NOT NULL,
	body BLOB NOT NULL,
	PRIMARY KEY (event, subscription)
);

-- When to look at a subscription's deliveries, how many there are, and how its
-- endpoint does. One row says what concerns all of them at once, however many they are.
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
	behind INTEGER NOT NULL DEFAULT 0, -- behind in surehook_lines,
	dead INTEGER NOT NULL,    -- dead-lettered ones in surehook_ended,
	lined INTEGER NOT NULL DEFAULT 0, -- and rows in surehook_lines in all
	leases_end INTEGER NOT NULL, -- never later than the first of the leases ends; 0: unknown, or there are none
	owner INTEGER NOT NULL DEFAULT 0, -- the process that has claimed of it last: while leases last it alone does; 0: nobody's
	-- It rises with each resume. A delivery that waits since an earlier epoch is due at
	-- once, and starts its schedule anew, unless surehook_left cancels it.
	epoch INTEGER NOT NULL,
	resumed_at INTEGER NOT NULL,
	resumed_to INTEGER,    -- how far, in events, what waits since earlier ones was claimed; NULL: there is none
	left_to INTEGER NOT NULL, -- the last event whose pending delivery surehook_left cancels
	rate_at INTEGER NOT NULL, -- what sender.TakeRate remembers
	streak INTEGER NOT NULL,
	failing_since INTEGER NOT NULL,
	last_success INTEGER NOT NULL,
	last_failure INTEGER NOT NULL,
	warned INTEGER NOT NULL,
	warned_at INTEGER NOT NULL,
	recent INTEGER NOT NULL DEFAULT 0 -- the last 32 outcomes: sender.Recent
);
CREATE INDEX surehook_heads_due ON surehook_heads (lane, subscriber, next_due, turn) WHERE next_due IS NOT NULL;
CREATE INDEX surehook_heads_live ON surehook_heads (subscription) WHERE pending + waiting + leased + behind > 0; -- for who forgets: of those that were ever registered, most have nothing
-- The subscriptions that fail, those that have failed for longest first. It changes when
-- one begins or ends to fail.
CREATE INDEX surehook_heads_failing ON surehook_heads (failing_since) WHERE failing_since > 0;

-- The same for subscribers, who take turns in each lane.
CREATE TABLE surehook_turns (
	lane INTEGER NOT NULL,
	subscriber INTEGER NOT NULL,
	next_due INTEGER, -- never later than the least of its heads in the lane
	turn INTEGER NOT NULL,
	PRIMARY KEY (lane, subscriber)
) WITHOUT ROWID;
CREATE INDEX surehook_turns_due ON surehook_turns (lane, next_due, turn) WHERE next_due IS NOT NULL;

-- What resumes have skipped, until it is swept: the deliveries of events up to one that
-- were there before the epoch are cancelled. Pending ones were there before all epochs.
CREATE TABLE surehook_left (
	subscription INTEGER NOT NULL,
	epoch INTEGER NOT NULL,
	event INTEGER NOT NULL,
	PRIMARY KEY (subscription, epoch)
) WITHOUT ROWID;

-- Notices: what an operator or an owner must learn.
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
CREATE INDEX surehook_notices_read ON surehook_notices (acknowledged_at) WHERE acknowledged_at > 0;

-- Deliveries that match a filter, sent again.
CREATE TABLE surehook_replays (
	no INTEGER PRIMARY KEY AUTOINCREMENT,
	id TEXT NOT NULL UNIQUE,
	filter TEXT NOT NULL,          -- JSON
	status_of TEXT NOT NULL,       -- of the filter: dead_lettered, delivered
	subscriber TEXT NOT NULL,      -- of the filter; '': any
	subscription INTEGER NOT NULL, -- of the filter; 0: any
	rate REAL NOT NULL,
	asked_by TEXT NOT NULL,
	reason TEXT NOT NULL,
	status TEXT NOT NULL,          -- running, paused, cancelled, finished
	-- A replay of dead letters counts in numbers of surehook_ended: those up to the
	-- boundary are the set, and those up to position were looked at. One of delivered
	-- deliveries counts in events, and position_in is the subscription that was looked at
	-- last.
	boundary INTEGER NOT NULL,
	position INTEGER NOT NULL,
	position_in INTEGER NOT NULL,
	not_before INTEGER NOT NULL,   -- when it was created, events from before were too old to be sent; the bound rises with the time since; 0: none is too old
	rate_at INTEGER NOT NULL,      -- what sender.TakeRate remembers
	next_at INTEGER NOT NULL,      -- when to look at it, and its place among those that run
	turn INTEGER NOT NULL,         -- when it was served last: its place among those of one time
	blocked_at INTEGER NOT NULL,   -- since when enough of what it has admitted is not claimed; 0: it may get on
	matched INTEGER NOT NULL,
	more INTEGER NOT NULL DEFAULT 0, -- 1: matched is at least so many: not all were counted when it was created
	admitted INTEGER NOT NULL,
	skipped INTEGER NOT NULL,
	too_old INTEGER NOT NULL DEFAULT 0, -- of those skipped
	created_at INTEGER NOT NULL,
	finished_at INTEGER NOT NULL,
	ended_at INTEGER NOT NULL      -- when it was finished or cancelled; 0: it was neither
);
CREATE INDEX surehook_replays_running ON surehook_replays (next_at, turn) WHERE status = 'running';
CREATE INDEX surehook_replays_delivered ON surehook_replays (no) WHERE status_of = 'delivered' AND status IN ('running', 'paused');
CREATE INDEX surehook_replays_subscriber ON surehook_replays (subscriber, no);
CREATE INDEX surehook_replays_unfinished ON surehook_replays (subscriber) WHERE status IN ('running', 'paused');
CREATE INDEX surehook_replays_ended ON surehook_replays (ended_at) WHERE ended_at > 0;

-- Deliveries that became delivered since a replay of delivered ones was created, and lie
-- between its position and its boundary. No time of an attempt could tell that exactly:
-- clocks are set back, and an attempt is recorded after it has ended.
CREATE TABLE surehook_replay_late (
	replay INTEGER NOT NULL,
	event INTEGER NOT NULL,
	subscription INTEGER NOT NULL,
	PRIMARY KEY (replay, event, subscription)
) WITHOUT ROWID;

-- One row: how many there are, so that nobody has to count. live are the deliveries
-- of active and closing subscriptions that have not ended, and held those of paused
-- and disabled ones; what changes them changes the heads, and says so here.
CREATE TABLE surehook_counts (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	live INTEGER NOT NULL,
	held INTEGER NOT NULL,
	dead INTEGER NOT NULL,
	active INTEGER NOT NULL, -- subscriptions, by status
	paused INTEGER NOT NULL,
	disabled INTEGER NOT NULL,
	closing INTEGER NOT NULL,
	notices INTEGER NOT NULL -- that nobody has acknowledged
);
INSERT INTO surehook_counts VALUES (1, 0, 0, 0, 0, 0, 0, 0, 0);

CREATE TRIGGER surehook_count_subscription AFTER INSERT ON surehook_subscriptions BEGIN
	UPDATE surehook_counts SET active = active + (NEW.status = 'active'), paused = paused + (NEW.status = 'paused'),
		disabled = disabled + (NEW.status = 'disabled'), closing = closing + (NEW.status = 'closing');
END;

CREATE TRIGGER surehook_count_status AFTER UPDATE OF status ON surehook_subscriptions WHEN NEW.status <> OLD.status BEGIN
	UPDATE surehook_counts SET
		active = active + (NEW.status = 'active') - (OLD.status = 'active'),
		paused = paused + (NEW.status = 'paused') - (OLD.status = 'paused'),
		disabled = disabled + (NEW.status = 'disabled') - (OLD.status = 'disabled'),
		closing = closing + (NEW.status = 'closing') - (OLD.status = 'closing'),
		live = live + (h.pending + h.waiting + h.leased + h.behind) * ((NEW.status IN ('active', 'closing')) - (OLD.status IN ('active', 'closing'))),
		held = held + (h.pending + h.waiting + h.leased + h.behind) * ((NEW.status IN ('paused', 'disabled')) - (OLD.status IN ('paused', 'disabled')))
	FROM surehook_heads h WHERE h.subscription = NEW.no;
END;

CREATE TRIGGER surehook_count_notice AFTER INSERT ON surehook_notices WHEN NEW.acknowledged_at = 0 BEGIN
	UPDATE surehook_counts SET notices = notices + 1;
END;
CREATE TRIGGER surehook_count_acknowledged AFTER UPDATE OF acknowledged_at ON surehook_notices BEGIN
	UPDATE surehook_counts SET notices = notices + (NEW.acknowledged_at = 0) - (OLD.acknowledged_at = 0);
END;
CREATE TRIGGER surehook_count_forgotten AFTER DELETE ON surehook_notices WHEN OLD.acknowledged_at = 0 BEGIN
	UPDATE surehook_counts SET notices = notices - 1;
END;

-- The figures of each minute, one row for each process that did something.
CREATE TABLE surehook_rollups (
	minute INTEGER NOT NULL, -- microseconds since 1970 at which it began
	shard INTEGER NOT NULL,
	rollup TEXT NOT NULL,    -- JSON
	PRIMARY KEY (minute, shard)
) WITHOUT ROWID;

-- The same of each hour that is over, of all processes together.
CREATE TABLE surehook_hour_rollups (
	hour INTEGER PRIMARY KEY, -- microseconds since 1970 at which it began
	rollup TEXT NOT NULL      -- JSON
);

-- The figures of each subscription and hour, one row for each process that did something.
CREATE TABLE surehook_subscription_rollups (
	subscription INTEGER NOT NULL,
	hour INTEGER NOT NULL,  -- microseconds since 1970 at which it began
	shard INTEGER NOT NULL, -- random
	rollup TEXT NOT NULL,   -- JSON
	PRIMARY KEY (subscription, hour, shard)
) WITHOUT ROWID;
CREATE INDEX surehook_subscription_rollups_hour ON surehook_subscription_rollups (hour); -- for who forgets

-- The migrations that are applied, by sets, and which of its set a release must know at
-- least to work with it: needs rises with a migration that older releases cannot work
-- beside, and otherwise stays. Each migration records itself here.
CREATE TABLE IF NOT EXISTS surehook_migrations (
	set_name TEXT NOT NULL,
	version INTEGER NOT NULL,
	needs INTEGER NOT NULL,
	applied_at INTEGER NOT NULL DEFAULT (strftime('%s', 'now') * 1000000), -- microseconds since 1970, UTC
	PRIMARY KEY (set_name, version)
) WITHOUT ROWID;
INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('sender', 1, 1);
