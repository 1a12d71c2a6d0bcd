package portal_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
		"--no-first-run", "--test-third-party-cookie-phaseout", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+home, "about:blank")
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
	require.Empty(b.t, b.try(method, params, into), method)
}

// try is call, but that it returns what the browser has refused.
func (b *browser) try(method string, params object, into any) (refused string) {
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
		if answer.Error != nil {
			return answer.Error.Message
		}
		if into != nil {
			require.NoError(b.t, json.Unmarshal(answer.Result, into))
		}
		return ""
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
	b.call("Runtime.evaluate", object{"expression": expression, "returnByValue": true}, &answer)
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
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", object{"captureBeyondViewport": true, "format": "png"}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600))
}
