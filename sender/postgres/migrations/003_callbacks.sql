-- An event that is addressed to one subscription can be posted to a URL of its own; '':
-- to the subscription's.
ALTER TABLE surehook_events ADD COLUMN url text NOT NULL DEFAULT '';

-- It stands for the callback URLs of one origin, which is its url.
ALTER TABLE surehook_subscriptions ADD COLUMN implicit boolean NOT NULL DEFAULT false;
CREATE UNIQUE INDEX surehook_subscriptions_implicit ON surehook_subscriptions (subscriber, url)
	WHERE implicit AND status IN ('active', 'paused', 'disabled');
