package takeovertest

import (
	"reflect"
	"testing"
	"time"
)

// within is well below the lease of a minute, and above the eight seconds or so that a
// takeover takes on an idle machine. On a slow disk it takes twenty.
const within = 40 * time.Second

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// check fails the test unless ok.
func check(t *testing.T, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Fatalf(format, args...)
	}
}

func equal(t *testing.T, want, got any) {
	t.Helper()
	check(t, reflect.DeepEqual(want, got), "wanted %+v, and got %+v", want, got)
}

// eventually waits until something holds.
func eventually(t *testing.T, holds func() bool, what string) {
	t.Helper()
	for began := time.Now(); !holds(); time.Sleep(10 * time.Millisecond) {
		check(t, time.Since(began) < within, "not within %s: %s", within, what)
	}
}
