package traceparent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/traceparent"
)

func TestValid(t *testing.T) {
	for text, want := range map[string]bool{
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01": true,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00": true,
		"":         false,
		"no trace": false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-extra": false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0":        false,
		"01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01":       false,
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01":       false,
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01":       false,
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01":       false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01":       false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-\r\n":     false,
		"00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01":       false,
		"00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01":       false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\x00":   false,
		" 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0":       false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-zz":       false,
	} {
		require.Equal(t, want, traceparent.Valid(text), "%q", text)
	}
}
