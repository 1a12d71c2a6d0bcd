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
