package browsertest

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// Tab is a page of a browser, or a frame in one. Its methods end the test if they fail.
type Tab struct {
	t       testing.TB
	browser *Browser
	session string
}

// Tab opens an empty page that shares no cookies with others, until the test ends.
func (b *Browser) Tab(t testing.TB) *Tab {
	t.Helper()
	root := &Tab{t: t, browser: b}
	var context struct{ BrowserContextID string }
	root.Call("Target.createBrowserContext", nil, &context)
	var target struct{ TargetID string }
	// Without pictures nothing is drawn, nor is the window about the page, which takes longer than
	// the page.
	root.Call("Target.createTarget", Object{"url": "about:blank", "browserContextId": context.BrowserContextID, "hidden": os.Getenv("SUREHOOK_SHOTS") == ""}, &target)
	tab := root.attach(target.TargetID)
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		tab.Call(domain+".enable", nil, nil)
	}
	tab.Call("Emulation.setFocusEmulationEnabled", Object{"enabled": true}, nil)
	tab.Call("Emulation.setScrollbarsHidden", Object{"hidden": true}, nil) // they come and go with the layout
	t.Cleanup(func() {
		root.Call("Target.disposeBrowserContext", Object{"browserContextId": context.BrowserContextID}, nil)
	})
	return tab
}

func (t *Tab) attach(target string) *Tab {
	t.t.Helper()
	var attached struct{ SessionID string }
	(&Tab{t: t.t, browser: t.browser}).Call("Target.attachToTarget", Object{"targetId": target, "flatten": true}, &attached)
	return &Tab{t: t.t, browser: t.browser, session: attached.SessionID}
}

// Call has the browser do something that the protocol names.
func (t *Tab) Call(method string, params Object, into any) {
	t.t.Helper()
	if refused := t.browser.call(t.t, t.session, method, params, into); refused != "" {
		t.t.Fatalf("browsertest: %s: %s", method, refused)
	}
}

// Loads calls do and waits until the page that it leads to is loaded.
func (t *Tab) Loads(do func()) {
	t.t.Helper()
	loaded := func(e event) bool { return e.SessionID == t.session && e.Method == "Page.loadEventFired" }
	b := t.browser
	b.events = slices.DeleteFunc(b.events, loaded)
	do()
	for !slices.ContainsFunc(b.events, loaded) {
		var e event
		b.read(t.t, &e)
		b.events = append(b.events, e)
	}
}

// Open goes to a URL, and waits until its page is loaded.
func (t *Tab) Open(url string) {
	t.t.Helper()
	t.Loads(func() { t.Go(url) })
}

// Go goes to a URL, whose page may lead elsewhere at once.
func (t *Tab) Go(url string) {
	t.t.Helper()
	t.Call("Page.navigate", Object{"url": url}, nil)
}

// Eval is the value of an expression in the page, or what its promise becomes.
func Eval[T any](t *Tab, expression string) (value T) {
	t.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	t.Call("Runtime.evaluate", Object{"expression": expression, "returnByValue": true, "awaitPromise": true}, &answer)
	if answer.ExceptionDetails != nil {
		t.t.Fatalf("browsertest: %s: %s", expression, answer.ExceptionDetails)
	}
	if len(answer.Result.Value) > 0 {
		check(t.t, json.Unmarshal(answer.Result.Value, &value), expression)
	}
	return value
}

// Do evaluates an expression for what it does.
func (t *Tab) Do(expression string) {
	t.t.Helper()
	Eval[any](t, "void("+expression+")")
}

// Reaches waits until an expression is true in the page, which may be exchanged meanwhile.
func (t *Tab) Reaches(expression string) {
	t.t.Helper()
	for {
		var answer struct {
			Result struct{ Value bool }
		}
		// Between two pages there is none.
		refused := t.browser.call(t.t, t.session, "Runtime.evaluate", Object{"expression": "Boolean(" + expression + ")", "returnByValue": true}, &answer)
		if refused == "" && answer.Result.Value {
			return
		}
		t.Breathes()
	}
}

// Breathes lets the page go on for a moment.
func (t *Tab) Breathes() {
	t.t.Helper()
	_ = t.browser.call(t.t, t.session, "Runtime.evaluate", Object{"expression": "new Promise(r => setTimeout(r, 20))", "awaitPromise": true}, nil)
}

// Frame waits for a frame that shows pages from an address, and returns it. It has a process
// of its own.
func (t *Tab) Frame(address string) *Tab {
	t.t.Helper()
	for {
		var all struct {
			TargetInfos []struct{ TargetID, Type, URL string }
		}
		t.Call("Target.getTargets", nil, &all)
		for _, info := range all.TargetInfos {
			if info.Type == "iframe" && strings.HasPrefix(info.URL, address) {
				return t.attach(info.TargetID)
			}
		}
		t.Breathes()
	}
}

// Key presses a key, as on a keyboard.
func (t *Tab) Key(name string, code int, text string) {
	t.t.Helper()
	down := Object{"type": "keyDown", "key": name, "code": name, "windowsVirtualKeyCode": code}
	if text != "" {
		down["text"] = text
	}
	t.Call("Input.dispatchKeyEvent", down, nil)
	t.Call("Input.dispatchKeyEvent", Object{"type": "keyUp", "key": name, "code": name, "windowsVirtualKeyCode": code}, nil)
}

// resized is what the browser says of a transition between two pages during which a test has
// changed the size of the window. It does no harm.
const resized = "Transition was aborted because of invalid state. Viewport size changed"

// Complaints are the browser's messages about the tab's pages: errors, and violations of
// their policies.
func (t *Tab) Complaints() (all []string) {
	for _, e := range t.browser.events {
		if e.SessionID == t.session && !bytes.Contains(e.Params, []byte(resized)) && (e.Method == "Log.entryAdded" || e.Method == "Runtime.exceptionThrown" || e.Method == "Runtime.consoleAPICalled") {
			all = append(all, string(e.Params))
		}
	}
	return all
}
