package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// versions publishes and expands events about one object, for a subscription with the order
// of objects, and returns their deliveries.
func (c *crowd) versions(n int) (ids []string) {
	c.t.Helper()
	ctx := context.Background()
	drafts := make([]sender.Draft, n)
	for i := range drafts {
		id := newid.New("evt_", time.Now())
		drafts[i] = sender.Draft{ID: id, Type: "a.b", Object: sender.Object{Type: "thing", ID: "a"}, BodyHead: []byte(`{"version":`), BodyTail: []byte(`}`)}
		ids = append(ids, deliveryID(id, 1))
	}
	require.NoError(c.t, c.InTx(ctx, func(tx pgx.Tx) error {
		if err := c.CreateSubscriberTx(ctx, tx, sender.Subscriber{ID: "sub"}, nil); err != nil {
			return err
		}
		s := sender.Subscription{ID: "wsub", Subscriber: "sub", URL: "https://example.com/", EventTypes: []string{"*"}, Settings: sender.Settings{Order: sender.OrderObject, HoldDead: true}}
		if err := c.CreateSubscriptionTx(ctx, tx, s); err != nil {
			return err
		}
		_, err := c.PublishTx(ctx, tx, drafts)
		return err
	}))
	_, _, err := c.Step(ctx, dispatch.ExpandParams{Events: 100, Deliveries: 1000}, dispatch.Batch{})
	require.NoError(c.t, err)
	return ids
}

// Each change of a line costs the same with ten thousand deliveries behind in it.
func TestCostOfALineDoesNotDependOnWhatIsBehind(t *testing.T) {
	const behind, far = 10_000, int64(1 << 40)
	c, ctx := newEmptyCrowd(t), context.Background()
	ids := c.versions(8)
	var claimed []dispatch.Claimed
	step := func(decided sender.Status) {
		b := dispatch.Batch{Decide: func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
			d := dispatch.Policy{}.Decide(l, h, r, now)
			if decided == sender.StatusDeadLettered {
				d.Status = decided
			}
			return d
		}}
		b.Claim.Lease = time.Minute
		for lane := range b.Claim.Lanes {
			b.Claim.Lanes[lane] = dispatch.LaneParams{Slots: 9, PerSubscriber: 9, PerSubscription: 9}
		}
		for _, cl := range claimed {
			r := dispatch.Result{Key: cl.Key, Token: cl.Token, Number: cl.Number, StartedAt: cl.At, StatusCode: 204}
			if decided != sender.StatusDelivered {
				r.StatusCode, r.Class = 500, sender.ClassStatus
			}
			b.Results = append(b.Results, r)
		}
		_, got, err := c.Step(ctx, dispatch.ExpandParams{}, b)
		require.NoError(t, err)
		claimed = got.Claimed
	}
	holds := func(event string) {
		t.Helper()
		require.Len(t, claimed, 1)
		require.Equal(t, event, deliveryID(claimed[0].Event.ID, 1))
	}
	again := func(id string) { require.NoError(t, c.Redeliver(ctx, id, time.Time{})) }
	costs := func(at []string) (all []int) {
		step(sender.StatusDelivered) // the results of before, if there are some
		for _, do := range []func(){
			func() { holds(at[0]); step(sender.StatusDelivered); holds(at[1]) },
			func() { again(at[0]) }, // goes behind, and is before what is in flight
			func() { step(sender.StatusAwaitingRetry); holds(at[0]) },
			func() { step(sender.StatusDelivered); require.Empty(t, claimed) }, // at[1] waits for its retry
			func() { again(at[1]); step(""); holds(at[1]) },
			func() { step(sender.StatusDeadLettered); require.Empty(t, claimed) },
			func() { require.NoError(t, c.PassOver(ctx, at[1], time.Time{})) },
			func() { step(""); holds(at[2]) },
			func() { step(sender.StatusAwaitingRetry); require.Empty(t, claimed) },
			func() { again(at[2]); step(""); holds(at[2]) },
		} {
			before := c.blocks()
			do()
			all = append(all, c.blocks()-before)
		}
		return all
	}
	few := costs(ids[:4])
	c.exec(fmt.Sprintf(`INSERT INTO {}.surehook_lines (subscription, object, event, place, no, notice, bytes, due, number, tries, stood, epoch, replay, rank, single, spared)
		SELECT 1, 'thing a', %d + i, 1, %d + i, false, 380, now(), 0, 0, 0, 0, 0, 0, false, false FROM generate_series(1, %d) i`, far, far, behind))
	c.exec(`UPDATE {}.surehook_heads SET behind = behind + $1, lined = lined + $1`, behind)
	step(sender.StatusDelivered)
	many := costs(ids[4:])
	t.Logf("blocks of each step: %v, and with many behind %v", few, many)
	for i := range few {
		require.LessOrEqual(t, many[i], 2*few[i], "step %d", i)
	}
}
