package sender

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ring is a short notation of a keyring: "a b" are two secrets without bounds, "a>5" ends 5
// h after noon, "2>a" begins 2 h after noon.
func ring(text string) SealedKeyring {
	k := SealedKeyring{Subscriber: "sub_a", Version: 7}
	for field := range strings.FieldsSeq(text) {
		k.Secrets = append(k.Secrets, short(field))
	}
	return k
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func hours(text string) time.Time {
	d, err := time.ParseDuration(text + "h")
	if err != nil {
		panic(err)
	}
	return noon.Add(d)
}

func short(field string) (s SealedSecret) {
	parts := strings.Split(field, ">")
	if parts[0] == "" || strings.ContainsAny(parts[0][:1], "-0123456789") {
		s.NotBefore, parts = hours(parts[0]), parts[1:]
	}
	s.ID = parts[0]
	if len(parts) > 1 {
		s.NotAfter = hours(parts[1])
	}
	return s
}

func TestRotated(t *testing.T) {
	for _, c := range []struct {
		name, before string
		overlap      time.Duration
		after, until string
	}{
		{"the first time", "a", 24 * time.Hour, "a>24 new", "24"},
		{"twice inside an overlap: an earlier end stays", "a>20 b", 24 * time.Hour, "a>20 b>24 new", "24"},
		{"with a shorter overlap than the one before: what would end later ends with it", "a>20 b", time.Hour, "a>1 b>1 new", "1"},
		{"what has ended is dropped", "a>-1 b>3 c", 24 * time.Hour, "b>3 c>24 new", "24"},
		{"the end itself belongs to the time", "a>0 b", 24 * time.Hour, "a>0 b>24 new", "24"},
		{"the new one is the newest, whatever the others' beginnings are", "-1>b 2>c>400 -2>a", 24 * time.Hour, "a>24 b>24 c>24 new", "24"},
		{"all have ended", "a>-1 b>-2", 24 * time.Hour, "new", ""},
		{"the newest ends before the overlap does", "a b>5", 24 * time.Hour, "a>24 b>5 new", "5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := ring(c.before)
			given := slices.Clone(before.Secrets)
			secrets, until, err := rotated(before, SealedSecret{ID: "new"}, c.overlap, noon)
			require.NoError(t, err)
			require.Equal(t, ring(c.after).Secrets, secrets)
			if c.until == "" {
				require.Zero(t, until)
			} else {
				require.Equal(t, hours(c.until), until)
			}
			require.Equal(t, given, before.Secrets, "what was given is not changed")
		})
	}
	_, _, err := rotated(ring("a>9 b>9 c>9 d"), SealedSecret{ID: "new"}, time.Hour, noon)
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, `4 secrets of subscriber "sub_a" are valid`)
	_, _, err = rotated(ring("a>-9 b>9 c>9 d"), SealedSecret{ID: "new"}, time.Hour, noon)
	require.NoError(t, err, "what has ended does not count")
}

func TestRetired(t *testing.T) {
	for before, after := range map[string]string{
		"a": "a", "a>9 b>9 c": "c", "a b>-1": "a", "-1>b -2>a": "-1>b", "a>-1 b>-2": "a>-1 b>-2", "": "",
	} {
		require.Equal(t, ring(after).Secrets, retired(ring(before), noon), "of %q", before)
	}
}
