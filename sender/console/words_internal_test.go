package console

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTook(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0 ms", 999 * time.Millisecond: "999 ms", 1500 * time.Millisecond: "1.5 s", 59 * time.Second: "59 s", 119 * time.Second: "119 s",
		2 * time.Minute: "2 min", 119 * time.Minute: "119 min", 26*time.Hour + 3*time.Minute: "26 h 3 min", 50 * time.Hour: "2 d 2 h",
	} {
		require.Equal(t, want, took(d))
	}
}

func TestMoment(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("", 3600))
	require.Equal(t, moment{}, momentOf(now, time.Time{}))
	require.Equal(t, moment{Exact: "2026-03-01T10:55:00Z", Long: "2026-03-01 10:55:00", Ago: "5 min ago"}, momentOf(now, now.Add(-5*time.Minute)))
	require.Equal(t, "in 3 min", momentOf(now, now.Add(3*time.Minute)).Ago)
	require.Equal(t, "now", momentOf(now, now.Add(-time.Millisecond)).Ago)
}

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", -100: "-100", 1e9: "1,000,000,000"} {
		require.Equal(t, want, count(n))
	}
}

func TestPercent(t *testing.T) {
	t.Parallel()
	p := period{}
	require.Empty(t, p.Success())
	p.Delivered, p.Failed = 9999, 1
	require.Equal(t, "99.9 %", p.Success(), "not all")
	p.Failed = 0
	require.Equal(t, "100.0 %", p.Success())
}

func TestPlain(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a\tb\nc", plain("a\tb\nc"))
	require.Equal(t, `\u{202e}x\u{0}\u{1b}\u{85}\u{feff}`+"\uFFFDé", plain("\u202ex\x00\x1b\u0085\ufeff\xffé"))
	got := shown([]byte(strings.Repeat("é", maxShown)))
	require.Equal(t, "131,072", got.Size)
	require.LessOrEqual(t, len(got.Text), maxShown)
}
