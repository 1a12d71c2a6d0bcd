package feed

import (
	"encoding/base64"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

func TestCursor(t *testing.T) {
	for _, c := range []cursor{{}, {1, 0}, {0, 1}, {127, 128}, {math.MaxInt64, math.MaxInt64}} {
		text := c.text()
		require.LessOrEqual(t, len(text), maxCursor)
		got, err := parseCursor(text)
		require.NoError(t, err)
		require.Equal(t, c, got)
		for i := range text { // a mistyped digit, a lost character, additional text behind it
			for _, wrong := range []string{text[:i] + text[i+1:], text[:i], text[i+1:], text + text[:i+1], text[:i] + string(text[i]^1) + text[i+1:]} {
				if wrong == text {
					continue
				}
				_, err := parseCursor(wrong)
				require.ErrorIs(t, err, sender.ErrInvalid, wrong)
			}
		}
	}
}

func TestNoCursor(t *testing.T) {
	other := base64.RawURLEncoding.EncodeToString([]byte{2, 0, 0, 0, 0, 0, 0})
	for _, text := range []string{"", "0", "1", " ", "null", "=", "AQ", other, strings.Repeat("A", 1<<20), "\x00", "🔑", cursor{}.text() + "=", cursor{}.text() + "\n", cursor{-1, 0}.text(), cursor{0, -1}.text()} {
		_, err := parseCursor(text)
		require.ErrorIs(t, err, sender.ErrInvalid)
	}
}

func FuzzCursor(f *testing.F) {
	for _, c := range []cursor{{}, {1, 2}, {math.MaxInt64, 3}} {
		f.Add(c.text())
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCursor(text)
		if err != nil {
			require.ErrorIs(t, err, sender.ErrInvalid)
			return
		}
		require.Equal(t, text, c.text(), "each cursor has one text")
		require.GreaterOrEqual(t, c.position, int64(0))
		require.GreaterOrEqual(t, c.pruned, int64(0))
	})
}
