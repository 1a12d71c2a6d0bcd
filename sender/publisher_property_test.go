package sender_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/memory"
)

// newStore has one Publisher.
func newStore(t *rapid.T) (*memory.Store, *sender.Publisher[*memory.Tx]) {
	store, err := memory.New(nil)
	require.NoError(t, err)
	pub, err := sender.NewPublisher(store, nil)
	require.NoError(t, err)
	return store, pub
}

var errGivenUp = errors.New("given up on purpose")

// Versions rise by one for each object in the order of the commits, or to a given version.
// A version that is not newer is refused and changes nothing. A transaction that is rolled
// back leaves no gap.
func TestPropertyVersions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, pub := newStore(t)
		versions := map[string]int64{}
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "object")
				given := rapid.Int64Range(-3, 6).Draw(t, "given")
				e := sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: id}, Version: max(0, given)}
				kept := rapid.Bool().Draw(t, "committed")
				var ref sender.Ref
				err := store.InTx(context.Background(), func(tx *memory.Tx) (err error) {
					if ref, err = pub.PublishTx(context.Background(), tx, e); err == nil && !kept {
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

// An idempotency key in its scope gives the first publish's result again for the same
// content, and an error for other content. Neither publishes anything.
func TestPropertyIdempotencyKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, pub := newStore(t)
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
				ref, err := pub.Publish(context.Background(), sender.Event{
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
				list, _, err := store.Events(context.Background(), history.EventQuery{Limit: 200})
				require.NoError(t, err)
				require.Len(t, list, min(events, 200))
			},
		})
	})
}
