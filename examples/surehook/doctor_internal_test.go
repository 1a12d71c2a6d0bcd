package main

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/replay"
)

// A forgotten transaction is found also while it is idle, and after the first phase of its
// commit.
func TestOldestTransaction(t *testing.T) {
	t.Parallel()
	pgtest.DSN(t) // skips without an installed server
	server, err := pgtest.Start(pgtest.Options{Settings: map[string]string{"max_prepared_transactions": "1"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	db, err := sql.Open("pgx", server.DSN())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	oldest := func() time.Duration {
		age, err := oldestTransaction(t.Context(), db)
		require.NoError(t, err)
		return age
	}
	require.Zero(t, oldest())
	forgotten, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer forgotten.Close()
	_, err = forgotten.ExecContext(t.Context(), "BEGIN; CREATE TABLE a ()")
	require.NoError(t, err)
	require.Positive(t, oldest())
	_, err = forgotten.ExecContext(t.Context(), "PREPARE TRANSACTION 'a'")
	require.NoError(t, err)
	require.Positive(t, oldest())
	_, err = forgotten.ExecContext(t.Context(), "COMMIT PREPARED 'a'")
	require.NoError(t, err)
	require.Zero(t, oldest())
}

// A delivery that is due may wait for its first attempt or for a later one.
func TestJudgeWork(t *testing.T) {
	now := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
	found := &findings{}
	judgeWork(&history.Counts{At: now, OldestDue: now.Add(-6 * time.Minute), Live: 1}, 0, found)
	require.Equal(t, []finding{{
		"work", warn, "a delivery has been due for 6m0s: no dispatcher runs, or its endpoint hangs",
		"surehook deliveries -status pending, or -status awaiting_retry, and surehook why ID",
	}}, found.all)

	said := func(c history.Counts, again int64) (all []string) {
		found := &findings{}
		c.At = now
		judgeWork(&c, again, found)
		for _, f := range found.all {
			all = append(all, f.Status+": "+f.Detail)
		}
		return all
	}
	require.Equal(t, []string{
		"ok: 1 delivery live, 0 held, 1 dead-lettered", "warn: 1 delivery was given up", "warn: 1 is not acknowledged",
	}, said(history.Counts{Live: 1, DeadLettered: 1, Notices: 1}, 1))
	require.Equal(t, []string{
		"ok: 0 deliveries live, 2 held, 3 dead-lettered", "warn: 1 subscription is disabled, and 0 paused: 2 deliveries wait for a resume",
		"warn: 3 deliveries were given up; 1 can be sent again, and of the others the subscription is gone, or the body, or the event is too old", "warn: 1000 or more are not acknowledged",
	}, said(history.Counts{
		Held: 2, DeadLettered: 3, Notices: history.MaxCountedNotices, Subscriptions: map[sender.SubscriptionStatus]int64{sender.SubscriptionDisabled: 1},
	}, 1))
	require.Contains(t, said(history.Counts{DeadLettered: 3}, 0), "ok: 3 deliveries were given up, and none can be sent again: the subscriptions are gone, or the bodies, or the events are too old")
	require.Contains(t, said(history.Counts{DeadLettered: 90_000}, replay.MaxCounted), "warn: 90000 deliveries were given up", "no more are counted")
}

// A standby answers everything that doctor asks, and a service that has its URL does nothing.
func TestJudgeServer(t *testing.T) {
	for _, c := range []struct {
		version int
		standby bool
		want    string
	}{
		{150020, false, "ok: PostgreSQL 15"},
		{180001, true, "warn: PostgreSQL 18, a standby, which takes no writes: a service with this URL publishes and sends nothing"},
		{140001, true, "fail: PostgreSQL 14"},
	} {
		found := &findings{}
		judgeServer(found, c.version, c.standby)
		require.Equal(t, c.want, found.all[0].Status+": "+found.all[0].Detail)
	}
}

// A warning comes while there are still some.
func TestJudgeConnections(t *testing.T) {
	for _, c := range []struct {
		used, most int64
		status     string
	}{{7, 97, ok}, {87, 97, ok}, {88, 97, warn}, {97, 97, warn}, {3, 12, ok}, {8, 12, warn}} {
		found := &findings{}
		judgeConnections(c.used, c.most, found)
		require.Equal(t, c.status, found.all[0].Status, "%v", c)
	}
}

// The doctor warns of a network's drive and of a large log, and says nothing without them.
func TestJudgeFile(t *testing.T) {
	t.Parallel()
	found := &findings{}
	judgeDrive("", found)
	judgeLog("a.db-wal", largeLog-1, found)
	require.Empty(t, found.all)
	judgeDrive("NFS", found)
	judgeLog("a.db-wal", 2<<30, found)
	require.Len(t, found.all, 2)
	require.Equal(t, warn, found.all[0].Status)
	require.Contains(t, found.all[0].Detail, "(NFS)")
	require.Equal(t, warn, found.all[1].Status)
	require.Contains(t, found.all[1].Detail, "a.db-wal has 2048 MiB")
}

// A subscription is a twin if it would get the same events at the same URL as an older one.
func TestTwins(t *testing.T) {
	t.Parallel()
	store, err := memory.New(nil)
	require.NoError(t, err)
	hooks, err := surehook.NewSender(store, sender.SealingKey{ID: "1", Key: make([]byte, 32)}, nil)
	require.NoError(t, err)
	for _, id := range []string{"acme", "umbrella"} {
		_, _, err = hooks.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: id})
		require.NoError(t, err)
	}
	const url, other = "https://customer.example/webhooks", "https://customer.example/other"
	for i, n := range []sender.NewSubscription{
		{Subscriber: "acme", URL: url, EventTypes: []string{"a.*", "b"}},
		{Subscriber: "acme", URL: url, EventTypes: []string{"b"}},
		{Subscriber: "acme", URL: other, EventTypes: []string{"a.*", "b"}},
		{Subscriber: "umbrella", URL: url, EventTypes: []string{"a.*", "b"}},
		{Subscriber: "acme", URL: url, EventTypes: []string{"a.*", "b"}, Filter: `{"data.paid": true}`},
		{Subscriber: "acme", URL: url, EventTypes: []string{"b", "a.*"}}, // the twin
		{Subscriber: "acme", URL: url, EventTypes: []string{"b", "a.*"}}, // is paused: it gets nothing
	} {
		n.ID = fmt.Sprint("wsub_", i)
		_, err := hooks.Registry.Subscribe(t.Context(), n)
		require.NoError(t, err)
	}
	require.NoError(t, hooks.Registry.Pause(t.Context(), "wsub_6"))
	list, _, err := hooks.History.Subscriptions(t.Context(), sender.SubscriptionQuery{})
	require.NoError(t, err)
	first := map[string]string{}
	pairs := append(pair(first, list[:3]), pair(first, list[3:])...) // of two pages
	require.Equal(t, []twins{{"wsub_0", "wsub_5"}}, pairs)
	found := &findings{}
	judgeTwins(pairs, found)
	require.Equal(t, "1 subscription asks for the same as an older one of its subscriber, and gets each event once more, such as wsub_5 beside wsub_0", found.all[0].Detail)
	judgeTwins(nil, found)
	require.Len(t, found.all, 1)
}
