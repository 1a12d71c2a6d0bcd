package ident

import (
	"errors"
	"fmt"
	"strings"
)

// maxSchema is the most bytes that PostgreSQL keeps of a name; it cuts off the rest.
const maxSchema = 63

// Schema reports what is wrong with the name of a PostgreSQL schema, or nil: up to
// 63 bytes, with no NUL. The empty one stands for the search_path.
func Schema(s string) error {
	if len(s) > maxSchema {
		return fmt.Errorf("schema has %d bytes: at most %d are allowed", len(s), maxSchema)
	}
	if strings.ContainsRune(s, 0) {
		return errors.New("schema has a NUL: no name can have one")
	}
	return nil
}

// QuoteSchema returns any name in the quoted form for statements.
func QuoteSchema(s string) string {
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}
