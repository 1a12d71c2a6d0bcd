package console_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/replay"
)

// browser drives a Chromium by its debugging protocol over a pipe
// (chromedevtools.github.io/devtools-protocol), one message after the other.
type browser struct {
	t       *testing.T
	to      *os.File
	from    *bufio.Reader
	last    int
	session string
	events  []event
}

type event struct {
	Method string
	Params json.RawMessage
}

// newBrowser starts a browser that ends with the test. Without one installed the test
// is skipped aloud, or fails if SUREHOOK_REQUIRE names browser.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		const missing = "there is no chromium here (on Debian: apt-get install chromium)"
		if slices.Contains(strings.Split(os.Getenv("SUREHOOK_REQUIRE"), ","), "browser") {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	in, to, err := os.Pipe()
	require.NoError(t, err)
	from, out, err := os.Pipe()
	require.NoError(t, err)
	home := t.TempDir()
	cmd := exec.Command(path, "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+home, "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.ExtraFiles = []*os.File{in, out} // its descriptors 3 and 4
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	require.NoError(t, in.Close())
	require.NoError(t, out.Close())
	b := &browser{t: t, to: to, from: bufio.NewReader(from)}
	stuck := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() }) // not to be reached
	t.Cleanup(func() {
		stuck.Stop()
		_ = b.to.Close() // which ends it
		killed := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		killed.Stop()
		_ = from.Close()
		if t.Failed() {
			t.Logf("chromium: %s", stderr.String())
		}
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", object{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", object{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

type object = map[string]any

// call asks for something, and keeps the events that come before the answer.
func (b *browser) call(method string, params object, into any) {
	b.t.Helper()
	b.last++
	text, err := json.Marshal(struct {
		ID        int    `json:"id"`
		Method    string `json:"method"`
		Params    object `json:"params,omitempty"`
		SessionID string `json:"sessionId,omitempty"`
	}{b.last, method, params, b.session})
	require.NoError(b.t, err)
	_, err = b.to.Write(append(text, 0))
	require.NoError(b.t, err, "the browser has ended")
	for {
		var answer struct {
			ID int
			event
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		text, err := b.from.ReadBytes(0)
		require.NoError(b.t, err, "the browser has ended")
		require.NoError(b.t, json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &answer))
		if answer.ID == 0 {
			b.events = append(b.events, answer.event)
			continue
		}
		require.Equal(b.t, b.last, answer.ID)
		require.Nil(b.t, answer.Error, "%s: %v", method, answer.Error)
		if into != nil {
			require.NoError(b.t, json.Unmarshal(answer.Result, into))
		}
		return
	}
}

// until reads events until there is one of that method.
func (b *browser) until(method string) {
	b.t.Helper()
	for {
		for i, e := range b.events {
			if e.Method == method {
				b.events = slices.Delete(b.events, i, i+1)
				return
			}
		}
		text, err := b.from.ReadBytes(0)
		require.NoError(b.t, err, "the browser has ended")
		var e event
		require.NoError(b.t, json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &e))
		b.events = append(b.events, e)
	}
}

// loads calls do and waits until the page that it leads to is loaded.
func (b *browser) loads(do func()) {
	b.t.Helper()
	b.events = slices.DeleteFunc(b.events, func(e event) bool { return e.Method == "Page.loadEventFired" })
	do()
	b.until("Page.loadEventFired")
}

func (b *browser) open(url string) {
	b.t.Helper()
	b.loads(func() { b.call("Page.navigate", object{"url": url}, nil) })
}

// eval is the value of an expression, in the page.
func eval[T any](b *browser, expression string) (value T) {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", object{"expression": expression, "returnByValue": true, "awaitPromise": true}, &answer)
	require.Empty(b.t, answer.ExceptionDetails, "%s: %s", expression, answer.ExceptionDetails)
	if len(answer.Result.Value) > 0 {
		require.NoError(b.t, json.Unmarshal(answer.Result.Value, &value))
	}
	return value
}

func (b *browser) screen(width, height int, dark bool) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", object{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	b.call("Emulation.setScrollbarsHidden", object{"hidden": true}, nil) // they come and go with the layout
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.call("Emulation.setEmulatedMedia", object{"features": []object{{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}}}, nil)
}

// key presses one, as on a keyboard.
func (b *browser) key(name string, code int, text string) {
	b.t.Helper()
	down := object{"type": "keyDown", "key": name, "code": name, "windowsVirtualKeyCode": code}
	if text != "" {
		down["text"] = text
	}
	b.call("Input.dispatchKeyEvent", down, nil)
	b.call("Input.dispatchKeyEvent", object{"type": "keyUp", "key": name, "code": name, "windowsVirtualKeyCode": code}, nil)
}

// complaints are the browser's messages about pages: errors, and violations of their
// policies.
func (b *browser) complaints() (all []string) {
	for _, e := range b.events {
		if e.Method == "Log.entryAdded" || e.Method == "Runtime.exceptionThrown" || e.Method == "Runtime.consoleAPICalled" {
			all = append(all, string(e.Params))
		}
	}
	return all
}

// shoot keeps a picture in the folder that SUREHOOK_SHOTS names, to be looked at.
func (b *browser) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv("SUREHOOK_SHOTS")
	if dir == "" {
		return
	}
	require.NoError(b.t, os.MkdirAll(dir, 0o750))
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", object{"captureBeyondViewport": true, "format": "png", "optimizeForSpeed": true}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600))
}

// flaws finds what would hinder people who use a keyboard, a screen reader or a narrow
// screen, or whose eyes are weak.
const flaws = `(() => {
	const found = [], all = s => [...document.querySelectorAll(s)], seen = e => e.getClientRects().length > 0;
	const root = document.documentElement;
	if (root.scrollWidth > root.clientWidth) found.push('it is ' + root.scrollWidth + ' wide, the screen ' + root.clientWidth);
	if (!root.lang || !document.title) found.push('no language, or no title');
	if (all('h1').length !== 1 || all('main').length !== 1) found.push('not one h1 and one main');
	let level = 0;
	for (const h of all('h1,h2,h3,h4')) {
		if (+h.tagName[1] > level + 1) found.push('a heading skips a level: ' + h.textContent);
		level = +h.tagName[1];
	}
	const cut = e => { for (e = e.parentElement; e; e = e.parentElement) if (getComputedStyle(e).overflowX !== 'visible') return true; return false; };
	for (const e of all('main *')) {
		const r = e.getBoundingClientRect();
		if (seen(e) && r.width > 1 && !e.closest('svg, details:not([open])') && !cut(e) && (r.left < 0 || r.right > root.clientWidth)) found.push('it hangs over the edge: ' + e.outerHTML.slice(0, 80));
	}
	const ids = all('[id]').map(e => e.id);
	for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) found.push('twice the id ' + id);
	for (const e of all('input:not([type=hidden]),select,textarea')) if (!e.ariaLabel && !(e.labels.length && e.labels[0].textContent.trim())) found.push('no label: ' + e.outerHTML);
	for (const e of all('a,button,summary')) if (!e.ariaLabel && !e.textContent.trim()) found.push('no name: ' + e.outerHTML);
	for (const e of all('[aria-describedby]')) if (!document.getElementById(e.getAttribute('aria-describedby'))) found.push('describes nothing: ' + e.outerHTML);
	for (const t of all('table')) {
		if (!t.querySelector('thead th[scope=col]')) found.push('a table without headings');
		const columns = t.querySelectorAll('thead th').length;
		for (const r of t.querySelectorAll('tbody tr')) if (r.children.length !== columns) found.push('a row of ' + r.children.length + ' cells in a table of ' + columns);
	}
	for (const e of all('script:not([src$="/app.js"]),iframe,object,embed,img,[style]')) found.push('not allowed: ' + e.outerHTML.slice(0, 80));
	for (const e of all('*')) for (const a of e.attributes) if (a.name.startsWith('on')) found.push('a handler: ' + e.outerHTML.slice(0, 80));
	for (const e of all('a,button,input:not([type=hidden]),select,summary,pre')) if (seen(e) && e.tabIndex < 0) found.push('no key reaches ' + e.outerHTML.slice(0, 80));
	const channels = c => c.match(/[\d.]+/g).map(Number);
	const light = c => {
		const [r, g, b] = channels(c).map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = e => {
		for (; e; e = e.parentElement) {
			const c = getComputedStyle(e).backgroundColor, parts = channels(c);
			if (parts.length < 4 || parts[3] > 0) return c;
		}
		return matchMedia('(prefers-color-scheme: dark)').matches ? 'rgb(18,18,18)' : 'rgb(255,255,255)';
	};
	const pale = new Set();
	for (const e of all('body *')) {
		if (!seen(e) || e.closest('svg') || ![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
		const a = light(getComputedStyle(e).color), b = light(behind(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) pale.add('contrast ' + ratio.toFixed(2) + ': ' + e.tagName + '.' + e.className);
	}
	found.push(...pale);
	return found;
})()`

// screens are those that every page is looked at on.
var screens = []struct {
	name          string
	width, height int
	dark          bool
}{{"wide", 1440, 900, false}, {"phone", 390, 844, false}, {"phone-dark", 390, 844, true}, {"wide-dark", 1440, 900, true}, {"narrow", 360, 740, false}}

// Every page can be read on wide and narrow screens, in light and dark colours, and used
// by keyboard. No page runs a stranger's script, breaks its policy, or leaves an error in
// the browser's log.
func TestInABrowser(t *testing.T) {
	t.Parallel()
	br := newBrowser(t)
	b := newBed(t)
	b.crowd()
	bad, dead := b.deliveries(b.bad)[0], b.deliveries(b.dead)[1]
	replays, err := b.replays.List(t.Context(), replay.Query{})
	require.NoError(t, err)
	pages := []struct{ name, path string }{
		{"overview", "/"}, {"subscriptions", "/subscriptions"}, {"subscription", "/subscriptions/" + b.bad}, {"disabled", "/subscriptions/" + b.off},
		{"deliveries", "/deliveries"}, {"filters", "/deliveries?more=1&class=status&type=invoice.*"}, {"dead-letters", "/deliveries?status=dead_lettered"},
		{"delivery", "/deliveries/" + bad.ID}, {"dead-letter", "/deliveries/" + dead.ID},
		{"events", "/events"}, {"event", "/events/" + bad.Event.ID}, {"replays", "/replays"}, {"replay", "/replays/" + replays[0].ID},
		{"new-replay", "/replays/new?preview=1"}, {"notices", "/notices?all=1"}, {"customers", "/customers"}, {"customer", "/customers/sub_ada"},
		{"jobs", "/jobs"}, {"job", "/jobs/job_1"}, {"search", "/search?q=example"}, {"problem", "/nowhere"},
	}
	audit := axe(t)
	for _, p := range pages {
		br.open(b.server.URL + prefix + p.path)
		for _, screen := range screens {
			br.screen(screen.width, screen.height, screen.dark)
			br.shoot(p.name + "-" + screen.name)
			require.Empty(t, eval[[]string](br, flaws), "%s, %s", p.path, screen.name)
			if audit != "" && (screen.name == "wide" || screen.name == "phone-dark") {
				require.Empty(t, br.violations(audit), "%s, %s", p.path, screen.name)
			}
		}
		require.False(t, eval[bool](br, "'hacked' in window"), p.path)
	}
	wanted := func(complaint string) bool { return strings.Contains(complaint, "404") } // the page that is not there
	require.Empty(t, slices.DeleteFunc(br.complaints(), wanted))

	// The first page of a sender that is new.
	fresh := newEmptyBed(t)
	br.open(fresh.server.URL + prefix + "/")
	for _, screen := range screens {
		br.screen(screen.width, screen.height, screen.dark)
		br.shoot("empty-" + screen.name)
		require.Empty(t, eval[[]string](br, flaws), "the first steps, %s", screen.name)
	}
}

// The pages can be used by keyboard, and without any script.
func TestWithoutAScript(t *testing.T) {
	t.Parallel()
	br := newBrowser(t)
	b := newBed(t)
	br.screen(1440, 900, false)
	br.call("Emulation.setScriptExecutionDisabled", object{"value": true}, nil)

	// The first stop skips the navigation, and a button is pressed.
	br.open(b.server.URL + prefix + "/subscriptions/" + b.good)
	br.key("Tab", 9, "")
	require.Equal(t, "Skip to the content", eval[string](br, "document.activeElement.textContent"))
	for range 60 {
		br.key("Tab", 9, "")
		if eval[string](br, "document.activeElement.textContent") == "Pause" {
			break
		}
	}
	require.NotEqual(t, "none", eval[string](br, "getComputedStyle(document.activeElement).outlineStyle"), "it can be seen where one is")
	br.loads(func() { br.key("Enter", 13, "\r") })
	require.Equal(t, "Paused.", eval[string](br, "document.querySelector('main [role=status]').textContent"))
	require.Equal(t, "paused", fmt.Sprint(b.subscription(b.good).Status))

	// The filter's form sends what was typed.
	br.open(b.server.URL + prefix + "/deliveries")
	br.loads(func() {
		eval[any](br, "document.querySelector('#status').value = 'dead_lettered', document.querySelector('#since').value = '2026-03-01T12:00', document.querySelector('.filter').submit()")
	})
	require.Equal(t, 2, eval[int](br, "document.querySelectorAll('tbody tr').length"))
	br.loads(func() { eval[any](br, "document.querySelector('a.replay').click()") })
	br.loads(func() { eval[any](br, "document.querySelector('.filter button').click()") })
	require.Equal(t, "Replay 2", eval[string](br, "document.querySelector('#preview .main-btn').textContent"))
	br.loads(func() { eval[any](br, "document.querySelector('#preview .main-btn').click()") })
	require.Equal(t, "The replay has begun.", eval[string](br, "document.querySelector('main [role=status]').textContent"))
	require.Contains(t, eval[string](br, "document.querySelector('.facts').textContent"), "2026-03-01 12:00:00")
}

// The script adds this: buttons that copy are shown, keys go through rows, times tell both
// zones, and parts of a page are exchanged.
func TestTheScript(t *testing.T) {
	t.Parallel()
	br := newBrowser(t)
	b := newBed(t)
	br.screen(1440, 900, false)
	br.open(b.server.URL + prefix + "/deliveries")
	require.False(t, eval[bool](br, "document.querySelector('.copy').hidden"))
	require.Contains(t, eval[string](br, "document.querySelector('td time').title"), " UTC")
	br.key("j", 74, "j")
	br.key("j", 74, "j")
	require.Equal(t, 1, eval[int](br, "[...document.querySelectorAll('[data-row]')].findIndex(r => r.contains(document.activeElement))"))
	br.key("k", 75, "k")
	require.Equal(t, 0, eval[int](br, "[...document.querySelectorAll('[data-row]')].findIndex(r => r.contains(document.activeElement))"))
	br.key("/", 191, "/")
	require.True(t, eval[bool](br, "document.activeElement.matches('[data-find]')"))
	require.Empty(t, br.complaints())
}
