package sender

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
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
		{"signs later", "a", 24 * time.Hour, "a>24 12>new", "24"},
		{"signs later, twice: the first still waits", "a>24 2>b", 24 * time.Hour, "a>24 2>b>24 12>new", "24"},
		{"signs earlier than one that waits, which signs never", "a>24 13>b", 24 * time.Hour, "a>24 12>b>24 12>new", "24"},
		{"signs at once before one that waits", "a>24 13>b", 24 * time.Hour, "a>24 b>24 new", "24"},
		{"at once, with an overlap that ends before one that waits would have begun", "a>24 13>b", time.Hour, "a>1 b>1 new", "1"},
		{"signs later than one that has begun", "a>20 -1>b", 24 * time.Hour, "a>20 -1>b>24 12>new", "24"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := ring(c.before)
			given := slices.Clone(before.Secrets)
			after := ring(c.after).Secrets
			secrets, until, err := rotated(before, SealedSecret{ID: "new", NotBefore: after[len(after)-1].NotBefore}, c.overlap, noon)
			require.NoError(t, err)
			require.Equal(t, after, secrets)
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

	for before, says := range map[string]string{
		"a":         "SignFrom is 2026-11-20T22:00:00Z, and the secret before ends at 2026-11-20T22:00:00Z: give an earlier SignFrom, or a longer overlap",
		"a b>5":     "and the secret before ends at 2026-11-20T17:00:00Z",
		"a>20 2>b":  "and the secret before ends at 2026-11-20T22:00:00Z",
		"a>-1 b>-2": `subscriber "sub_a" has no valid secret that could sign until then: leave SignFrom out`,
	} {
		_, _, err := rotated(ring(before), SealedSecret{ID: "new", NotBefore: hours("10")}, 10*time.Hour, noon)
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, says, before)
	}
}

func TestSignFrom(t *testing.T) {
	zone := time.FixedZone("", 3600)
	for _, c := range []struct{ asked, want time.Time }{
		{time.Time{}, time.Time{}},
		{noon.Add(time.Microsecond).In(zone), noon.Add(time.Microsecond)},
		{noon.Add(time.Second + 1), noon.Add(time.Second)},
		{noon, time.Time{}},
		{noon.Add(-5 * time.Minute), time.Time{}},
	} {
		got, err := signFrom(c.asked, noon)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	_, err := signFrom(noon.Add(-5*time.Minute-1), noon)
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "SignFrom is 2026-11-20T11:54:59Z, and it is 2026-11-20T12:00:00Z now: give a time to come")
}

// However secrets are rotated, activated and retired, at every time one signs, and never
// one whose time has not come.
func TestPropertyASecretAlwaysSigns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := noon
		k := ring("a")
		asked := map[string]time.Time{"a": noon} // from when each may sign
		for i := range rapid.IntRange(1, 12).Draw(t, "changes") {
			now = now.Add(time.Duration(rapid.IntRange(0, 10).Draw(t, "hours later")) * time.Hour)
			switch rapid.SampledFrom([]string{"rotate", "rotate", "rotate", "activate", "retire"}).Draw(t, "change") {
			case "rotate":
				fresh := SealedSecret{ID: strconv.Itoa(i)}
				if h := rapid.IntRange(0, 20).Draw(t, "sign after"); h > 0 {
					fresh.NotBefore = now.Add(time.Duration(h) * time.Hour)
				}
				secrets, _, err := rotated(k, fresh, time.Duration(rapid.IntRange(1, 30).Draw(t, "overlap"))*time.Hour, now)
				if err != nil {
					require.ErrorIs(t, err, ErrInvalid)
					continue
				}
				k.Secrets, asked[fresh.ID] = secrets, fresh.NotBefore
			case "activate":
				k.Secrets, _ = activated(k, now)
				clear(asked)
			case "retire":
				k.Secrets = retired(k, now)
				clear(asked)
			}
			last := k.Secrets[len(k.Secrets)-1]
			require.Zero(t, last.NotAfter, "the newest has no end")
			for at := now; at.Before(now.Add(60 * time.Hour)); at = at.Add(30 * time.Minute) {
				signs := signer(inForce(k.Secrets, at), at)
				require.GreaterOrEqual(t, signs, 0, "nothing signs %v after noon", at.Sub(noon))
				s := inForce(k.Secrets, at)[signs]
				require.False(t, at.Before(asked[s.ID]), "%s signs %v after noon", s.ID, at.Sub(noon))
				if !at.Before(last.NotBefore) {
					require.Equal(t, last.ID, s.ID, "%v after noon", at.Sub(noon))
				}
			}
		}
	})
}

func TestActivated(t *testing.T) {
	for before, after := range map[string]string{
		"a": "a", "a>9 2>b": "a>9 b", "a>9 2>b>9 3>c": "a>9 b>9 c", "a>-1 -2>b": "b", "a>9 b": "a>9 b",
	} {
		secrets, changed := activated(ring(before), noon)
		require.Equal(t, ring(after).Secrets, secrets, "of %q", before)
		require.Equal(t, before != after, changed, "of %q", before)
	}
}

func TestRetired(t *testing.T) {
	for before, after := range map[string]string{
		"a": "a", "a>9 b>9 c": "c", "a b>-1": "a", "-1>b -2>a": "b", "a>9 2>b": "b", "a>-1 b>-2": "a>-1 b>-2", "": "",
	} {
		require.Equal(t, ring(after).Secrets, retired(ring(before), noon), "of %q", before)
	}
}
