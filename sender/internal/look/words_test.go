package look

import (
	"bytes"
	"html/template"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

func TestDurations(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration][2]string{
		0: {"0 ms", "0 s"}, 999 * time.Millisecond: {"999 ms", "0 s"}, 1500 * time.Millisecond: {"1.5 s", "1 s"}, 9999 * time.Millisecond: {"9.9 s", "9 s"},
		59 * time.Second: {"59 s", "59 s"}, 119 * time.Second: {"1 min", "1 min"}, 26*time.Hour + 3*time.Minute: {"26 h 03 min", "26 h 03 min"}, 50 * time.Hour: {"2 d 2 h", "2 d 2 h"},
	} {
		require.Equal(t, want, [2]string{Took(d), Age(d)})
	}
	require.Equal(t, "0 s", Age(-time.Hour))
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64][2]string{
		0: {"0", "0"}, 999: {"999", "999"}, 1000: {"1,000", "1,000"}, -1234567: {"-1,234,567", "-1.23 M"}, 39340: {"39,340", "39.3k"}, 1e9: {"1,000,000,000", "1.00 G"},
		999949: {"999,949", "999.9k"}, 999950: {"999,950", "1.00 M"}, 999994999: {"999,994,999", "999.99 M"}, 999995000: {"999,995,000", "1.00 G"},
	} {
		require.Equal(t, want, [2]string{Count(n), Compact(n)})
	}
	require.Equal(t, "0.4", Compact(0.42))
	require.Equal(t, "–", Percent(0, 0))
	require.Equal(t, "99.9 %", Percent(9999, 10000), "not all")
	require.Equal(t, "100 %", Percent(3, 3))
	require.Equal(t, "1 delivery", Plural(1, "delivery"))
	require.Equal(t, "1,200 attempts", Plural(1200, "attempt"))
	require.Equal(t, "2 deliveries", Plural(2, "delivery"))
}

func TestTimes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("", 3600))
	require.Equal(t, template.HTML(`<time datetime="2026-03-01T10:55:00Z" data-as="ago" title="2026-03-01 10:55:00 UTC">5 min</time>`), ago(now, now.Add(-5*time.Minute)))
	require.Contains(t, Full(now), ">2026-03-01 11:00:00<")
	require.Contains(t, zoned(now), ">2026-03-01 11:00:00</time> <span data-zone>UTC</span>", "the script exchanges the zone with the time")
	require.Equal(t, template.HTML(dash), zoned(time.Time{}))
	require.Contains(t, left(now, now.Add(90*time.Second)), ">1 min<")
	require.Equal(t, template.HTML("a moment"), left(now, now))
	require.Equal(t, template.HTML(dash), ago(now, time.Time{}))
	require.Equal(t, template.HTML(dash), left(now, time.Time{}))
}

func TestPlain(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a\tb\nc", Plain("a\tb\nc"))
	require.Equal(t, `a`+"\n\n"+`b\u{d}c\u{d}`, Plain("a\r\n\r\nb\rc\r"))
	for _, joined := range []string{"می\u200cخواهم", "क्\u200dष", "👩\u200d👩\u200d👧", "🏳\ufe0f\u200d🌈"} {
		require.Equal(t, joined, Plain(joined))
	}
	require.Equal(t, `pay\u{200d}pal \u{200c}م\u{200d} \u{200d}م\u{200d}\u{200c}م\u{200c}`, Plain("pay\u200dpal \u200cم\u200d \u200dم\u200d\u200cم\u200c"))
	require.Equal(t, `\u{202e}x\u{0}\u{1b}\u{85}\u{feff}`+"\uFFFDé", Plain("\u202ex\x00\x1b\u0085\ufeff\xffé"))
}

const hostile = "<script>hacked=1</script>\"'><img src=x onerror=hacked=1>\u202e\x1b[31m"

// Each function that returns HTML escapes what it is given.
func TestHostileText(t *testing.T) {
	t.Parallel()
	for name, html := range map[string]template.HTML{
		"id": id(hostile), "id with a prefix": id("wsub_" + hostile), "copy": copyButton("x", hostile), "copy markup": copyButton(`<script>"'><img src=x>`, "x"), "no copy": copyButton(hostile, "x"), "endpoint": endpoint("https://a.example/" + hostile), "no endpoint": endpoint(hostile),
		"icon": icon(hostile, hostile), "mark": Mark(State{hostile, hostile, hostile}), "badge": badge(State{hostile, hostile, hostile}), "tag": tag(Label{hostile, hostile}),
		"body": Show([]byte(hostile)).HTML, "JSON": Show([]byte(`{"a":"</pre><script>` + "\u202e" + `","<script>":[1,true]}`)).HTML,
		"swatch": swatch(hostile), "stroke": stroke(hostile),
	} {
		for _, never := range []string{"<script", "<img", "\u202e", `"'>`} {
			require.NotContains(t, html, never, name)
		}
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	require.Equal(t, "wsub_…e9o04a", Short("wsub_06h0gtf8nu40ugecuup9e9o04a"))
	require.Equal(t, "sub_ada", Short("sub_ada"))
	require.Equal(t, "plain", Short("plain"))
	require.Equal(t, template.HTML(`<bdi>a.example:8080<span class="path">/hooks?x=1</span></bdi>`), endpoint("https://a.example:8080/hooks?x=1"))
	require.Equal(t, template.HTML(`<bdi>t<span class="path">/t</span></bdi>`), endpoint("http://t/t"), "the host is a part of the scheme, too")
	require.Equal(t, "a.example:8080", Host("https://a.example:8080/hooks"))
}

func TestBody(t *testing.T) {
	t.Parallel()
	require.Equal(t, `<span class="j-p">{</span>
  <span class="j-k">&#34;a&#34;</span><span class="j-p">:</span> <span class="j-n">-1.50</span><span class="j-p">,</span>
  <span class="j-k">&#34;b\&#34;,&#34;</span><span class="j-p">:</span> <span class="j-p">[</span>
    <span class="j-s">&#34;:&#34;</span><span class="j-p">,</span>
    <span class="j-n">null</span>
  <span class="j-p">]</span>
<span class="j-p">}</span>`, string(Show([]byte(`{"a":-1.50,"b\",":[":",null]}`)).HTML))
	require.Equal(t, template.HTML("not {json}"), Show([]byte("not {json}")).HTML)
	deeper := strings.Repeat("[", 9000) + `"]"` + strings.Repeat("]", 9000)
	require.True(t, template.HTML(template.HTMLEscapeString(deeper)) == Show([]byte(deeper)).HTML, "blanks before each line of it would be 160 MB")
	require.Contains(t, Show([]byte(`[`+strings.Repeat(`["[[[["],`, 100)+`1]`)).HTML, `<span class="j-n">1</span>`, "many are not deep")
	got := Show([]byte(strings.Repeat("é", MaxShown)))
	require.Equal(t, "131,072", got.Size)
	require.LessOrEqual(t, len(got.HTML), MaxShown)
}

// A button copies what is there, and nothing else.
func TestCopy(t *testing.T) {
	t.Parallel()
	require.Contains(t, copyBody([]byte("{\"a\":\n\"<é>\"}")), "data-copy=\"{&#34;a&#34;:\n&#34;&lt;é&gt;&#34;}\"")
	for name, body := range map[string]string{
		"shown in part": strings.Repeat("x", MaxShown+1), "with what cannot be seen": "{\"a\":\"\u200f\"}", "no text": "\xff", "lines that end otherwise": "a\r\nb",
	} {
		require.Empty(t, copyBody([]byte(body)), name)
	}
	large := posted([]byte(strings.Repeat("[1]", MaxShown)))
	require.Equal(t, "196,608", large.Size)
	require.Len(t, large.HTML, MaxShown)
	require.Equal(t, Shown{HTML: `[1, &#34;\u{200f}&#34;]`}, posted([]byte("[1, \"\u200f\"]")))
}

func TestStates(t *testing.T) {
	t.Parallel()
	require.Equal(t, "In flight", Delivery(sender.Delivery{Status: sender.StatusAwaitingRetry, InFlight: true}).Word)
	for word, s := range map[string]sender.Subscription{
		"Disabled": {Status: sender.SubscriptionDisabled, Health: sender.Health{FailingSince: time.Unix(1, 0)}},
		"Failing":  {Status: sender.SubscriptionActive, Health: sender.Health{FailingSince: time.Unix(1, 0), Lane: sender.LaneProbation}},
		"Slow":     {Status: sender.SubscriptionActive, Health: sender.Health{Lane: sender.LaneProbation}},
		"On trial": {Status: sender.SubscriptionActive, Health: sender.Health{Lane: sender.LaneProbation, Recent: sender.Recent(0).Add(sender.OutcomeSucceeded).Add(sender.OutcomeFailed)}},
		"New":      {Status: sender.SubscriptionActive},
		"Healthy":  {Status: sender.SubscriptionActive, Health: sender.Health{Lane: sender.LaneProven}},
		"Paused":   {Status: sender.SubscriptionPaused},
	} {
		require.Equal(t, word, Subscription(s).Word)
	}
	require.Equal(t, Label{"503", "bad"}, Answer(503, sender.ClassStatus))
	require.Equal(t, Label{"tls", "bad"}, Answer(0, sender.ClassTLS))
	require.Equal(t, Label{"timeout", "warn"}, Answer(200, sender.ClassTimeout))
	require.Equal(t, Label{"204", "ok"}, Answer(204, ""))
	require.Equal(t, template.HTML(dash), tag(Answer(0, "")))
}

// Every icon that is used is there, and both files are served.
func TestFiles(t *testing.T) {
	t.Parallel()
	page, err := Template()
	require.NoError(t, err)
	var symbols bytes.Buffer
	require.NoError(t, page.ExecuteTemplate(&symbols, "symbols", nil))
	for _, s := range []sender.Status{sender.StatusPending, sender.StatusAwaitingRetry, sender.StatusDelivered, sender.StatusDeadLettered, sender.StatusHeld, sender.StatusCancelled} {
		require.Contains(t, symbols.String(), `id="i-`+Status(s).Icon+`"`)
	}
	for path, kind := range map[string]string{"/style.css": "text/css", "/app.js": "text/javascript"} {
		w := httptest.NewRecorder()
		require.True(t, Serve(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)))
		require.Contains(t, w.Header().Get("Content-Type"), kind)
	}
	for _, path := range []string{"/", "/words.go", "/a/style.css"} {
		require.False(t, Serve(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)))
	}
	script, err := files.ReadFile("app.js")
	require.NoError(t, err)
	require.LessOrEqual(t, len(script), 6<<10, "the script stays small")
}
