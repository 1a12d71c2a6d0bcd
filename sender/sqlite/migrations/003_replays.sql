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
	-- Of dead letters, in numbers of surehook_ended: what ended up to the boundary is
	-- the set, and what ended up to position was looked at. Of delivered ones, the
	-- same in events, and position_in is the subscription that was looked at last.
	boundary INTEGER NOT NULL,
	position INTEGER NOT NULL,
	position_in INTEGER NOT NULL,
	rate_at INTEGER NOT NULL,      -- what sender.TakeRate remembers
	turn INTEGER NOT NULL,
	matched INTEGER NOT NULL,
	admitted INTEGER NOT NULL,
	skipped INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	finished_at INTEGER NOT NULL
);
CREATE INDEX surehook_replays_running ON surehook_replays (turn) WHERE status = 'running';
CREATE INDEX surehook_replays_delivered ON surehook_replays (no) WHERE status_of = 'delivered' AND status IN ('running', 'paused');
CREATE INDEX surehook_replays_subscriber ON surehook_replays (subscriber, no);

-- What became delivered since a replay of delivered ones was created, and lies
-- between its position and its boundary. No time of an attempt could tell that
-- exactly: clocks are set back, and an attempt is recorded after it has ended.
CREATE TABLE surehook_replay_late (
	replay INTEGER NOT NULL,
	event INTEGER NOT NULL,
	subscription INTEGER NOT NULL,
	PRIMARY KEY (replay, event, subscription)
) WITHOUT ROWID;

-- By the order in which they ended: the last column of an index is the rowid.
CREATE INDEX surehook_ended_order ON surehook_ended (status);
CREATE INDEX surehook_ended_of ON surehook_ended (subscription, status);

-- Which replay has brought it here; 0: none.
ALTER TABLE surehook_waiting ADD COLUMN replay INTEGER NOT NULL DEFAULT 0;
CREATE INDEX surehook_waiting_replay ON surehook_waiting (replay) WHERE rank = 1;
