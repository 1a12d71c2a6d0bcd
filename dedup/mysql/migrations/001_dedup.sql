-- Times are microseconds since 1970, UTC, so no time zone of a session or of a driver
-- matters. Text is bytes, so it is compared byte by byte: every collation that MySQL and
-- MariaDB both have takes some texts that differ for equal ("a" and "a ", at the least).
-- A statement that changes tables commits by itself. So each of these bears to be run again,
-- by a process that found the file half applied, or by two at once.

CREATE TABLE IF NOT EXISTS surehook_dedup_markers (
	scope     VARBINARY(128) NOT NULL,
	id        VARBINARY(128) NOT NULL,
	marked_at BIGINT NOT NULL,
	reapplied BIGINT NOT NULL DEFAULT 0, -- the number of the last request under which the event was applied again
	PRIMARY KEY (scope, id),
	KEY surehook_dedup_markers_by_time (marked_at) -- for pruning
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS surehook_dedup_versions (
	scope       VARBINARY(128) NOT NULL,
	object_type VARBINARY(64) NOT NULL,
	object_id   VARBINARY(255) NOT NULL,
	version     BIGINT NOT NULL,
	PRIMARY KEY (scope, object_type, object_id)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS surehook_dedup_dead_letters (
	scope       VARBINARY(128) NOT NULL,
	id          VARBINARY(128) NOT NULL,
	type        VARBINARY(128) NOT NULL,
	object_type VARBINARY(64) NOT NULL, -- '', with object_id '' and version 0, if there is no object
	object_id   VARBINARY(255) NOT NULL,
	version     BIGINT NOT NULL,
	body        LONGBLOB NOT NULL,
	reason      BLOB NOT NULL, -- UTF-8
	at          BIGINT NOT NULL,
	PRIMARY KEY (scope, id)
) ENGINE = InnoDB;

-- Requests to apply events again that were taken before: see the package's comment.
-- A number is never given out again, not even when its row is gone.
CREATE TABLE IF NOT EXISTS surehook_dedup_reapplies (
	number       BIGINT NOT NULL AUTO_INCREMENT,
	scope        VARBINARY(128) NOT NULL,
	event_id     VARBINARY(128) NOT NULL DEFAULT '', -- '': any event
	object_type  VARBINARY(64) NOT NULL DEFAULT '',  -- '', with object_id '': any object
	object_id    VARBINARY(255) NOT NULL DEFAULT '',
	marked_from  BIGINT,                             -- events that were taken first at this time or later
	marked_until BIGINT,                             -- and before this one
	asked_at     BIGINT NOT NULL DEFAULT (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
	PRIMARY KEY (number),
	-- A duplicate looks up the requests for its event, for its object, and for any.
	KEY surehook_dedup_reapplies_by_event (scope, event_id, object_type, object_id),
	CONSTRAINT surehook_dedup_reapplies_whole_object CHECK ((object_type = '') = (object_id = '')),
	CONSTRAINT surehook_dedup_reapplies_names_something CHECK (event_id <> '' OR object_type <> '' OR marked_from IS NOT NULL),
	CONSTRAINT surehook_dedup_reapplies_span CHECK (marked_from < marked_until),
	-- Seconds or milliseconds would cover all or nothing. In microseconds this is 1973.
	CONSTRAINT surehook_dedup_reapplies_microseconds CHECK (
		(marked_from IS NULL OR marked_from >= 100000000000000) AND
		(marked_until IS NULL OR marked_until >= 100000000000000) AND asked_at >= 100000000000000)
) ENGINE = InnoDB;

-- The migrations that are applied, by sets, and which of its set a release must know at
-- least to work with it: needs rises with a migration that older releases cannot work
-- beside, and otherwise stays. Each migration records itself here.
CREATE TABLE IF NOT EXISTS surehook_migrations (
	set_name   VARBINARY(64) NOT NULL,
	version    INT NOT NULL,
	needs      INT NOT NULL,
	applied_at BIGINT NOT NULL DEFAULT (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
	PRIMARY KEY (set_name, version)
) ENGINE = InnoDB;

INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('dedup', 1, 1)
	ON DUPLICATE KEY UPDATE needs = 1;
