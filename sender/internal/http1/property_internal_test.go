package http1

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The pool behaves like a plain list of its connections.
func TestPoolIsAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p pool
		var list []*conn // the oldest first
		now := time.Unix(0, 0)
		drop := func(out []*conn, upTo int) {
			require.True(t, slices.Equal(list[:upTo], out), "%d of %d", len(out), len(list))
			list = list[upTo:]
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "after")) * time.Second)
				until := now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "keeps")) * time.Second)
				cn := &conn{to: origin{"http", rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "host")}, until: until}
				p.put(cn)
				list = append(list, cn)
			},
			"take": func(t *rapid.T) {
				to := origin{"http", rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "host")}
				var want *conn
				for i, cn := range slices.Backward(list) {
					if cn.to == to {
						want, list = cn, slices.Delete(slices.Clone(list), i, i+1)
						break
					}
				}
				require.Same(t, want, p.take(to))
			},
			"remove oldest": func(t *rapid.T) {
				n := rapid.IntRange(-1, 3).Draw(t, "n")
				drop(p.removeOldest(n), max(0, min(n, len(list))))
			},
			"remove until": func(t *rapid.T) {
				var out, rest []*conn
				for _, cn := range list {
					if cn.until.After(now) {
						rest = append(rest, cn)
					} else {
						out = append(out, cn)
					}
				}
				require.True(t, slices.Equal(out, p.removeUntil(now)))
				list = rest
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(list), p.n)
				origins := map[origin]bool{}
				for _, cn := range list {
					origins[cn.to] = true
				}
				require.Len(t, p.last, len(origins)) // the pool keeps nothing of an origin without connections
			},
		})
	})
}
