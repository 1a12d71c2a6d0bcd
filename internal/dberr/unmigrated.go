package dberr

import (
	"fmt"
	"strings"
)

// Unmigrated says what to do about an error that tells that a table or a column is missing,
// of those whose names begin with tables. Every other error it returns as it is.
func Unmigrated(tables string, err error) error {
	if err == nil || !lacks(tables, err) {
		return err
	}
	return fmt.Errorf("a table is missing, or is older than this release, or is in another schema: call Migrate before: %w", err)
}

func lacks(tables string, err error) bool {
	text := err.Error()
	if !strings.Contains(text, tables) {
		return false
	}
	switch SQLState(err) {
	case "42P01", "42703":
		return true
	case "":
		return MySQL(err) == 1146 || // ER_NO_SUCH_TABLE
			strings.Contains(text, "no such table") || strings.Contains(text, "no such column")
	}
	return false
}
