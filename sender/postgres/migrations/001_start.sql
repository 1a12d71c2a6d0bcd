-- Names are unqualified: the search_path says in which schema they are made. Indexed
-- text is ordered by its bytes (COLLATE "C"): an index by a language's rules is wrong once
-- these have changed with the operating system's libraries, and slower.

-- Two kinds of tables are kept apart. Callers change subscribers, subscriptions, patterns
-- and events, in transactions of theirs that may stay open. A dispatcher reads these and
-- never waits for them. Dispatchers change heads, turns and deliveries, in short
-- transactions of their own. No caller locks these. All writers of a subscription's
-- deliveries first take the row lock of its head, in the order of the numbers, and after it
-- those of turns.

-- The owners of subscriptions and of secrets.

CREATE TABLE surehook_subscribers (
	no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id text COLLATE "C" NOT NULL UNIQUE,
	created_at timestamptz NOT NULL,
	keyring_version bigint NOT NULL,
	deleted smallint NOT NULL DEFAULT 0 -- 0; 1: some of its subscriptions are closing; 2: its secrets are gone; 3: its turns, too
);
CREATE INDEX surehook_subscribers_deleted ON surehook_subscribers (no) WHERE deleted = 1;
CREATE INDEX surehook_subscribers_buried ON surehook_subscribers (no) WHERE deleted = 2;

CREATE TABLE surehook_secrets (
	subscriber bigint NOT NULL,
	position int NOT NULL,
	id text NOT NULL,
	sealed bytea NOT NULL,
	sealing_key text COLLATE "C" NOT NULL, -- the id and fingerprint of the key that it is sealed with; '': not known
	not_before timestamptz,
	not_after timestamptz,
	PRIMARY KEY (subscriber, position)
);
CREATE INDEX surehook_secrets_key ON surehook_secrets (sealing_key, subscriber);

-- A mark tells what was committed before something else was done: an outbox row is
-- before it if its transaction is visible in the snapshot, or is the one that has set
-- the mark and has a lower seq. No time, and no sequence alone, could say that.

CREATE TABLE surehook_subscriptions (
	no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id text COLLATE "C" NOT NULL UNIQUE,
	subscriber bigint NOT NULL,
	url text COLLATE "C" NOT NULL,
	event_types text NOT NULL, -- JSON
	filter text NOT NULL DEFAULT '', -- on the content of events, as JSON; '': there is none
	description text NOT NULL,
	settings text NOT NULL,    -- JSON; empty once it is swept
	created_at timestamptz NOT NULL,
	status text NOT NULL,      -- active, paused, disabled, closing; deleted; swept: deleted, and nothing of it is live
	swept_at timestamptz, -- when that was found
	version bigint NOT NULL DEFAULT 1, -- it rises with each change of the row: what was read of it can be remembered
	held_at timestamptz,       -- when it was paused or disabled
	disabled_reason text NOT NULL DEFAULT '',
	-- If it is closing: the mark up to which it gets events.
	until_snapshot pg_snapshot,
	until_xid xid8,
	until_seq bigint,
	-- It rises with each resume. A delivery that waits since an earlier epoch is due at
	-- once, and starts its schedule anew, unless surehook_left cancels it.
	epoch bigint NOT NULL DEFAULT 0,
	resumed_at timestamptz,
	left_to bigint NOT NULL DEFAULT -1, -- the last position whose pending delivery surehook_left cancels; -1: it has no row of the subscription
	resumed_from bigint NOT NULL DEFAULT 0, -- of the last resume: up to this position nothing is taken
	recovered bigint NOT NULL DEFAULT 0, -- the epoch of the last resume that ended a failing time
	implicit boolean NOT NULL DEFAULT false -- it stands for the callback URLs of one origin, which is its url
);
CREATE INDEX surehook_subscriptions_owner ON surehook_subscriptions (subscriber, no);
-- Lists of a subscriber's subscriptions leave out the deleted ones, which stay until they are
-- pruned, and which may be many more.
CREATE INDEX surehook_subscriptions_listed ON surehook_subscriptions (subscriber, no) WHERE status IN ('active', 'paused', 'disabled', 'closing');
CREATE INDEX surehook_subscriptions_ending ON surehook_subscriptions (no) WHERE status IN ('closing', 'deleted');
CREATE INDEX surehook_subscriptions_swept ON surehook_subscriptions (no) WHERE status = 'swept';
CREATE UNIQUE INDEX surehook_subscriptions_implicit ON surehook_subscriptions (subscriber, url)
	WHERE implicit AND status IN ('active', 'paused', 'disabled');

-- The patterns of subscriptions that are not deleted. If a row has a mark, its subscription
-- gets the events after it. The mark is removed when nothing before it can come any more.
-- The key begins with the subscriber: beside surehook_patterns_all, a planner without
-- statistics could take one that begins with the pattern too, and read everyone's.
CREATE TABLE surehook_patterns (
	pattern text COLLATE "C" NOT NULL,
	subscriber bigint NOT NULL,
	subscription bigint NOT NULL,
	since_snapshot pg_snapshot,
	since_xid xid8,
	since_seq bigint,
	PRIMARY KEY (subscriber, pattern, subscription)
);
CREATE INDEX surehook_patterns_all ON surehook_patterns (pattern, subscription);
CREATE INDEX surehook_patterns_of ON surehook_patterns (subscription);
CREATE INDEX surehook_patterns_since ON surehook_patterns (since_seq) WHERE since_seq IS NOT NULL;

-- What resumes have skipped, until it is swept. The deliveries up to a position that were
-- there before the epoch are cancelled. Those of events that the resume saw in the outbox
-- are, too, whoever has expanded them since: an expander may not have seen the resume.
CREATE TABLE surehook_left (
	subscription bigint NOT NULL,
	epoch bigint NOT NULL,
	event bigint NOT NULL,              -- up to this position
	seen bigint NOT NULL,               -- the last position that the resume saw
	unexpanded int8multirange NOT NULL, -- the numbers of those events of the outbox that it skips
	PRIMARY KEY (subscription, epoch)
);

-- Hints to dispatchers, written in callers' transactions: look at this subscription.
CREATE TABLE surehook_wakes (
	subscription bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
-- A publication of all tables would have PostgreSQL refuse to change a table without a
-- primary key. This costs nothing unless wal_level is logical; then the log has the old row, too.
ALTER TABLE surehook_wakes REPLICA IDENTITY FULL;

-- One narrow row for each event that is not expanded whole. It has the event's
-- number: one sequence, drawn once, while the object's version is locked, orders both. It
-- is the outbox's, since marks are drawn from it.
CREATE TABLE surehook_outbox (
	seq bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
	event bigint NOT NULL,
	patterns text NOT NULL,       -- what asks for it, with a space between
	subscriber bigint NOT NULL,
	subscription bigint NOT NULL,
	created_at timestamptz NOT NULL, -- the event's
	notice boolean NOT NULL,         -- the event's
	bytes int NOT NULL,              -- of the event's body
	about bigint NOT NULL DEFAULT 0, -- of a notice's: the subscription that it tells of
	xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
	-- If it was begun: its position, and the last subscription that has its delivery.
	position bigint,
	after bigint NOT NULL DEFAULT 0
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- The events. Rows are never updated, except when a body is redacted.
CREATE TABLE surehook_events (
	no bigint DEFAULT nextval('surehook_outbox_seq_seq') PRIMARY KEY,
	id text COLLATE "C" NOT NULL UNIQUE,
	type text NOT NULL,
	object_type text NOT NULL,
	object_id text NOT NULL,
	version bigint NOT NULL,
	subscriber bigint NOT NULL,   -- 0: for everyone
	subscription bigint NOT NULL, -- 0: for those who ask for the type
	created_at timestamptz NOT NULL,
	notice boolean NOT NULL,      -- it tells of a notice
	body bytea NOT NULL,          -- empty: it was redacted
	url text NOT NULL DEFAULT '', -- of one addressed to one subscription: where it is posted; '': to the subscription's
	traceparent text              -- the trace context of its publisher, as the header has it; NULL: there was none
);

-- The last version of each object; kept when the object is gone, unless it is forgotten.
CREATE TABLE surehook_objects (
	type text COLLATE "C" NOT NULL,
	id text COLLATE "C" NOT NULL,
	version bigint NOT NULL,
	PRIMARY KEY (type, id)
) WITH (fillfactor = 80);

-- One row: every object's next version is above this one. It is raised when an object is
-- forgotten, and when the database was brought back to an earlier state, which does not
-- know what it has given out since.
CREATE TABLE surehook_floor (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	version bigint NOT NULL,
	-- The cluster, its timeline and the database that gave out all versions up to now. A
	-- failover, a restore to a point in time and a dump begin another one, which does not know
	-- all that was given out. '': no dispatcher has looked yet.
	lineage text NOT NULL DEFAULT ''
);
INSERT INTO surehook_floor (version) VALUES (0);

-- Objects whose last events were pruned. Once nobody can be publishing any more who has
-- read an earlier floor, they are forgotten, if they have these versions still.
CREATE TABLE surehook_forgettable (
	no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	type text COLLATE "C" NOT NULL,
	id text COLLATE "C" NOT NULL,
	version bigint NOT NULL,
	at timestamptz NOT NULL -- when the event was pruned
);

-- Idempotency keys of publishes.
CREATE TABLE surehook_keys (
	scope text COLLATE "C" NOT NULL,
	key text COLLATE "C" NOT NULL,
	hash bytea NOT NULL,
	event text COLLATE "C" NOT NULL, -- its id
	PRIMARY KEY (scope, key)
);
CREATE INDEX surehook_keys_event ON surehook_keys (event);

-- The order of the events, assigned after their commits, by one expander at a time:
-- without gaps, and growing as it becomes visible. Deliveries name an event by it.
CREATE TABLE surehook_feed (
	position bigint PRIMARY KEY,
	event bigint NOT NULL,       -- its number
	newest timestamptz NOT NULL, -- the latest created_at up to here
	late boolean NOT NULL        -- it was created more than 10 s before newest: its transaction was open for that long
);
CREATE INDEX surehook_feed_late ON surehook_feed (position) WHERE late;
CREATE UNIQUE INDEX surehook_feed_event ON surehook_feed (event);

-- One row: the last position that was assigned, and the events that are begun and not
-- expanded whole: large ones, a few at a time.
CREATE TABLE surehook_feed_head (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	position bigint NOT NULL,
	newest timestamptz NOT NULL,
	begun bigint[] NOT NULL DEFAULT '{}' -- their seqs
) WITH (fillfactor = 10);
INSERT INTO surehook_feed_head (position, newest) VALUES (0, '-infinity');

-- One row: the last position whose event was pruned. A reader of the feed who has come only
-- to an earlier position may have missed some.
CREATE TABLE surehook_feed_pruned (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	position bigint NOT NULL
);
INSERT INTO surehook_feed_pruned (position) VALUES (0);

-- A delivery is in one of these four, or delivered: then it is in none of them, and
-- has an attempt of class ''. It moves from one to the next, so that each is as
-- small as what is in that state. event is a position.

-- Never claimed, and due since it was made. Claimed from the front: see
-- surehook_heads.claimed_to.
CREATE TABLE surehook_pending (
	subscription bigint NOT NULL,
	event bigint NOT NULL,
	no bigint NOT NULL, -- the event's number
	due timestamptz NOT NULL,
	notice boolean NOT NULL, -- its event tells of a notice
	bytes int NOT NULL,      -- of its event's body
	PRIMARY KEY (subscription, event)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- Claimed: an attempt is in flight until its result is recorded.
CREATE TABLE surehook_leases (
	subscription bigint NOT NULL,
	event bigint NOT NULL,
	until timestamptz NOT NULL,      -- then it is due again
	token bigint NOT NULL,           -- sender.ClaimParams.Token
	owner bigint NOT NULL,           -- the process that has claimed it; 0: nobody's
	number int NOT NULL,             -- of the attempt
	tries int NOT NULL,              -- attempts of the present schedule, this one included
	first_at timestamptz NOT NULL,   -- when the first of them was claimed
	claimed_at timestamptz NOT NULL,
	stood bigint NOT NULL,           -- microseconds that the schedule has stood still
	epoch bigint NOT NULL,           -- of the subscription when it was claimed
	single boolean NOT NULL,         -- a delivered one that is sent once more
	notice boolean NOT NULL,         -- its event tells of a notice
	redacted boolean NOT NULL,       -- its event's body was removed since it was claimed
	spared boolean NOT NULL DEFAULT false, -- as in surehook_waiting
	bytes int NOT NULL,              -- of its event's body
	PRIMARY KEY (subscription, event)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- Processes that hold leases, or held some until lately. One whose beat stays the same
-- is taken for gone by those that watch.
CREATE TABLE surehook_processes (
	no bigint PRIMARY KEY, -- random
	beat bigint NOT NULL,
	seen timestamptz NOT NULL -- for people alone
) WITH (fillfactor = 10);

-- Claimed before, or to be sent again, and not in flight.
CREATE TABLE surehook_waiting (
	subscription bigint NOT NULL,
	event bigint NOT NULL,
	due timestamptz NOT NULL,
	first_at timestamptz,
	number int NOT NULL,             -- of the last attempt
	tries int NOT NULL,
	stood bigint NOT NULL,
	epoch bigint NOT NULL,           -- of the subscription when it came here
	replay bigint NOT NULL,          -- which replay has brought it here; 0: none
	rank smallint NOT NULL,          -- 1: of a replay, and not claimed since: what has 0 goes before it
	single boolean NOT NULL,
	-- The last attempt was forgiven, because its server closed an idle connection, and so
	-- the next one is not. A delivery that was never claimed has none.
	spared boolean NOT NULL DEFAULT false,
	notice boolean NOT NULL,         -- its event tells of a notice
	bytes int NOT NULL,              -- of its event's body
	PRIMARY KEY (subscription, event)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX surehook_waiting_due ON surehook_waiting (subscription, epoch, rank, due);
-- For replays alone: its condition says more than what a claim asks for.
CREATE INDEX surehook_waiting_replay ON surehook_waiting (replay) WHERE rank = 1 AND replay <> 0;

-- The lines in which deliveries of a subscription wait that are about one object: those that
-- were made, or sent again, while the subscription had an order. A delivery that is behind
-- in a line is in no other table: lines hold deliveries that have not ended, as
-- surehook_pending, surehook_leases and surehook_waiting do. A transaction that changes a
-- line has locked the subscription's head.
--
-- One of a line is out, in one of these three. Nothing is written when it comes out, for
-- that would be an update for each delivery. It is the one that is preceded, or else the
-- first; if that is a dead letter, or halts, nothing is out. So it is after each transaction,
-- but of subscriptions that are deleted.
CREATE TABLE surehook_lines (
	subscription bigint NOT NULL,
	object text COLLATE "C" NOT NULL, -- its type, a space, and its id
	event bigint NOT NULL,            -- a position
	-- 1: it was never claimed when it came here; 2: it comes out with the row of
	-- surehook_waiting that follows; 3: it is a dead letter that holds back what comes after
	-- it. While it is out, the rest of the row may be old.
	place smallint NOT NULL,
	preceded boolean NOT NULL DEFAULT false, -- it is out although it is not the first: it was in flight when an earlier one was sent again
	halts boolean NOT NULL DEFAULT false,    -- if it is the first, nothing comes out of the line until a sweep
	no bigint NOT NULL,               -- the event's number, if it was never claimed
	notice boolean NOT NULL,
	bytes int NOT NULL,
	due timestamptz,
	first_at timestamptz,
	number int NOT NULL,
	tries int NOT NULL,
	stood bigint NOT NULL,
	epoch bigint NOT NULL,
	replay bigint NOT NULL,
	rank smallint NOT NULL,
	single boolean NOT NULL,
	spared boolean NOT NULL,
	PRIMARY KEY (subscription, object, event)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX surehook_lines_event ON surehook_lines (subscription, event);
CREATE UNIQUE INDEX surehook_lines_preceded ON surehook_lines (subscription, object) WHERE preceded;
CREATE INDEX surehook_lines_dead ON surehook_lines (subscription, event) WHERE place = 3;
CREATE INDEX surehook_lines_halted ON surehook_lines (subscription, event) WHERE halts;

-- Ended otherwise than delivered.
CREATE TABLE surehook_ended (
	no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	subscription bigint NOT NULL,
	event bigint NOT NULL,
	status text COLLATE "C" NOT NULL, -- dead_lettered, cancelled
	class text NOT NULL,       -- of the last attempt; '': there was none
	ended_at timestamptz NOT NULL,
	UNIQUE (subscription, event)
);
CREATE INDEX surehook_ended_status ON surehook_ended (status, event, subscription);
CREATE INDEX surehook_ended_order ON surehook_ended (status, no);
CREATE INDEX surehook_ended_of ON surehook_ended (subscription, status, no);
CREATE INDEX surehook_ended_at ON surehook_ended (status, ended_at);

-- Every attempt that has ended.
CREATE TABLE surehook_attempts (
	event bigint NOT NULL,
	subscription bigint NOT NULL,
	number int NOT NULL,
	status_code int NOT NULL,  -- 0: no answer
	started_at timestamptz NOT NULL,
	duration bigint NOT NULL,  -- microseconds
	next_at timestamptz,       -- when another was to follow
	class text NOT NULL,       -- '': success
	error text NOT NULL,
	snippet bytea,             -- the beginning of the answer
	headers text,              -- of the request and the answer: sender.Headers
	PRIMARY KEY (event, subscription, number)
);
-- Deliveries of a subscription that have succeeded.
CREATE INDEX surehook_attempts_delivered ON surehook_attempts (subscription, event) WHERE class = '';

-- The bodies of deliveries that are not those of their events: of subscriptions that are
-- pinned to an older payload version. The first that is kept stays.
CREATE TABLE surehook_bodies (
	event bigint NOT NULL,
	subscription bigint NOT NULL,
	body bytea NOT NULL,
	PRIMARY KEY (event, subscription)
);

-- When to look at a subscription's deliveries, how many there are, and how its
-- endpoint does. One row says what concerns all of them at once, however many they are.
--
-- There is one row for each subscription, made with it. No unique index says so: each
-- update of the row would look through all its dead versions for another one.
CREATE TABLE surehook_heads (
	subscription bigint NOT NULL,
	subscriber bigint NOT NULL,
	lane smallint NOT NULL DEFAULT 0,
	open boolean NOT NULL DEFAULT true, -- as the dispatchers have seen last: it may be claimed of
	next_due timestamptz NOT NULL DEFAULT 'infinity', -- never later than the least due of its deliveries, if it is open
	turn bigint NOT NULL DEFAULT 0,     -- when it was served last: its place among those due at one time
	pending bigint NOT NULL DEFAULT 0,  -- how many rows it has in surehook_pending,
	waiting bigint NOT NULL DEFAULT 0,  -- in surehook_waiting,
	leased bigint NOT NULL DEFAULT 0,   -- in surehook_leases,
	behind bigint NOT NULL DEFAULT 0,   -- behind in surehook_lines,
	dead bigint NOT NULL DEFAULT 0,     -- dead-lettered ones in surehook_ended,
	lined bigint NOT NULL DEFAULT 0,    -- and rows in surehook_lines in all
	leases_end timestamptz,             -- never later than the first of the leases ends; NULL: unknown, or there are none
	owner bigint NOT NULL DEFAULT 0,    -- the process that has claimed of it last: while leases last it alone does; 0: nobody's
	-- Lower bounds, so that a claim does not pass over rows that are dead and not yet vacuumed.
	-- Pending deliveries have positions above claimed_to, which is lowered when a large
	-- event's delivery comes after those of later events.
	claimed_to bigint NOT NULL DEFAULT 0,
	waiting_from timestamptz NOT NULL DEFAULT 'infinity', -- what waits in the present epoch is not due before
	epoch bigint NOT NULL DEFAULT 0,    -- of the subscription, as the dispatchers have seen last
	resumed_to bigint,                  -- how far, in positions, what waits since earlier ones was claimed; NULL: there is none
	rate_at timestamptz,                -- what sender.TakeRate remembers
	streak int NOT NULL DEFAULT 0,
	warned int NOT NULL DEFAULT 0,
	warned_at timestamptz,
	failing_since timestamptz,
	last_success timestamptz,
	last_failure timestamptz,
	recent bigint NOT NULL DEFAULT 0    -- the last 32 outcomes: sender.Recent
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE surehook_heads REPLICA IDENTITY FULL; -- as of surehook_wakes
CREATE INDEX surehook_heads_of ON surehook_heads (subscription);
CREATE INDEX surehook_heads_due ON surehook_heads (lane, subscriber, next_due, turn) WHERE next_due < 'infinity';
CREATE INDEX surehook_heads_live ON surehook_heads (subscription) WHERE pending + waiting + leased + behind > 0; -- for who forgets: of those that were ever registered, most have nothing
-- The subscriptions that fail, those that have failed for longest first. It changes when
-- one begins or ends to fail.
CREATE INDEX surehook_heads_failing ON surehook_heads (failing_since) WHERE failing_since IS NOT NULL;

-- The same for subscribers, who take turns in each lane.
CREATE TABLE surehook_turns (
	lane smallint NOT NULL,
	subscriber bigint NOT NULL,
	next_due timestamptz NOT NULL DEFAULT 'infinity', -- when one of its heads in the lane is due; of one that was served, no earlier than that
	turn bigint NOT NULL DEFAULT 0,
	low timestamptz NOT NULL DEFAULT 'infinity'       -- never later than the least of its heads in the lane
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE surehook_turns REPLICA IDENTITY FULL; -- as of surehook_wakes
CREATE INDEX surehook_turns_of ON surehook_turns (lane, subscriber);
CREATE INDEX surehook_turns_due ON surehook_turns (lane, next_due, turn) WHERE next_due < 'infinity';

-- Notices: what an operator or an owner must learn.
CREATE TABLE surehook_notices (
	no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id text COLLATE "C" NOT NULL UNIQUE,
	kind text NOT NULL,
	subscriber text COLLATE "C" NOT NULL,
	subscription text COLLATE "C" NOT NULL,
	delivery text NOT NULL,
	replay text NOT NULL,
	detail text NOT NULL,
	percent int NOT NULL,
	created_at timestamptz NOT NULL,
	acknowledged_at timestamptz,
	notified_at timestamptz,
	notify_due timestamptz NOT NULL, -- when a notifier may take it, if it is neither notified nor acknowledged
	notify_tries int NOT NULL DEFAULT 0
);
CREATE INDEX surehook_notices_of ON surehook_notices (subscriber, no);
CREATE INDEX surehook_notices_about ON surehook_notices (subscription, no);
CREATE INDEX surehook_notices_unread ON surehook_notices (no) WHERE acknowledged_at IS NULL;
CREATE INDEX surehook_notices_due ON surehook_notices (notify_due, no) WHERE notified_at IS NULL AND acknowledged_at IS NULL;
CREATE INDEX surehook_notices_read ON surehook_notices (acknowledged_at) WHERE acknowledged_at IS NOT NULL;

-- Deliveries that match a filter, sent again.
CREATE TABLE surehook_replays (
	no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id text COLLATE "C" NOT NULL UNIQUE,
	filter text NOT NULL,          -- JSON
	status_of text NOT NULL,       -- of the filter: dead_lettered, delivered
	subscriber text COLLATE "C" NOT NULL, -- of the filter; '': any
	subscription bigint NOT NULL,  -- of the filter; 0: any
	rate double precision NOT NULL,
	asked_by text NOT NULL,
	reason text NOT NULL,
	status text NOT NULL,          -- running, paused, cancelled, finished
	-- A replay of dead letters counts in numbers of surehook_ended: those up to the
	-- boundary are the set, and those up to at were looked at. One of delivered deliveries
	-- counts in positions, and at_subscription is the one that was looked at last.
	boundary bigint NOT NULL,
	at bigint NOT NULL,
	at_subscription bigint NOT NULL,
	not_before timestamptz,        -- when it was created, events from before were too old to be sent; the bound rises with the time since; NULL: none is too old
	rate_at timestamptz,           -- what sender.TakeRate remembers
	next_at timestamptz NOT NULL,  -- when to look at it, and its place among those that run
	turn bigint NOT NULL,          -- when it was served last: its place among those of one time
	blocked_at timestamptz,        -- since when enough of what it has admitted is not claimed; NULL: it may get on
	matched bigint NOT NULL,
	more boolean NOT NULL DEFAULT false, -- matched is at least so many: not all were counted when it was created
	admitted bigint NOT NULL DEFAULT 0,
	skipped bigint NOT NULL DEFAULT 0,
	too_old bigint NOT NULL DEFAULT 0, -- of those skipped
	created_at timestamptz NOT NULL,
	finished_at timestamptz,
	ended_at timestamptz           -- when it was finished or cancelled
);
CREATE INDEX surehook_replays_running ON surehook_replays (next_at, turn) WHERE status = 'running';
CREATE INDEX surehook_replays_delivered ON surehook_replays (no) WHERE status_of = 'delivered' AND status IN ('running', 'paused');
CREATE INDEX surehook_replays_subscriber ON surehook_replays (subscriber, no);
CREATE INDEX surehook_replays_unfinished ON surehook_replays (subscriber) WHERE status IN ('running', 'paused');
CREATE INDEX surehook_replays_ended ON surehook_replays (ended_at) WHERE ended_at IS NOT NULL;

-- Deliveries that became delivered since a replay of delivered ones was created, and lie
-- between its position and its boundary.
CREATE TABLE surehook_replay_late (
	replay bigint NOT NULL,
	event bigint NOT NULL,
	subscription bigint NOT NULL,
	PRIMARY KEY (replay, event, subscription)
) WITH (autovacuum_vacuum_cost_delay = 0);

-- The figures of each minute, one row for each process that did something.
CREATE TABLE surehook_rollups (
	minute timestamptz NOT NULL, -- at which it began
	shard bigint NOT NULL,
	rollup text NOT NULL,        -- JSON
	PRIMARY KEY (minute, shard)
);

-- The same of each hour that is over, of all processes together.
CREATE TABLE surehook_hour_rollups (
	hour timestamptz PRIMARY KEY, -- at which it began
	rollup text NOT NULL          -- JSON
);

-- The figures of each subscription and hour, one row for each process that did something.
CREATE TABLE surehook_subscription_rollups (
	subscription bigint NOT NULL,
	hour timestamptz NOT NULL, -- at which it began
	shard bigint NOT NULL,     -- random
	rollup text NOT NULL,      -- JSON
	PRIMARY KEY (subscription, hour, shard)
) WITH (fillfactor = 70, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX surehook_subscription_rollups_hour ON surehook_subscription_rollups (hour); -- for who forgets

-- The migrations that are applied, by sets, and which of its set a release must know at
-- least to work with it: needs rises with a migration that older releases cannot work
-- beside, and otherwise stays. Each migration records itself here.
CREATE TABLE IF NOT EXISTS surehook_migrations (
	set_name text NOT NULL,
	version integer NOT NULL,
	needs integer NOT NULL,
	applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (set_name, version)
);
INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('sender', 1, 1);
