package browsertest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// Browser is a Chromium. It is driven by its debugging protocol over a pipe
// (chromedevtools.github.io/devtools-protocol), one message after the other: its tabs must
// not be used at the same time.
type Browser struct {
	to     *os.File
	from   *bufio.Reader
	last   int
	events []event
	axe    string // its source; "": it could not be had
}

type event struct {
	Method    string
	Params    json.RawMessage
	SessionID string
}

// Object has the parameters of a call.
type Object = map[string]any

// New starts a browser that ends with the test.
func New(t *testing.T) *Browser {
	t.Helper()
	in, to, err := os.Pipe()
	check(t, err, "a pipe")
	from, out, err := os.Pipe()
	check(t, err, "a pipe")
	home := t.TempDir()
	//nolint:noctx // it ends with its pipe
	cmd := exec.Command(find(t), "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--test-third-party-cookie-phaseout", "--disable-extensions", "--disable-default-apps",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+home, "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.ExtraFiles = []*os.File{in, out} // its descriptors 3 and 4
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	check(t, cmd.Start(), "starting the browser")
	check(t, errors.Join(in.Close(), out.Close()), "closing its ends of the pipes")
	stuck := time.AfterFunc(10*time.Minute, func() { _ = cmd.Process.Kill() }) // not to be reached
	t.Cleanup(func() {
		stuck.Stop()
		_ = to.Close() // which ends it
		killed := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		killed.Stop()
		_ = from.Close()
		if t.Failed() {
			t.Logf("chromium: %s", stderr.String())
		}
	})
	return &Browser{to: to, from: bufio.NewReader(from), axe: axe(t)}
}

// find is the path of the browser.
func find(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const missing = "there is no chromium here (on Debian: apt-get install chromium)"
	if required("browser") {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

func required(name string) bool {
	return slices.Contains(strings.Split(os.Getenv("SUREHOOK_REQUIRE"), ","), name)
}

// call asks for something, and keeps the events that come before the answer. It returns why
// the browser has refused, "" if it has not.
func (b *Browser) call(t testing.TB, session, method string, params Object, into any) (refused string) {
	t.Helper()
	b.last++
	text, err := json.Marshal(struct {
		ID        int    `json:"id"`
		Method    string `json:"method"`
		Params    Object `json:"params,omitempty"`
		SessionID string `json:"sessionId,omitempty"`
	}{b.last, method, params, session})
	check(t, err, method)
	_, err = b.to.Write(append(text, 0))
	check(t, err, "the browser has ended")
	for {
		var answer struct {
			ID int
			event
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		b.read(t, &answer)
		if answer.ID == 0 {
			b.events = append(b.events, answer.event)
			continue
		}
		if answer.ID != b.last {
			t.Fatalf("browsertest: an answer to call %d came, not to call %d, which was the last", answer.ID, b.last)
		}
		if answer.Error != nil {
			return answer.Error.Message
		}
		if into != nil {
			check(t, json.Unmarshal(answer.Result, into), method)
		}
		return ""
	}
}

// read waits for the next message.
func (b *Browser) read(t testing.TB, into any) {
	t.Helper()
	text, err := b.from.ReadBytes(0)
	check(t, err, "the browser has ended")
	check(t, json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), into), "a message")
}

func check(t testing.TB, err error, what string) {
	t.Helper()
	if err != nil {
		t.Fatalf("browsertest: %s: %v", what, err)
	}
}
