package ident

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Storable reports why some database cannot store a text, or nil. PostgreSQL's text is
// UTF-8 without NUL, and a statement with another text aborts its transaction. Storable
// does not check the length.
func Storable(what, s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%s is not valid UTF-8: it must be UTF-8 without NUL", what)
	}
	if i := strings.IndexByte(s, 0); i >= 0 {
		return fmt.Errorf("%s has a NUL at offset %d: it must be UTF-8 without NUL", what, i)
	}
	return nil
}

// MadeStorable returns a text in the form that Storable allows, in at most limit bytes.
// U+FFFD stands in it for what no database can store. A longer text loses its end.
func MadeStorable(s string, limit int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= limit {
		return s
	}
	for !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// Text is a text that a caller gave, and what the caller knows it by.
type Text struct{ Name, Text string }

// AllStorable reports all texts that some database cannot store, each as an error that
// matches invalid. It comes before the first statement, since the transaction may be the
// caller's.
func AllStorable(invalid error, texts ...Text) (errs []error) {
	for _, t := range texts {
		if err := Storable(t.Name, t.Text); err != nil {
			errs = append(errs, fmt.Errorf("%w: %w", invalid, err))
		}
	}
	return errs
}
