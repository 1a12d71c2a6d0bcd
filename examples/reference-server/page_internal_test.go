package main

import (
	"testing"
)

// A page's cursor is taken back by its own list, as the one text that it has.
func FuzzPageCursor(f *testing.F) {
	f.Add("events", "MS4x", "")
	f.Add("deliveries", "\x00", outer("deliveries", "\x00"))
	f.Add("events", "x", outer("events", "x")+"\n")
	f.Add("", "", "AAAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, list, cursor, raw string) {
		if cursor != "" {
			sent := outer(list, cursor)
			if got, err := (&Page{Cursor: sent}).cursor(list); err != nil || got != cursor {
				t.Fatalf("%q came back as %q: %v", cursor, got, err)
			}
			if _, err := (&Page{Cursor: sent}).cursor(list + "2"); err == nil {
				t.Fatal("another list takes it")
			}
		}
		if got, err := (&Page{Cursor: raw}).cursor(list); raw != "" && err == nil && outer(list, got) != raw {
			t.Fatalf("%q is taken for %q", raw, outer(list, got))
		}
	})
}
