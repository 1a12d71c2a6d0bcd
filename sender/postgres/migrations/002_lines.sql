-- The lines in which deliveries of a subscription wait that are about one object: those that
-- were made, or sent again, while the subscription had an order. What is behind in a line is
-- in no other table; it is a fifth place of a delivery that has not ended, beside
-- surehook_pending, surehook_leases, surehook_waiting. Whoever changes a line has locked the
-- subscription's head.
--
-- Releases that know no lines would have versions pass each other, and would leave those
-- behind for ever, so none may work beside.
CREATE TABLE surehook_lines (
	subscription bigint NOT NULL,
	object text COLLATE "C" NOT NULL, -- its type, a space, and its id
	event bigint NOT NULL,            -- a position
	-- 0: it is out, in one of the other three; 1: it is behind, and was never claimed; 2: it
	-- is behind, and is to have the row of surehook_waiting that follows; 3: it is a dead
	-- letter that holds back what comes after it.
	place smallint NOT NULL,
	no bigint NOT NULL,               -- the event's number, if it is behind and was never claimed
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
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX surehook_lines_event ON surehook_lines (subscription, event);
CREATE UNIQUE INDEX surehook_lines_out ON surehook_lines (subscription, object) WHERE place = 0;
CREATE INDEX surehook_lines_dead ON surehook_lines (subscription, event) WHERE place = 3;

ALTER TABLE surehook_heads ADD COLUMN behind bigint NOT NULL DEFAULT 0; -- how many are behind in its lines,
ALTER TABLE surehook_heads ADD COLUMN lined bigint NOT NULL DEFAULT 0;  -- and how many rows it has in surehook_lines in all

DROP INDEX surehook_heads_live;
CREATE INDEX surehook_heads_live ON surehook_heads (subscription) WHERE pending + waiting + leased + behind > 0;

INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('sender', 2, 2);
