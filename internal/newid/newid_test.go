package newid_test

import (
	"encoding/base32"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/internal/newid"
)

func TestNew(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	id := newid.New("evt_", at)
	require.NoError(t, ident.EventID(id))
	require.Len(t, id, 30)
	require.NotEqual(t, id, newid.New("evt_", at))
	require.Less(t, id, newid.New("evt_", at.Add(time.Millisecond)))

	u, err := base32.HexEncoding.WithPadding(base32.NoPadding).DecodeString(upper(id[4:]))
	require.NoError(t, err)
	require.Equal(t, byte(0x70), u[6]&0xf0, "version 7")
	require.Equal(t, byte(0x80), u[8]&0xc0, "variant 10")
	ms := int64(0)
	for _, b := range u[:6] {
		ms = ms<<8 | int64(b)
	}
	require.Equal(t, at.UnixMilli(), ms)

	require.Equal(t, at, newid.Time(id))
	for _, not := range []string{"", "evt_1", "sec_" + "zzzzzzzzzzzzzzzzzzzzzzzzzz", "evt_00000000000000000000000000"} {
		require.Zero(t, newid.Time(not), not)
	}
}

// An id that follows from texts is the same each time, whoever asks, and another one from texts
// that are parted in another way.
func TestOf(t *testing.T) {
	id := newid.Of("rpl_", "ab", "c")
	require.NoError(t, ident.EventID(id))
	require.Len(t, id, 30)
	require.Equal(t, id, newid.Of("rpl_", "ab", "c"))
	for _, other := range [][]string{{"a", "bc"}, {"abc"}, {"ab", "c", ""}, {"ab"}, nil} {
		require.NotEqual(t, id, newid.Of("rpl_", other...), "%q", other)
	}
}

func upper(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'a' {
			b[i] = c - 32
		}
	}
	return string(b)
}
