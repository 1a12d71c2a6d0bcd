package dberr

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUnmigrated: a table is not as this release needs it.
var ErrUnmigrated = errors.New("a table is missing, or is older than this release, or is in another schema: call Migrate before")

// Unmigrated says what to do about an error that tells that a table, a column or an index is
// missing, of those whose names begin with tables. The error then matches ErrUnmigrated. Every
// other error it returns as it is.
func Unmigrated(tables string, err error) error {
	if err == nil || !lacks(tables, err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnmigrated, err)
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
			slices.ContainsFunc([]string{"no such table", "no such column", "has no column named", "no such index"}, func(said string) bool { return strings.Contains(text, said) }) // SQLite
	}
	return false
}
