-- The lines in which deliveries of a subscription wait that are about one object: those that
-- were made, or sent again, while the subscription had an order. What is behind in a line is
-- in no other table; it is a fifth place of a delivery that has not ended, beside
-- surehook_pending, surehook_leases, surehook_waiting.
--
-- Releases that know no lines would have versions pass each other, and would leave those
-- behind for ever, so none may work beside.
CREATE TABLE surehook_lines (
	subscription INTEGER NOT NULL,
	object TEXT NOT NULL, -- its type, a space, and its id
	event INTEGER NOT NULL,
	-- 0: it is out, in one of the other three; 1: it is behind, and was never claimed; 2: it
	-- is behind, and what follows is to be its row of surehook_waiting; 3: it is a dead
	-- letter that holds back what comes after it.
	place INTEGER NOT NULL,
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
	PRIMARY KEY (subscription, object, event)
) WITHOUT ROWID;
CREATE UNIQUE INDEX surehook_lines_event ON surehook_lines (subscription, event);
CREATE UNIQUE INDEX surehook_lines_out ON surehook_lines (subscription, object) WHERE place = 0;
CREATE INDEX surehook_lines_dead ON surehook_lines (subscription, event) WHERE place = 3;

ALTER TABLE surehook_heads ADD COLUMN behind INTEGER NOT NULL DEFAULT 0; -- how many are behind in its lines,
ALTER TABLE surehook_heads ADD COLUMN lined INTEGER NOT NULL DEFAULT 0;  -- and how many rows it has in surehook_lines in all

DROP INDEX surehook_heads_live;
CREATE INDEX surehook_heads_live ON surehook_heads (subscription) WHERE pending + waiting + leased + behind > 0;

DROP TRIGGER surehook_count_status;
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

INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('sender', 2, 2);
