package main

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever is asked can answer by Ctrl-C, too.
func TestConfirm(t *testing.T) {
	t.Parallel()
	ask := func(ctx context.Context, in io.Reader) (said string, err error) {
		var problems bytes.Buffer
		err = (&replayOptions{}).confirm(ctx, &terminal{in: in, problems: &problems, asks: true}, 1)
		return problems.String(), err
	}
	for answer, sends := range map[string]bool{"y\n": true, " YES \n": true, "n\n": false, "\n": false, "": false} {
		said, err := ask(t.Context(), bytes.NewBufferString(answer))
		require.Equal(t, sends, err == nil, "%q", answer)
		require.Contains(t, said, "send 1 delivery again?")
	}
	in, typing := io.Pipe() // nobody types
	defer func() { require.NoError(t, typing.Close()) }()
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	_, err := ask(interrupted, in)
	require.True(t, isNo(err))
}
