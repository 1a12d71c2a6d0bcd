package postgres_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// If a claim has few events, small bodies are read with them and large ones after the
// claim. If it has many, all bodies are read after it. The result is the same.
func TestBodiesOfFewAndOfMany(t *testing.T) {
	p := newPlace(t)
	s := p.store(t)
	register(t, s, 1, 2, sender.Settings{})
	for _, n := range []int{1, 5, 40, 40, 3, 3, 2} {
		want := map[string][]byte{}
		drafts := make([]sender.Draft, n)
		for i := range drafts {
			d := draft(subscriberID(0))
			d.BodyHead = append([]byte(`{"n":"`+d.ID+`","pad":"`), bytes.Repeat([]byte{'x'}, []int{10, 16 << 10, 40 << 10}[i%3])...)
			d.BodyHead = append(d.BodyHead, `","version":`...)
			drafts[i], want[d.ID] = d, append(bytes.Clone(d.BodyHead), "1"+string(d.BodyTail)...)
		}
		require.NoError(t, publishInTx(t.Context(), s, drafts...))
		var claimed []dispatch.Claimed
		for more := true; more; {
			x, c, err := s.Step(t.Context(), dispatch.ExpandParams{Events: 1024, Deliveries: 2048}, batchOf(nil, 100))
			require.NoError(t, err)
			more = x.More
			claimed = append(claimed, c.Claimed...)
		}
		require.Len(t, claimed, 2*n)
		for i := range claimed {
			require.Equal(t, string(want[claimed[i].Event.ID]), string(claimed[i].Body))
		}
		exchange(t, s, batchOf(claimed, 0))
	}
}
