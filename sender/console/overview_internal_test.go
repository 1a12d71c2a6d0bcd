package console

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

// Deliveries that wait for a slow endpoint are not our lateness.
func TestLate(t *testing.T) {
	t.Parallel()
	require.False(t, (&overview{Ours: -1, Theirs: time.Hour}).Late())
	require.True(t, (&overview{Ours: time.Minute, Theirs: -1}).Late())
}

// Nor are their first attempts.
func TestFirstAttemptsOfSlowEndpointsAreNotOurs(t *testing.T) {
	t.Parallel()
	var r history.Rollup
	for lane, d := range map[sender.Lane]time.Duration{sender.LaneNew: time.Millisecond, sender.LaneProven: 2 * time.Millisecond, sender.LaneProbation: time.Hour} {
		r.FirstAttempt.Add(d)
		r.Lanes[lane].FirstAttempt.Add(d)
	}
	s := &series{span: span{"2m", "two minutes", time.Minute, 2}, Intervals: []interval{{From: time.Unix(0, 0), To: time.Unix(60, 0)}, {Rollup: r, From: time.Unix(60, 0), To: time.Unix(120, 0)}}, Whole: r}
	first := tilesOf(s).First
	require.EqualValues(t, 2, first.Count())
	require.Equal(t, 2*time.Millisecond, first.Longest())
	require.NotContains(t, string(firstChart(s).Table), "1 h")
}

func TestSpans(t *testing.T) {
	t.Parallel()
	require.Equal(t, day, spanOf("", day))
	require.Equal(t, week, spanOf("7d", day))
	for _, s := range spans {
		if s.Step%time.Hour == 0 {
			require.LessOrEqual(t, time.Duration(s.N)*s.Step, 35*24*time.Hour, "the longest that HourRollups answers")
		} else {
			require.LessOrEqual(t, time.Duration(s.N)*s.Step, 24*time.Hour, "as many minutes are read")
		}
	}
	v := interval{From: time.Unix(0, 0), To: time.Unix(1, 0)}
	require.InDelta(t, 3, v.Minutes(15*time.Minute), 0, "a second is no rate")
}

func TestFailures(t *testing.T) {
	t.Parallel()
	list, all := failuresOf(&history.Rollup{Failures: map[sender.Class]int64{sender.ClassTLS: 1, sender.ClassStatus: 3}})
	require.EqualValues(t, 4, all)
	require.Equal(t, []failure{{sender.ClassStatus, 3, .75}, {sender.ClassTLS, 1, .25}}, list)
}

// The times of an explanation are elements; its other text is escaped.
func TestSentence(t *testing.T) {
	t.Parallel()
	got := string(sentence("<b> at 2026-03-04T20:00:00.5Z, again 2026-03-04T21:00:00Z."))
	require.Regexp(t, `^&lt;b&gt; at <time datetime="2026-03-04T20:00:00.5Z".*>2026-03-04 20:00:00</time>, again <time .*</time>\.$`, got)
}

func TestCurl(t *testing.T) {
	t.Parallel()
	d := sender.Delivery{URL: "https://a.example/'x", Event: sender.EventInfo{ID: "evt_1"}, Body: []byte(`{"a":"it's"}`)}
	require.Contains(t, curl(&d), `curl -g -X POST 'https://a.example/'\''x' `)
	require.Contains(t, curl(&d), `--data-raw '{"a":"it'\''s"}'`)
	d.Body = []byte("{\"a\":\"it's \\n é\u200fa\xff\"}")
	require.Contains(t, curl(&d), `--data-raw $'{"a":"it\x27s \x5cn é\xe2\x80\x8fa\xff"}'`, "what cannot be seen is posted as it is")
}
