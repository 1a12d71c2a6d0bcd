package inbox_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/inbox"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// The inboxes of two senders share the tables, and each leaves the other's events alone. An
// inbox with several scopes does so, too. It takes events that were recorded before OneScope was
// kept, as the inbox of their scope does: nothing tells whose they are.
func twoSenders[Tx any](t *testing.T, open base[Tx]) {
	in := func(scope string, under receiver.Config) *bed[Tx] {
		return newBedIn(t, open, scope, under, receiver.Fact(open.effect), inbox.Config{Workers: 1})
	}
	billing, shop := in("billing", receiver.Config{}), in("shop", receiver.Config{})
	ev := receivertest.NewEvent("thing", "a", 1)
	require.Equal(t, receiver.Recorded, billing.post(ev).Result)
	require.Equal(t, receiver.Recorded, shop.post(ev).Result)
	shop.run(func() bool { return shop.ends.of(receiver.Applied) == 1 })
	require.Zero(t, shop.status())
	require.Equal(t, 1, billing.status().Events)
	require.Equal(t, []string{"billing: 0"}, column(t, open.db, "SELECT scope || ': ' || attempt FROM surehook_inbox_events"))

	many := in("", receiver.Config{ScopeOf: func(signing.Verified) string { return "tenant" }})
	require.Equal(t, receiver.Recorded, many.post(ev).Result)
	require.Equal(t, 1, many.status().Events)
	many.run(func() bool { return many.ends.of(receiver.Applied) == 1 })
	require.Zero(t, many.status())
	require.Equal(t, []string{"billing: 0"}, column(t, open.db, "SELECT scope || ': ' || attempt FROM surehook_inbox_events"))

	_, err := open.db.Exec("UPDATE surehook_inbox_lines SET one_scope = false")
	require.NoError(t, err)
	require.Equal(t, 1, billing.status().Events)
	many.run(func() bool { return many.ends.of(receiver.Applied) == 2 })
	require.Equal(t, []string{ev.ID, ev.ID, ev.ID}, open.effects(t))
}

// Events whose inbox has gone stay, and the log of another one tells of them.
func nobodyClaims[Tx any](t *testing.T, open base[Tx]) {
	gone := newBedIn(t, open, "gone", receiver.Config{}, receiver.Fact(open.effect), inbox.Config{})
	gone.post(receivertest.NewEvent("thing", "a", 1))
	for scope, under := range map[string]receiver.Config{"shop": {}, "": {ScopeOf: func(signing.Verified) string { return "tenant" }}} {
		for _, late := range []bool{false, true} {
			said := make(records, 100)
			b := newBedIn(t, open, scope, under, receiver.Fact(open.effect), inbox.Config{Logger: slog.New(slog.NewTextHandler(said, nil))})
			if !late {
				b.post(receivertest.NewEvent("thing", "a", 1))
				b.run(func() bool { return b.ends.of(receiver.Applied) == 1 })
				require.Empty(t, said, "it may be claimed yet")
				continue
			}
			_, err := open.db.Exec("UPDATE surehook_inbox_lines SET due_at = due_at - " + open.hours)
			require.NoError(t, err)
			b.run(func() bool { return len(said) > 0 })
			require.Contains(t, <-said, "events=1 scope=gone")
			_, err = open.db.Exec("UPDATE surehook_inbox_lines SET due_at = due_at + " + open.hours)
			require.NoError(t, err)
		}
	}
	require.Equal(t, 1, gone.status().Events)
}

// Events that were recorded while the clock was ahead wait, and the status tells why.
func clockWasAhead[Tx any](t *testing.T, open base[Tx]) {
	b := newBed(t, open, nil, inbox.Config{})
	b.post(receivertest.NewEvent("thing", "a", 1))
	for _, column := range []string{"events SET recorded_at = recorded_at", "lines SET due_at = due_at"} {
		_, err := open.db.Exec("UPDATE surehook_inbox_" + column + " + " + open.hours)
		require.NoError(t, err)
	}
	b.post(receivertest.NewEvent("thing", "b", 1))
	s := b.status()
	require.Equal(t, []int{2, 1}, []int{s.Events, s.Ahead})
	b.run(func() bool { return b.ends.of(receiver.Applied) == 1 })
	s = b.status()
	require.Equal(t, []int{1, 1}, []int{s.Events, s.Ahead})
}

// records is a log, each record by itself.
type records chan string

func (r records) Write(p []byte) (int, error) {
	r <- string(p)
	return len(p), nil
}
