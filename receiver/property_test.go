package receiver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/receiver"
)

// An event goes to the route of its exact type, otherwise to the route of the longest
// prefix, otherwise to the route for all types, and otherwise nowhere.
func TestPropertyRouterFindsTheNearest(t *testing.T) {
	rcv := newReceiver(t, func(_ context.Context, fn func(struct{}) error) error { return fn(struct{}{}) }, noDatabase{}, nil)
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"a", "b", "ab"})
		words := func(label string, least int) string {
			return strings.Join(rapid.SliceOfN(word, least, 4).Draw(t, label), ".")
		}
		hit := ""
		patterns := map[string]bool{}
		var routes []receiver.Route[struct{}]
		for range rapid.IntRange(1, 6).Draw(t, "routes") {
			pattern := words("pattern", 1) + rapid.SampledFrom([]string{"", "", ".*"}).Draw(t, "suffix")
			if rapid.IntRange(0, 9).Draw(t, "for all") == 0 {
				pattern = "*"
			}
			if patterns[pattern] {
				continue
			}
			patterns[pattern] = true
			routes = append(routes, receiver.OnState(pattern, func(context.Context, struct{}, receiver.Typed[json.RawMessage]) error {
				hit = pattern
				return nil
			}))
		}
		work, err := receiver.Router(routes...)
		require.NoError(t, err)
		for range 5 {
			eventType := words("type", 1)
			want := ""
			switch {
			case patterns[eventType]:
				want = eventType
			default:
				if patterns["*"] {
					want = "*"
				}
				parts := strings.Split(eventType, ".")
				for n := 1; n < len(parts); n++ {
					if p := strings.Join(parts[:n], ".") + ".*"; patterns[p] {
						want = p
					}
				}
			}
			hit = ""
			body := fmt.Appendf(nil, `{"id":"evt_1","type":%q,"object":{"type":"thing","id":"1"},"version":1,"data":{}}`, eventType)
			res, err := rcv.Apply(context.Background(), receiver.Trusted[struct{}]{Body: body}, work)
			require.NoError(t, err)
			require.Equal(t, want, hit, "%s among %v", eventType, patterns)
			require.Equal(t, want == "", res == receiver.Ignored)
		}
	})
}
