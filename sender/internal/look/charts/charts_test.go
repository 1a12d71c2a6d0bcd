package charts

import (
	"encoding/xml"
	"errors"
	"html/template"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 11, 22, 14, 32, 0, 0, time.UTC)

const hostile = `<script>hacked=1</script>"'>`

// wellFormed fails if a chart is not XML, or lets a stranger's text through.
func wellFormed(t *testing.T, html template.HTML) {
	t.Helper()
	require.NotContains(t, html, "<script")
	require.NotContains(t, html, "NaN")
	require.NotContains(t, html, "style=")
	d := xml.NewDecoder(strings.NewReader(string(html)))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else {
			require.NoError(t, err, "%s", html)
		}
	}
}

func TestLinear(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64][2]float64{
		0: {1, 1}, math.NaN(): {1, 1}, 0.4: {0.4, 2}, 1: {1, 2}, 1.2: {1.5, 3}, 13: {15, 3}, 1100: {1500, 3}, 1700: {2000, 2}, 2500: {3000, 3}, 3100: {4000, 2}, 5000: {6000, 3}, 7000: {10000, 2},
	} {
		top, steps := linear(v)
		require.InDelta(t, want[0], top, 1e-6, "%v", v)
		require.InDelta(t, want[1], steps, 0, "%v", v)
	}
	require.Equal(t, []string{"0", "0.5", "600", "1.2k", "3M"}, []string{axisNumber(0), axisNumber(.5), axisNumber(600), axisNumber(1200), axisNumber(3e6)})
}

func TestTimeLabels(t *testing.T) {
	t.Parallel()
	texts := func(d time.Duration) (all []string) {
		for _, l := range timeLabels(start, start.Add(d)) {
			all = append(all, l.text)
		}
		return all
	}
	require.Equal(t, []string{"14:40", "14:50", "15:00", "15:10", "15:20", "15:30"}, texts(time.Hour))
	require.Equal(t, []string{"15:00", "18:00", "21:00", "Nov 23", "03:00", "06:00", "09:00", "12:00"}, texts(24*time.Hour), "the date at midnight")
	require.Equal(t, "Mon 23", texts(7 * 24 * time.Hour)[0])
	require.Empty(t, texts(0))
}

func TestStack(t *testing.T) {
	t.Parallel()
	c := Stack{Name: hostile, Height: 100, Series: []Series{{"a", "f-bar"}, {"b", "f-bad"}}, Marks: []Mark{{start.Add(90 * time.Minute), hostile}, {start.Add(-time.Hour), "before"}}}
	for i := range 2 {
		from := start.Add(time.Duration(i) * time.Hour)
		c.Columns = append(c.Columns, Column{From: from, To: from.Add(time.Hour), Values: []float64{1000, 0.001 * float64(i)}, Title: hostile})
	}
	html := c.HTML()
	wellFormed(t, html)
	require.Contains(t, html, `<rect class="f-bar" x="6%" y="33.33" width="38%" height="66.67"/>`)
	require.Contains(t, html, `<rect class="f-bad" x="56%" y="31.83" width="38%" height="1.5"/>`, "what is above none can be seen")
	require.NotContains(t, html, `<rect class="f-bad" x="6%"`, "none is drawn as none")
	require.Contains(t, html, `<line class="mark-l" x1="75%"`)
	require.NotContains(t, html, "before</text>", "a moment outside of the chart")
	require.Empty(t, (&Stack{}).HTML())
}

func TestLines(t *testing.T) {
	t.Parallel()
	c := Lines{Name: hostile, Height: 120, From: start, To: start.Add(4 * time.Hour), Series: []string{"p50", "p99"}, Say: time.Duration.String, Points: []Point{
		{Values: []time.Duration{10 * time.Millisecond, time.Second}, Title: hostile}, {}, {Values: []time.Duration{time.Millisecond, 100 * time.Second}}, {Values: []time.Duration{10 * time.Millisecond, 10 * time.Millisecond}},
	}}
	html := c.HTML()
	wellFormed(t, html)
	require.Contains(t, html, `d="M0 120h0M2 120h0L3 120"`, "a gap where nothing was measured; shorter than the axis is at its foot")
	require.Contains(t, html, `d="M0 70h0M2 20h0L3 120"`, "100 s is the top")
	require.Contains(t, html, `y="124">p50 10ms`)
	require.Contains(t, html, `y="110">p99 10ms`, "one name does not cover the other")
	require.Empty(t, (&Lines{}).HTML())
}

func TestSmall(t *testing.T) {
	t.Parallel()
	for _, html := range []template.HTML{
		(&Spark{Name: hostile, Class: hostile, Values: []float64{0, 1}}).HTML(), Bars(nil), Bars([]Outcome{NoAttempt, Success, Failure}),
		Meter(math.NaN(), "f-bad", hostile, true), Mix([]Part{{1, "f-ok"}, {0, "f-bad"}, {3, "f-warn"}}, hostile), Mix(nil, ""),
	} {
		wellFormed(t, html)
	}
	require.Empty(t, (&Spark{Values: []float64{1}}).HTML())
	require.Contains(t, (&Spark{Values: []float64{0, 0}}).HTML(), "M0 22.3L1 22.3", "none is at the foot")
	require.Contains(t, (&Spark{Values: []float64{1, 1}, Share: true}).HTML(), "M0 1.1L1 1.1", "all is at the top")
	require.Contains(t, Bars([]Outcome{NoAttempt, Success, Failure}), `<path class="f-bad" d="M8 1h2.8v19h-2.8z"/>`)
	require.Contains(t, Bars([]Outcome{Failure}), "The last 1 attempt: 0 answered 2xx, 1 failed")
	require.Contains(t, Meter(2, "f-bad", "", false), `width="100%"`)
	require.Contains(t, Mix([]Part{{1, "f-ok"}, {3, "f-warn"}}, ""), `<rect class="f-warn" x="25%" width="75%"`)
}

func TestTable(t *testing.T) {
	t.Parallel()
	html := (&Table{Heads: []string{"UTC", hostile}, Rows: [][]string{{"14:00", hostile}}}).HTML()
	wellFormed(t, html)
	require.Contains(t, html, `<th scope="row">14:00</th>`)
}
