package ident

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Storable reports why a text cannot be kept by every database, or nil: PostgreSQL's
// text is UTF-8 without NUL, and a statement that is given another one aborts its
// transaction. It does not ask whether the text is empty, or long.
func Storable(what, s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%s is not valid UTF-8: it must be UTF-8 without NUL", what)
	}
	if i := strings.IndexByte(s, 0); i >= 0 {
		return fmt.Errorf("%s has a NUL at offset %d: it must be UTF-8 without NUL", what, i)
	}
	return nil
}
