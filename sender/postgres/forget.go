package postgres

const (
	// A deleted subscriber whose subscriptions are all swept has nothing to be signed.
	// It gets no other one, so it stays so.
	isForgotten = `o.deleted = 1 AND (SELECT s.no FROM surehook_subscriptions s WHERE s.subscriber = o.no AND s.status <> 'swept' LIMIT 1) IS NULL`
	// forgetSubscribers destroys the secrets of those, but for some that callers have
	// locked.
	forgetSubscribers = `WITH f AS MATERIALIZED (SELECT o.no FROM surehook_subscribers o WHERE ` + isForgotten + ` ORDER BY o.no LIMIT 100 FOR UPDATE SKIP LOCKED),
		u AS (UPDATE surehook_subscribers o SET deleted = 2, keyring_version = keyring_version + 1 FROM f WHERE o.no = f.no)
		DELETE FROM surehook_secrets k USING f WHERE k.subscriber = f.no`
)
