package browsertest

import (
	_ "embed"
	"encoding/base64"
	"os"
	"path/filepath"
)

// Screen is how a page is looked at.
type Screen struct {
	Name          string
	Width, Height int
	Dark          bool
}

// Desk is a wide screen.
var Desk = Screen{"wide", 1440, 900, false}

// screens are those that Looks looks at. The last one is as narrow as a page must bear (WCAG
// 2.2, criterion 1.4.10).
var screens = []Screen{Desk, {"wide-dark", 1440, 900, true}, {"phone-dark", 390, 844, true}, {"narrow", 320, 640, false}}

// Screen changes what the tab is seen on.
func (t *Tab) Screen(s Screen) {
	t.t.Helper()
	t.Call("Emulation.setDeviceMetricsOverride", Object{"width": s.Width, "height": s.Height, "deviceScaleFactor": 1, "mobile": s.Width < 600}, nil)
	scheme := "light"
	if s.Dark {
		scheme = "dark"
	}
	t.Call("Emulation.setEmulatedMedia", Object{"features": []Object{{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}}}, nil)
}

//go:embed flaws.js
var flaws string

// Looks fails the test, and goes on, if something in the page hinders people who use a
// keyboard, a screen reader or a narrow screen, or whose eyes are weak. It looks on a wide
// and on a narrow screen, in light and in dark colours. name names the pictures.
func (t *Tab) Looks(name string) {
	t.t.Helper()
	t.Call("Runtime.evaluate", Object{"expression": flaws}, nil)
	for i, s := range screens {
		t.Screen(s)
		t.Shoot(name + "-" + s.Name)
		// The page is the same on all of them; its layout is, in both colours.
		for _, of := range [][]string{{"content", "layout", "contrast"}, {"contrast"}, {"layout", "contrast"}, {"layout", "contrast"}}[i] {
			t.flawed(name, s, Eval[[]string](t, "flaws."+of+"()"))
		}
		// axe takes most of the time, its look at colours most of that: it looks once for each rule.
		switch i {
		case 0:
			t.flawed(name, s, t.violations(`{rules: {"color-contrast": {enabled: false}}}`))
		case 2:
			t.flawed(name, s, t.violations(`{runOnly: ["color-contrast", "scrollable-region-focusable"]}`))
		}
	}
}

func (t *Tab) flawed(name string, s Screen, flaws []string) {
	t.t.Helper()
	for _, f := range flaws {
		t.t.Errorf("%s, %s: %s", name, s.Name, f)
	}
}

// violations are what axe finds on the page, by the rules that it has on by itself: those of
// WCAG up to 2.1 AA, and good practice. It looks at the first rows of a table, because the
// others are like them and axe's time grows with each.
func (t *Tab) violations(options string) []string {
	t.t.Helper()
	if t.browser.axe == "" {
		return nil
	}
	if !Eval[bool](t, "'axe' in window") {
		t.Call("Runtime.evaluate", Object{"expression": t.browser.axe + ";0"}, nil)
	}
	return Eval[[]string](t, `axe.run({exclude: "tbody tr:nth-child(n+9)"}, Object.assign({resultTypes: ["violations"], elementRef: false}, `+options+`)).then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ': ' + n.target + ' ' + n.failureSummary.slice(0, 200))))`)
}

// Shoot keeps a picture in the folder that SUREHOOK_SHOTS names, to be looked at.
func (t *Tab) Shoot(name string) {
	t.t.Helper()
	dir := os.Getenv("SUREHOOK_SHOTS")
	if dir == "" {
		return
	}
	check(t.t, os.MkdirAll(dir, 0o750), "the folder of pictures")
	var shot struct{ Data string }
	t.Call("Page.captureScreenshot", Object{"captureBeyondViewport": true, "format": "png", "optimizeForSpeed": true}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	check(t.t, err, "a picture")
	check(t.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600), "keeping a picture")
}
