package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/memory"
)

// checkedService is a sending service of one check.
type checkedService struct {
	store *memory.Store
	pub   *sender.Publisher[*memory.Tx]
	reg   *sender.Registry[*memory.Tx]
}

func newCheckedService(t *rapid.T) checkedService {
	store, err := memory.New(nil)
	require.NoError(t, err)
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: make([]byte, 32)})
	require.NoError(t, err)
	reg, err := sender.NewRegistry(store, keys, nil)
	require.NoError(t, err)
	pub, err := sender.NewPublisher(store, nil)
	require.NoError(t, err)
	return checkedService{store, pub, reg}
}

var errGivenUp = errors.New("given up on purpose")

// Versions rise by one for each object in the order of the commits, or to what is
// given; what is not newer is refused and changes nothing; and a transaction that is
// rolled back leaves no gap.
func TestPropertyVersions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, versions := newCheckedService(t), map[string]int64{}
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "object")
				given := rapid.Int64Range(-3, 6).Draw(t, "given")
				e := sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: id}, Version: max(0, given)}
				kept := rapid.Bool().Draw(t, "committed")
				var ref sender.Ref
				err := s.store.InTx(context.Background(), func(tx *memory.Tx) (err error) {
					if ref, err = s.pub.PublishTx(context.Background(), tx, e); err == nil && !kept {
						err = errGivenUp
					}
					return err
				})
				var refused *sender.VersionError
				if e.Version != 0 && e.Version <= versions[id] {
					require.ErrorAs(t, err, &refused)
					require.Equal(t, versions[id], refused.Stored)
					return
				}
				want := versions[id] + 1
				if e.Version != 0 {
					want = e.Version
				}
				require.Equal(t, want, ref.Version)
				if !kept {
					require.ErrorIs(t, err, errGivenUp)
					return
				}
				require.NoError(t, err)
				versions[id] = want
			},
		})
	})
}

// An idempotency key in its scope gives the first one's result again for the same
// content, an error for another, and neither publishes anything.
func TestPropertyIdempotencyKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newCheckedService(t)
		type used struct {
			content int
			ref     sender.Ref
		}
		first := map[string]used{}
		events := 0
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				key, scope := rapid.SampledFrom([]string{"", "k", "l"}).Draw(t, "key"), rapid.SampledFrom([]string{"", "s"}).Draw(t, "scope")
				content := rapid.IntRange(0, 2).Draw(t, "content")
				ref, err := s.pub.Publish(context.Background(), sender.Event{
					Type: "thing.changed", Object: sender.Object{Type: "thing", ID: fmt.Sprint(content)}, IdempotencyKey: key, KeyScope: scope,
				})
				was, repeated := first[scope+"/"+key]
				switch {
				case key == "" || !repeated:
					require.NoError(t, err)
					require.False(t, ref.Duplicate)
					events++
					if key != "" {
						first[scope+"/"+key] = used{content, ref}
					}
				case was.content != content:
					require.ErrorIs(t, err, sender.ErrIdempotencyKey)
				default:
					require.NoError(t, err)
					require.True(t, ref.Duplicate)
					require.Equal(t, was.ref.ID, ref.ID)
					require.Equal(t, was.ref.Version, ref.Version)
				}
			},
			"": func(t *rapid.T) {
				list, _, err := s.store.Events(context.Background(), history.EventQuery{Limit: 200})
				require.NoError(t, err)
				require.Len(t, list, min(events, 200))
			},
		})
	})
}

// Pages of whatever size, one behind the other, list each delivery that a filter
// selects once, newest first, and no other.
func TestPropertyPagesListEachOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newCheckedService(t)
		ctx := context.Background()
		_, _, err := s.reg.CreateSubscriber(ctx, sender.NewSubscriber{ID: "sub_a"})
		require.NoError(t, err)
		patterns := [][]string{{"*"}, {"a.*"}, {"b"}, {"a.b", "c.*"}}
		var subscriptions []sender.Subscription
		for range rapid.IntRange(1, 4).Draw(t, "subscriptions") {
			sub, err := s.reg.Subscribe(ctx, sender.NewSubscription{
				Subscriber: "sub_a", URL: "https://example.com/", EventTypes: rapid.SampledFrom(patterns).Draw(t, "patterns"),
			})
			require.NoError(t, err)
			subscriptions = append(subscriptions, sub)
		}
		asked := rapid.SampledFrom([]string{"", "*", "a.*", "b", "c.d"}).Draw(t, "asked")
		query := history.DeliveryQuery{EventType: asked}
		var want []string
		place := map[string]int{} // of the events
		for range rapid.IntRange(0, 25).Draw(t, "events") {
			eventType := rapid.SampledFrom([]string{"a.b", "a.c", "b", "c.d"}).Draw(t, "type")
			ref, err := s.pub.Publish(ctx, sender.Event{Type: eventType, Object: sender.Object{Type: "t", ID: "1"}})
			require.NoError(t, err)
			place[ref.ID] = len(place)
			for _, sub := range subscriptions {
				if sender.Matches(sub, eventType, "", "", "") && query.MatchesEvent(sender.EventInfo{Type: eventType}) {
					want = append(want, ref.ID+" "+sub.ID)
				}
			}
		}
		for {
			x, err := s.store.Expand(ctx, dispatch.ExpandParams{Events: 10, Deliveries: 10})
			require.NoError(t, err)
			if x == (dispatch.Expanded{}) {
				break
			}
		}
		history, err := history.New(s.store, nil)
		require.NoError(t, err)
		var got []string
		last := len(place)
		for calls := 0; ; calls++ {
			require.Less(t, calls, 500, "the pages have no end")
			query.Limit = rapid.IntRange(1, 7).Draw(t, "limit")
			page, next, err := history.Deliveries(ctx, query)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page), query.Limit)
			for _, d := range page {
				got = append(got, d.Event.ID+" "+d.Subscription)
				require.LessOrEqual(t, place[d.Event.ID], last, "the newest come first")
				last = place[d.Event.ID]
			}
			if next == "" {
				break
			}
			query.Cursor = next
		}
		slices.Sort(want)
		slices.Sort(got)
		require.Equal(t, want, got)
	})
}
