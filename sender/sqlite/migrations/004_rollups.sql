-- Deliveries of a subscription that have succeeded.
CREATE INDEX surehook_attempts_delivered ON surehook_attempts (subscription, event) WHERE class = '';

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
INSERT INTO surehook_counts
	SELECT 1,
		coalesce(sum((h.pending + h.waiting + h.leased) * (s.status IN ('active', 'closing'))), 0),
		coalesce(sum((h.pending + h.waiting + h.leased) * (s.status IN ('paused', 'disabled'))), 0),
		coalesce(sum(h.dead), 0),
		coalesce(sum(s.status = 'active'), 0), coalesce(sum(s.status = 'paused'), 0),
		coalesce(sum(s.status = 'disabled'), 0), coalesce(sum(s.status = 'closing'), 0),
		(SELECT count(*) FROM surehook_notices WHERE acknowledged_at = 0)
	FROM surehook_subscriptions s JOIN surehook_heads h ON h.subscription = s.no;

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
		live = live + (h.pending + h.waiting + h.leased) * ((NEW.status IN ('active', 'closing')) - (OLD.status IN ('active', 'closing'))),
		held = held + (h.pending + h.waiting + h.leased) * ((NEW.status IN ('paused', 'disabled')) - (OLD.status IN ('paused', 'disabled')))
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

-- What happened in each minute, by each process that did something.
CREATE TABLE surehook_rollups (
	minute INTEGER NOT NULL, -- microseconds since 1970 at which it began
	shard INTEGER NOT NULL,
	rollup TEXT NOT NULL,    -- JSON
	PRIMARY KEY (minute, shard)
) WITHOUT ROWID;
