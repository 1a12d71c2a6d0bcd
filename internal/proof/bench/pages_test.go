package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// With 60,000 deliveries each page of the console and of the portal reads no more rows than
// with ten million, up to a bound for each.
func TestPagesReadFewRows(t *testing.T) {
	t.Parallel()
	b, err := newBench(options{quick: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.close()) })
	s, err := openServed(t.Context(), b, 60_000)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.close()) }()
	require.Greater(t, len(s.pages), 60)
	for _, p := range s.pages {
		c, err := s.get(t.Context(), p)
		require.NoError(t, err)
		require.LessOrEqual(t, c.rows, p.most, s.name(p))
		t.Logf("%-80s %6d rows of %6d, %6d buffers, %6.1f ms", s.name(p), c.rows, p.most, c.blocks, c.took.Seconds()*1e3)
	}
}
