package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/replay"
)

// ended makes a subscriber with some subscriptions, and ends some deliveries of each.
func (p *place) ended(t testing.TB, subscriptions, each int, class sender.Class) {
	t.Helper()
	s := p.store(t)
	register(t, s, 1, subscriptions, sender.Settings{})
	publish(t, s, each, 1)
	require.Equal(t, subscriptions*each, expandAll(t, s))
	for ended := 0; ended < subscriptions*each; {
		claimed := exchange(t, s, batchOf(nil, 1000)).Claimed
		require.NotEmpty(t, claimed)
		b := batchOf(claimed, 0)
		b.Decide = endNow
		for i := range b.Results {
			b.Results[i].Class = class
		}
		exchange(t, s, b)
		ended += len(claimed)
	}
}

// A replay reads the deliveries of all of a subscriber's subscriptions by one statement, and
// looks at few more than it may admit.
func TestCostOfAReplay(t *testing.T) {
	const subscriptions, each = 150, 8
	for status, class := range map[sender.Status]sender.Class{sender.StatusDeadLettered: sender.ClassStatus, sender.StatusDelivered: sender.ClassNone} {
		t.Run(string(status), func(t *testing.T) {
			p := newPlace(t)
			p.ended(t, subscriptions, each, class)
			s, sent := p.countedStore(t)
			create := func(f replay.Filter, rate float64) replay.Replay {
				f.Status = status
				r, err := s.CreateReplay(t.Context(), replay.Replay{Filter: f, Rate: rate}, replay.Bounds{Look: replay.MaxCounted})
				require.NoError(t, err)
				return r
			}
			step := func(limit, admits int) (statements, rows int64) {
				statements, rows = sent.statements.Load(), sent.rows.Load()
				step, err := s.StepReplays(t.Context(), limit, nil)
				require.NoError(t, err)
				require.Equal(t, admits, step.Admitted)
				return sent.statements.Load() - statements, sent.rows.Load() - rows
			}
			owned := replay.Filter{Subscriber: subscriberID(0)}
			before := sent.statements.Load()
			r := create(owned, 0)
			require.EqualValues(t, subscriptions*each, r.Matched)
			statements := sent.statements.Load() - before
			t.Log("statements of CreateReplay:", statements)
			require.Less(t, statements, int64(80))
			statements, _ = step(2, 2)
			t.Log("statements of a step:", statements)
			require.Less(t, statements, int64(25))
			_, err := s.SetReplayStatus(t.Context(), r.ID, replay.Cancelled)
			require.NoError(t, err)
			for name, f := range map[string]replay.Filter{"of a subscriber": owned, "of all": {}} {
				r := create(f, 1)
				_, rows := step(100, 1)
				t.Logf("rows of a step that admits one, %s: %d", name, rows)
				require.Less(t, rows, int64(300), name)
				_, err := s.SetReplayStatus(t.Context(), r.ID, replay.Cancelled)
				require.NoError(t, err)
			}
		})
	}
}

// A step does not make a trip for each delivery that comes into a line: it holds the locks of
// the subscriptions meanwhile.
func TestTripsOfAReplayInOrder(t *testing.T) {
	const events, admits = 60, 50
	for _, order := range []sender.Order{sender.OrderObject, sender.OrderLatest} {
		t.Run(string(order), func(t *testing.T) {
			p := newPlace(t)
			p.ended(t, 1, events, sender.ClassStatus)
			p.exec(t, `UPDATE {}.surehook_subscriptions SET settings = $1, version = version + 1`, `{"Order":"`+string(order)+`"}`)
			s, sent := p.countedStore(t)
			_, err := s.CreateReplay(t.Context(), replay.Replay{Filter: replay.Filter{Status: sender.StatusDeadLettered}}, replay.Bounds{})
			require.NoError(t, err)
			trips := sent.trips.Load()
			step, err := s.StepReplays(t.Context(), admits, nil)
			require.NoError(t, err)
			require.Equal(t, admits, step.Admitted)
			trips = sent.trips.Load() - trips
			t.Log("trips of a step:", trips)
			require.Less(t, trips, int64(25))
			require.Equal(t, admits, p.count(t, `SELECT count(*) FROM {}.surehook_lines`))
			p.linedUp(t)
		})
	}
}
