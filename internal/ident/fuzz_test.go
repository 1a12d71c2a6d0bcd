package ident_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/surehook/surehook/internal/ident"
)

var (
	word  = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	words = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
)

// Each form is as its comment says: the test states it again in other terms.
func FuzzForms(f *testing.F) {
	for _, s := range []string{"", "a", "a.b", "a..b", ".a", "a.", "é", "\x00", "\u0085", "\xff", "a b", "a\n", "evt_1-2"} {
		f.Add(s)
		f.Add(strings.Repeat(s, 64))
	}
	f.Fuzz(func(t *testing.T, s string) {
		plain := s != "" && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
		for name, c := range map[string]struct {
			form func(string) error
			want bool
		}{
			"EventID":    {ident.EventID, len(s) <= 128 && word.MatchString(s)},
			"Type":       {ident.Type, len(s) <= 128 && words.MatchString(s)},
			"ObjectType": {ident.ObjectType, len(s) <= 64 && words.MatchString(s)},
			"ObjectID":   {ident.ObjectID, len(s) <= 255 && plain},
			"Scope":      {ident.Scope, len(s) <= 128 && plain},
			"Schema":     {ident.Schema, len(s) <= 63 && !strings.Contains(s, "\x00")},
		} {
			if err := c.form(s); (err == nil) != c.want {
				t.Fatalf("%s of %q: %v", name, s, err)
			}
		}
		// A quoted name ends at its last character: quotes within it are
		// doubled.
		quoted := ident.QuoteSchema(s)
		inner := quoted[1 : len(quoted)-1]
		if quoted[0] != '"' || quoted[len(quoted)-1] != '"' || strings.Contains(strings.ReplaceAll(inner, `""`, ""), `"`) || strings.ReplaceAll(inner, `""`, `"`) != s {
			t.Fatalf("%q is quoted as %s", s, quoted)
		}
	})
}
