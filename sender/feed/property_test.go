package feed_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/memory"
)

// A viewer who reads from cursor to cursor, in pages of any size and while others publish,
// sees each event that they may see once, in the same order as all other viewers.
func TestPropertyFeedShowsEachOnceInOneOrder(t *testing.T) {
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		b := newBed(outer, nil, "sub_a", "sub_b")
		viewers := []string{"sub_a", "sub_b", sender.Operator}
		may := map[string][]string{}
		seen, after := map[string][]string{}, map[string]string{}
		read := func(t *rapid.T, viewer string, limit int) int {
			p := b.page(feed.Query{Viewer: viewer, After: after[viewer], Limit: limit})
			require.LessOrEqual(t, len(p.Events), limit)
			for _, e := range p.Events {
				seen[viewer] = append(seen[viewer], e.ID)
			}
			after[viewer] = p.Next
			return len(p.Events)
		}
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				to := rapid.SampledFrom([]string{"", "sub_a", "sub_b"}).Draw(t, "to")
				id := b.publish(to)
				for _, viewer := range viewers {
					if to == "" || to == viewer || viewer == sender.Operator {
						may[viewer] = append(may[viewer], id)
					}
				}
			},
			"publish and roll back": func(t *rapid.T) {
				err := b.store.InTx(outer.Context(), func(tx *memory.Tx) error {
					_, err := b.pub.PublishTx(outer.Context(), tx, sender.Event{Type: "a", Object: sender.Object{Type: "t", ID: "1"}})
					require.NoError(t, err)
					return errBroken
				})
				require.ErrorIs(t, err, errBroken)
			},
			"sequence": func(t *rapid.T) {
				_, _, err := b.store.Step(outer.Context(), dispatch.ExpandParams{Events: rapid.IntRange(1, 5).Draw(t, "events"), Deliveries: 10}, dispatch.Batch{})
				require.NoError(t, err)
			},
			"read": func(t *rapid.T) {
				read(t, rapid.SampledFrom(viewers).Draw(t, "viewer"), rapid.IntRange(1, 4).Draw(t, "limit"))
			},
		})
		for range len(may[sender.Operator]) + 1 {
			_, _, err := b.store.Step(outer.Context(), dispatch.ExpandParams{Events: 100, Deliveries: 100}, dispatch.Batch{})
			require.NoError(t, err)
		}
		for _, viewer := range viewers {
			for read(t, viewer, 3) > 0 {
			}
			require.Equal(t, may[viewer], seen[viewer])
		}
	})
}
