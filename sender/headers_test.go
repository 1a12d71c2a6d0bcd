package sender_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

func TestHeadersAreRead(t *testing.T) {
	type list = []sender.Header
	for name, c := range map[string]struct {
		kept            sender.Headers
		request, answer list
	}{
		"none":          {"", nil, nil},
		"no answer":     {"A: b\nC: d\n\n", list{{Name: "A", Value: "b"}, {Name: "C", Value: "d"}}, nil},
		"no request":    {"\nA: b\n", nil, list{{Name: "A", Value: "b"}}},
		"both":          {"A: b: c\n\nA: \n: d\n", list{{Name: "A", Value: "b: c"}}, list{{Name: "A"}, {Value: "d"}}},
		"some left out": {"…: 2 more\n\n…: 3 more\n", list{{Name: "…", Value: "2 more"}}, list{{Name: "…", Value: "3 more"}}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.request, c.kept.Request())
			require.Equal(t, c.answer, c.kept.Answer())
		})
	}
}
