-- An event that is addressed to one subscription can be posted to a URL of its own; '':
-- to the subscription's.
ALTER TABLE surehook_events ADD COLUMN url TEXT NOT NULL DEFAULT '';

-- 1: it stands for the callback URLs of one origin, which is its url.
ALTER TABLE surehook_subscriptions ADD COLUMN implicit INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX surehook_subscriptions_implicit ON surehook_subscriptions (subscriber, url)
	WHERE implicit = 1 AND status IN ('active', 'paused', 'disabled');
